"""Exports targets of the Chameleon family and runs them as the engine does.

Sequence 0 is conditional, 1 unconditional; each has positions from 0 at its own first id.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from torch import Tensor

from models.transformer.rotary import adjacent_pairs

SPARE = 64  # cache rows for a tree


def settings(case: Case) -> dict[str, Any]:
    """--config of a case with a vocabulary of its own: its ids, and images that fit it."""
    ids = case.info.get("token_ids", {})
    names = {
        "bos": "bos", "first_image_id": "image_first", "codebook_size": "image_count",
        "end_of_image": "eoi", "begin_of_image": "boi", "separator": "eot",
    }  # fmt: skip
    tokens = {new: ids[old] for new, old in names.items() if old in ids}
    return {"tokens": tokens, "sizes": ["64x64"], "text_length": 16}


def adjacent(heads: Tensor) -> Tensor:
    """Keys [..., D] of a Hugging Face layout with the features of a pair side by side."""
    return adjacent_pairs(heads.movedim(-1, 0), 1).movedim(0, -1)


def assert_cache(case: Case, keys: str, values: str, cache: Tensor, allowed: str | float) -> None:
    """cache [layers,2,...]: keys after the rotation, recorded in a Hugging Face layout, and values."""
    if isinstance(allowed, str):
        allowed = case.tolerance(allowed)
    engine.assert_close(keys, cache[:, 0], adjacent(case.tensors[keys]), allowed)
    engine.assert_recorded(case, values, cache[:, 1], allowed)


def assert_sizes(config: Any, facts: dict[str, Any], **more: str) -> None:
    """Sizes of a decoder by their recorded names; config.json may leave some out."""
    names = {
        "dim": "hidden_size", "n_layer": "layers", "n_head": "heads", "n_kv_head": "kv_heads",
        "head_dim": "head_dim", "ffn_dim": "ffn_size", "norm_eps": "rms_norm_eps", "rope_base": "rope_theta",
    }  # fmt: skip
    for own, name in {**names, **more}.items():
        if name in facts:
            assert getattr(config, own) == facts[name], name


class Target:
    """A bundle's target with a cache of several sequences."""

    def __init__(self, bundle: Path, sequences: int, slots: int) -> None:
        manifest = engine.manifest(bundle)
        self.tokens, shape = manifest["tokens"], manifest["cache"]
        self.prompt = manifest["prompt"]
        self.module = engine.load_module(bundle, "target")
        self.cache = torch.zeros(
            shape["layers"], 2, sequences, shape["kv_heads"], slots + SPARE, shape["head_dim"]
        )
        self.lengths = torch.zeros(sequences, dtype=torch.int64)
        self.starts = torch.zeros_like(self.lengths)  # positions of the prompts' first ids

    @property
    def image_ids(self) -> slice:
        first = self.tokens["first_image_id"]
        return slice(first, first + self.tokens["codebook_size"])

    def run(self, ids: Tensor, positions: Tensor, mask: Tensor | None = None) -> Tensor:
        """Hidden states [S,R,H] of ids [S,R]; keys and values go behind the committed ones."""
        empty = torch.empty(0, dtype=torch.int64)
        x = self.module.embed(ids.contiguous())
        tree = empty if mask is None else mask
        return self.module.forward(x, positions.contiguous(), tree, self.lengths, self.cache)[0]

    def prefill(self, prompts: Sequence[Tensor]) -> list[Tensor]:
        """Hidden states [R,H] of every prompt; shorter ones are padded at the end."""
        rows = max(len(prompt) for prompt in prompts)
        ids = torch.stack([torch.nn.functional.pad(p, (0, rows - len(p))) for p in prompts])
        lengths = torch.tensor([len(prompt) for prompt in prompts])
        if self.prompt["align"] == "end":
            self.starts = self.prompt["length"] - lengths
        last = self.starts + lengths - 1
        positions = torch.arange(rows) + self.starts[:, None]
        hidden = self.run(ids, positions.minimum(last[:, None]))  # padding has no place of its own
        self.lengths = lengths
        return [h[: len(prompt)] for h, prompt in zip(hidden, prompts, strict=True)]

    def step(self, token: Tensor) -> Tensor:
        """Hidden states [S,H] after one more id for all sequences, or for each its own [S]."""
        ids = token.reshape(-1, 1).expand(len(self.lengths), 1)
        hidden = self.run(ids, (self.starts + self.lengths)[:, None])
        self.lengths = self.lengths + 1
        return hidden[:, 0]

    def layers(self, prompts: Tensor, count: int) -> Tensor:
        """What the first blocks get, for drafters that read inner layers: ids [S,R] -> [count,S,R,H]."""
        positions = torch.arange(prompts.shape[1]).expand_as(prompts).contiguous()
        empty, x = torch.empty(0, dtype=torch.int64), self.module.embed(prompts)
        _, features = self.module.forward_features(
            x, positions, empty, self.lengths, self.cache, torch.arange(count)
        )
        return features.unflatten(-1, (count, -1)).permute(2, 0, 1, 3)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [...,H] -> [...,V] of the image ids."""
        rows = hidden.reshape(1, -1, hidden.shape[-1])
        return self.module.logits(rows.contiguous()).view(*hidden.shape[:-1], -1)
