"""Reads Chameleon checkpoints of any layout, tensor by tensor, into the one of models.chameleon.

Four layouts hold the same network. Meta's keeps features 2i and 2i + 1 of a head side by side; so
does the early Hugging Face fork, whose norms have one dimension. Later Hugging Face folders keep
features i and i + D/2 together, with one norm per model-parallel part (Lumina-mGPT) or per head.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ...chameleon.config import ChameleonConfig
from ...chameleon.transformer import weight_shapes
from ...transformer.rotary import adjacent_pairs
from .. import checkpoint
from ..checkpoint import ExportError
from ..config_file import (
    LLAMA_SIZES,
    Section,
    decoder_facts,
    language,
    make_config,
    refuse_quantised,
)
from ..decoder_weights import ANCHORS, BASE, DecoderWeights, hugging_face_names, tie
from ..shards import read_shards

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
# Fields of ChameleonConfig and the keys of params.json and of config.json.
META_SIZES = {
    "dim": "dim",
    "n_layer": "n_layers",
    "n_head": "n_heads",
    "n_kv_head": "n_kv_heads",
    "norm_eps": "norm_eps",
    "rope_base": "rope_theta",
    "swin_norm": "swin_norm",
}
SIZES = {**LLAMA_SIZES, "swin_norm": "swin_norm"}
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
            checkpoint.check_form(source, self.state[source], self.where)
            got, rest = list(self.state[source].shape), list(shape[1:])
            rows = got[0] if len(got) == 2 else 1
            fits = got[-1:] == rest and len(got) < 3 and rows > 0 and count % rows == 0
            self.check_part(source, fits, [count, *rest])

    def read(self, name: str) -> Tensor:
        """One weight in the layout of models.chameleon."""
        if ".qk_norm_" not in name:
            return super().read(name)
        parts = zip(self.sources(name), self.counts, strict=False)
        return torch.cat([self.per_head(self.tensor(source), count) for source, count in parts])

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
    settings = Section.read(folder / "config.json")
    config = hugging_face_config(settings)
    if path.is_dir():
        state = checkpoint.read_folder(folder, ANCHORS, BASE)
    elif path.name.endswith(".index.json"):
        state = checkpoint.settled(read_shards(path), str(folder), ANCHORS, base=BASE)
    else:
        content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, ANCHORS, base=BASE)
    names = dict(HUGGING_FACE)
    tie(names, state, language(settings), str(path))
    return Weights(state, config, names, str(path))


def read_meta(file: Path) -> Weights:
    settings = Section.read(file.parent / "params.json")
    if "model" in settings:
        settings = settings.section("model")
    settings.fixed({"qk_normalization": True})
    content = checkpoint.read_file(file)
    state = checkpoint.unwrap(content, file, META["embedding"])
    vocabulary = checkpoint.shape_of(state, META["embedding"][0], 2, str(file))[0]
    width = checkpoint.shape_of(state, "layers.0.feed_forward.w1.weight", 2, str(file))[0]
    facts = {
        **decoder_facts(settings, META_SIZES),
        "ffn_dim": width,
        "vocab_size": vocabulary,
    }
    if settings.values.get("vocab_size", -1) != -1:
        facts["vocab_size"] = settings.integer("vocab_size")
    config = make_config(ChameleonConfig, facts, settings.where, settings, META_SIZES)
    return Weights(state, config, META, str(file))


def hugging_face_config(settings: Section) -> ChameleonConfig:
    part = language(settings)
    kind = part.values.get("model_type")
    if kind != "chameleon" and settings.values.get("model_type") != "chameleon":
        raise settings.error("model_type", "chameleon")
    refuse_quantised(settings, part)
    part.fixed({"hidden_act": "silu", "attention_bias": False, "mlp_bias": False})
    config = make_config(ChameleonConfig, decoder_facts(part, SIZES), settings.where, part)
    part.fixed({"head_dim": config.head_dim})
    return config
