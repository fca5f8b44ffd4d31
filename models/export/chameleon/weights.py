"""Reads Chameleon checkpoints of any layout, tensor by tensor, into the one of models.chameleon.

Four layouts hold the same network. Meta's keeps features 2i and 2i + 1 of a head side by side; so
does the early Hugging Face fork, whose norms have one dimension. Later Hugging Face folders keep
features i and i + D/2 together, with one norm per model-parallel part (Lumina-mGPT) or per head.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...chameleon.config import ChameleonConfig
from ...chameleon.transformer import weight_shapes
from ...transformer.rotary import adjacent_pairs
from .. import checkpoint
from ..checkpoint import ExportError
from ..decoder_weights import DecoderWeights, hugging_face_names

HUGGING_FACE = {
    **hugging_face_names(),
    "qk_norm_weight": tuple(f"model.layers.{{}}.self_attn.{part}_norm.weight" for part in "qk"),
    "qk_norm_bias": tuple(f"model.layers.{{}}.self_attn.{part}_norm.bias" for part in "qk"),
}
META = {
    "embedding": ("tok_embeddings.weight",),
    "norm": ("norm.weight",),
    "head": ("output.weight",),
    "wqkv": tuple(f"layers.{{}}.attention.w{part}.weight" for part in "qkv"),
    "qk_norm_weight": tuple(f"layers.{{}}.attention.{p}_normalization.weight" for p in "qk"),
    "qk_norm_bias": tuple(f"layers.{{}}.attention.{p}_normalization.bias" for p in "qk"),
    "wo": ("layers.{}.attention.wo.weight",),
    "w13": ("layers.{}.feed_forward.w1.weight", "layers.{}.feed_forward.w3.weight"),
    "w2": ("layers.{}.feed_forward.w2.weight",),
    "attention_norm": ("layers.{}.attention_norm.weight",),
    "ffn_norm": ("layers.{}.ffn_norm.weight",),
}
IGNORED = ("model.vqmodel.", "rope.freqs", "rotary_emb.inv_freq")
EXPECTED = (
    "expected config.json with model.safetensors or its index (Hugging Face), or consolidated.pth "
    "with params.json (Meta)"
)


@dataclass
class Weights(DecoderWeights):
    """A Chameleon checkpoint's tensors; the norms of queries and keys come in three layouts."""

    config: ChameleonConfig

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.state = checkpoint.without(self.state, IGNORED)
        self.require(weight_shapes(self.config))
        key = self.sources("layers.0.qk_norm_weight")[0]
        self.adjacent = self.names is META or self.state[key].dim() == 1

    def check(self, name: str, shape: tuple[int, ...]) -> None:
        if ".qk_norm_" not in name:
            super().check(name, shape)
            return
        for source, count in zip(self.sources(name), self.counts, strict=False):
            got, rest = list(self.state[source].shape), list(shape[1:])
            rows = got[0] if len(got) == 2 else 1
            fits = got[-1:] == rest and len(got) < 3 and rows > 0 and count % rows == 0
            self.check_part(source, fits, [count, *rest])

    def read(self, name: str) -> Tensor:
        """One weight in the layout of models.chameleon."""
        if ".qk_norm_" not in name:
            return super().read(name)
        parts = zip(self.sources(name), self.counts, strict=False)
        return torch.cat([self.per_head(self.state[source], count) for source, count in parts])

    def per_head(self, norm: Tensor, heads: int) -> Tensor:
        """[D] or [parts,D] -> [heads,D]: part p serves the p-th share of the heads."""
        norm = norm.view(-1, norm.shape[-1])
        norm = norm.repeat_interleave(heads // norm.shape[0], 0)
        if self.adjacent:
            return norm
        return adjacent_pairs(norm.reshape(-1), heads).view_as(norm)


def read_weights(path: Path) -> Weights:
    """The checkpoint in a folder, or in a file with its configuration beside it."""
    if not path.exists():
        raise ExportError(f"{path}: no such file or folder")
    folder = path if path.is_dir() else path.parent
    meta = folder / "consolidated.pth"
    if path == meta or (path.is_dir() and meta.is_file()):
        return read_meta(meta)
    if not (folder / "config.json").is_file():
        if any(folder.glob("consolidated.*.pth")):
            raise ExportError(f"{folder}: model-parallel parts; join them to one consolidated.pth")
        raise ExportError(f"{path}: no Chameleon model, {EXPECTED}")
    settings = checkpoint.read_json(folder / "config.json")
    kind = settings.get("model_type")
    if kind != "chameleon":
        raise ExportError(f"{folder}/config.json: model_type is {kind}, expected chameleon")
    if path.is_dir() or path.name.endswith(".index.json"):
        state = checkpoint.read_folder(folder)
    else:
        state = checkpoint.unwrap(checkpoint.read_file(path), path, ("model", "state_dict"))
    names = dict(HUGGING_FACE)
    if settings.get("tie_word_embeddings") and names["head"][0] not in state:
        names["head"] = names["embedding"]
    return Weights(state, hugging_face_config(settings, folder), names, str(path))


def read_meta(file: Path) -> Weights:
    settings = checkpoint.read_json(file.parent / "params.json")
    settings = settings.get("model", settings)
    state = checkpoint.unwrap(checkpoint.read_file(file), file, ("model", "state_dict"))
    vocabulary = checkpoint.shape_of(state, META["embedding"][0], 2, str(file))[0]
    width = checkpoint.shape_of(state, "layers.0.feed_forward.w1.weight", 2, str(file))[0]
    names = {
        "dim": "dim", "n_layer": "n_layers", "n_head": "n_heads", "norm_eps": "norm_eps",
        "rope_base": "rope_theta", "swin_norm": "swin_norm",
    }  # fmt: skip
    kv_heads = settings.get("n_kv_heads") or settings.get("n_heads")
    facts = {"vocab_size": vocabulary, "ffn_dim": width, "n_kv_head": kv_heads}
    facts.update({new: settings[old] for new, old in names.items() if old in settings})
    if settings.get("vocab_size", -1) > 0:
        facts["vocab_size"] = settings["vocab_size"]
    config = make_config(facts, file.parent / "params.json")
    return Weights(state, config, META, str(file))


def hugging_face_config(settings: Mapping[str, Any], folder: Path) -> ChameleonConfig:
    where = folder / "config.json"
    names = {
        "dim": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
        "n_kv_head": "num_key_value_heads", "ffn_dim": "intermediate_size",
        "vocab_size": "vocab_size", "max_positions": "max_position_embeddings",
        "rope_base": "rope_theta", "norm_eps": "rms_norm_eps", "swin_norm": "swin_norm",
    }  # fmt: skip
    if settings.get("rope_scaling"):
        raise ExportError(f"{where}: rope_scaling is {settings['rope_scaling']}, expected none")
    if settings.get("hidden_act", "silu") != "silu":
        raise ExportError(f"{where}: hidden_act is {settings['hidden_act']}, expected silu")
    facts = {new: settings[old] for new, old in names.items() if settings.get(old) is not None}
    if "n_head" in facts:
        facts.setdefault("n_kv_head", facts["n_head"])
    return make_config(facts, where)


def make_config(facts: Mapping[str, Any], where: Path) -> ChameleonConfig:
    for name, value in facts.items():
        number = isinstance(value, int if name not in ("rope_base", "norm_eps") else (int, float))
        if not number or (value <= 0 and name != "swin_norm"):
            raise ExportError(f"{where}: {name} is {value}, expected a positive number")
    try:
        return ChameleonConfig(**facts)
    except ValueError as error:
        raise ExportError(f"{where}: {error}") from error
