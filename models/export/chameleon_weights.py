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

from ..chameleon.config import ChameleonConfig
from ..chameleon.transformer import weight_shapes
from ..transformer.rotary import adjacent_pairs
from . import checkpoint
from .checkpoint import ExportError, State

# Name in models.chameleon.transformer -> names of the tensors it is made of, joined in this order.
HUGGING_FACE = {
    "embedding": ("model.embed_tokens.weight",),
    "norm": ("model.norm.weight",),
    "head": ("lm_head.weight",),
    "wqkv": tuple(f"model.layers.{{}}.self_attn.{part}_proj.weight" for part in "qkv"),
    "qk_norm_weight": tuple(f"model.layers.{{}}.self_attn.{part}_norm.weight" for part in "qk"),
    "qk_norm_bias": tuple(f"model.layers.{{}}.self_attn.{part}_norm.bias" for part in "qk"),
    "wo": ("model.layers.{}.self_attn.o_proj.weight",),
    "w13": ("model.layers.{}.mlp.gate_proj.weight", "model.layers.{}.mlp.up_proj.weight"),
    "w2": ("model.layers.{}.mlp.down_proj.weight",),
    "attention_norm": ("model.layers.{}.input_layernorm.weight",),
    "ffn_norm": ("model.layers.{}.post_attention_layernorm.weight",),
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
class Weights:
    """The tensors of one checkpoint, mapped from its files, and how to read them."""

    state: State
    config: ChameleonConfig
    names: Mapping[str, tuple[str, ...]]
    where: str

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.state = checkpoint.without(self.state, IGNORED)
        wanted = [s for name in weight_shapes(self.config) for s in self.sources(name)]
        checkpoint.check_keys(wanted, self.state, self.where)
        key = self.sources("layers.0.qk_norm_weight")[0]
        self.adjacent = self.names is META or self.state[key].dim() == 1
        for name, shape in weight_shapes(self.config).items():
            self.check(name, shape)

    @property
    def dtype(self) -> torch.dtype:
        return self.state[self.sources("embedding")[0]].dtype

    def sources(self, name: str) -> list[str]:
        """Names in the checkpoint of what makes up a weight."""
        if not name.startswith("layers."):
            return list(self.names[name])
        _, layer, part = name.split(".")
        return [source.format(layer) for source in self.names[part]]

    def check(self, name: str, shape: tuple[int, ...]) -> None:
        """Shapes and dtypes of a weight's parts against the configuration."""
        heads = (self.config.n_head, self.config.n_kv_head, self.config.n_kv_head)
        for source, count in zip(self.sources(name), heads, strict=False):
            tensor, rest = self.state[source], shape[1:]
            got = list(tensor.shape)
            if ".qk_norm_" in name:
                rows = got[0] if len(got) == 2 else 1
                fits = got[-1:] == list(rest) and len(got) < 3 and rows > 0 and count % rows == 0
                expected = [count, *rest]
            else:
                parts = {"wqkv": count * self.config.head_dim, "w13": self.config.ffn_dim}
                expected = [parts.get(name.rpartition(".")[2], shape[0]), *rest]
                fits = got == expected
            if not fits:
                raise ExportError(
                    f"{self.where}: {source} has shape {got}, expected {expected} by the config"
                )
            if not tensor.is_floating_point():
                raise ExportError(
                    f"{self.where}: {source} is {tensor.dtype}, expected floating point"
                )

    def read(self, name: str) -> Tensor:
        """One weight in the layout of models.chameleon."""
        parts = [self.state[source] for source in self.sources(name)]
        part = name.rpartition(".")[2]
        counts = (self.config.n_head, self.config.n_kv_head)
        if part.startswith("qk_norm_"):
            parts = [self.per_head(t, count) for t, count in zip(parts, counts, strict=True)]
        elif part == "wqkv" and not self.adjacent:
            turned = zip(parts, counts, strict=False)
            parts = [adjacent_pairs(t, count) for t, count in turned] + parts[2:]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

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
    return Weights(state, hugging_face_config(settings, folder), HUGGING_FACE, str(path))


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
