"""Reads a decoder's tensors one by one into the layout of models.transformer, whatever they are called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ..transformer.config import DecoderConfig
from ..transformer.rotary import adjacent_pairs
from .config_file import Section
from .messages import ExportError, note
from .shards import same
from .tensors import State, check_form, check_keys, shape_is, shape_text, usable, widest


def hugging_face_names(prefix: str = "") -> dict[str, tuple[str, ...]]:
    """Names of transformer.decoder -> the tensors of Hugging Face's Llama they are made of, in order."""
    layer = f"{prefix}model.layers.{{}}."
    return {
        "embedding": (f"{prefix}model.embed_tokens.weight",),
        "norm": (f"{prefix}model.norm.weight",),
        "head": (f"{prefix}lm_head.weight",),
        "wqkv": tuple(f"{layer}self_attn.{part}_proj.weight" for part in "qkv"),
        "bqkv": tuple(f"{layer}self_attn.{part}_proj.bias" for part in "qkv"),
        "wo": (f"{layer}self_attn.o_proj.weight",),
        "w13": (f"{layer}mlp.gate_proj.weight", f"{layer}mlp.up_proj.weight"),
        "w2": (f"{layer}mlp.down_proj.weight",),
        "attention_norm": (f"{layer}input_layernorm.weight",),
        "ffn_norm": (f"{layer}post_attention_layernorm.weight",),
        "q_norm": (f"{layer}self_attn.q_norm.weight",),
        "k_norm": (f"{layer}self_attn.k_norm.weight",),
    }


ANCHORS = ("embed_tokens.weight",)  # what these folders have, behind BASE
BASE = "model."


def tie(names: dict[str, tuple[str, ...]], state: State, settings: Section, where: str) -> None:
    """Head and embedding are one table where the configuration ties them, as in transformers.

    They are two where it leaves `tie_word_embeddings` out, which is said. A head that is stored beside a
    tied embedding is taken out of `state`; one that differs is named.
    """
    (head,), (embedding,) = names["head"], names["embedding"]
    is_silent = "tie_word_embeddings" not in settings
    if not settings.flag("tie_word_embeddings", False):
        if head not in state and embedding in state:
            says = "leaves out tie_word_embeddings, which means false"
            raise ExportError(
                f"{where}: missing keys: {head}, and config.json "
                + (says if is_silent else "does not tie it to the embedding (tie_word_embeddings)")
                + "; a model whose embedding is the head has tie_word_embeddings true there"
            )
        if is_silent and head in state and embedding in state:
            note(
                f"{where}: config.json leaves out tie_word_embeddings, which means false: the head is {head}"
            )
        return
    if embedding not in state:
        names["embedding"] = names["head"]
        return
    names["head"] = names["embedding"]
    stored = state.pop(head, None)
    if stored is not None and not same(stored, state[embedding]):
        note(
            f"{where}: {head} differs from {embedding}, to which config.json ties it "
            "(tie_word_embeddings): takes the embedding"
        )


@dataclass
class DecoderWeights:
    """The tensors of one checkpoint, mapped from its files, and how to read them.

    names: of a weight -> the tensors it is made of, joined in this order; tensors of a block by what
    follows `layers.N.`, with {} for N.
    """

    state: State
    config: DecoderConfig
    names: Mapping[str, tuple[str, ...]]
    where: str
    adjacent: bool = False  # features that turn together stand side by side
    turned: int = 0  # features of a head that turn, its first ones; 0: all
    count: int = field(default=0, init=False)  # of the weights that `require` names

    def require(self, shapes: Mapping[str, tuple[int, ...]]) -> None:
        """ExportError: tensors of weights of these shapes are missing, unknown, or of other shapes."""
        self.count = len(shapes)
        wanted = [source for name in shapes for source in self.sources(name)]
        check_keys(wanted, self.state, self.where)
        for name, shape in shapes.items():
            self.check(name, shape)

    @property
    def dtype(self) -> torch.dtype:
        return widest(self.state.values())

    def sources(self, name: str) -> list[str]:
        """Names in the checkpoint of what makes up a weight."""
        if not name.startswith("layers."):
            return list(self.names[name])
        _, layer, part = name.split(".")
        return [source.format(layer) for source in self.names[part]]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Heads of queries, keys and values."""
        return self.config.n_head, self.config.n_kv_head, self.config.n_kv_head

    def check(self, name: str, shape: tuple[int, ...]) -> None:
        """Shapes and dtypes of a weight's parts against the configuration."""
        part = name.rpartition(".")[2]
        counts = self.counts if len(self.sources(name)) > 1 else (sum(self.counts),)
        for source, count in zip(self.sources(name), counts, strict=False):
            width = count * self.config.head_dim
            halves = shape[0] // len(self.sources(name))
            rows = {"wqkv": width, "bqkv": width, "w13": halves}
            expected = [rows.get(part, shape[0]), *shape[1:]]
            self.check_part(source, shape_is(self.state[source], expected), expected)

    def check_part(self, source: str, fits: bool, expected: list[int]) -> None:
        if not fits:
            got = shape_text(self.state[source])
            raise ExportError(
                f"{self.where}: {source} has shape {got}, expected {expected} by the config"
            )
        check_form(source, self.state[source], self.where)

    def read(self, name: str) -> Tensor:
        """One weight in the layout of models.transformer."""
        parts = [self.tensor(source) for source in self.sources(name)]
        if name.endswith((".wqkv", ".bqkv")) and not self.adjacent:
            turned = zip(parts[:2], self.counts, strict=False)
            parts = [
                adjacent_pairs(tensor, count, self.turned) for tensor, count in turned
            ] + parts[2:]
        if name.endswith((".q_norm", ".k_norm")) and not self.adjacent:
            parts = [adjacent_pairs(parts[0], 1, self.turned)]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def tensor(self, source: str) -> Tensor:
        """ExportError: it has values that are no numbers."""
        return usable(source, self.state[source], self.where)
