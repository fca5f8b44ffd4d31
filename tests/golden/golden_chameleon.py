"""Exports targets of the Chameleon family and runs them as the engine does.

Sequence 0 is conditional, 1 unconditional; each has positions from 0 at its own first id.
"""

from __future__ import annotations

import json
import sys
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


def export(out: Path, family: str, model: Path, config: dict[str, Any], *words: object) -> Path:
    """A bundle of the checkpoint."""
    file = out.parent / f"{out.name}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    command = ("models.export", family, "--model", model, "--config", file, "--out", out, *words)
    engine.run(sys.executable, "-m", *command)
    return out


def adjacent(heads: Tensor) -> Tensor:
    """Keys [..., D] of a Hugging Face layout with the features of a pair side by side."""
    return adjacent_pairs(heads.movedim(-1, 0), 1).movedim(0, -1)


class Target:
    """A bundle's target with a cache of several sequences."""

    def __init__(self, bundle: Path, sequences: int, slots: int) -> None:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
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

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [...,H] -> [...,V] of the image ids."""
        rows = hidden.reshape(1, -1, hidden.shape[-1])
        return self.module.logits(rows.contiguous()).view(*hidden.shape[:-1], -1)
