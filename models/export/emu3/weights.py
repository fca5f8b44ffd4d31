"""Reads a folder of Emu3 or Emu3.5: sizes from config.json, weights tensor by tensor, image tokenizer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from ...emu3.config import Emu3Config
from ...emu3.decoder import Emu3VQ
from ...transformer.plain import layer_shapes
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..config_file import (
    LLAMA_SIZES,
    Section,
    decoder_facts,
    language,
    make_config,
    refuse_quantised,
)
from ..decoder_weights import DecoderWeights, hugging_face_names, tie
from ..tokenizer_file import check_ids
from .names import VQ, original_state
from .vq import load_vq

ANCHORS = tuple(
    f"{part}.embed_tokens.weight" for part in ("text_model.model", "model.text_model", "model")
)
CONVERTED, ORIGINAL = "emu3", "Emu3"  # model types of transformers and of the authors
HEAD_NORM = "model.layers.0.self_attn.q_norm.weight"  # of Emu3.5
FIXED = {"hidden_act": "silu", "attention_bias": False, "mlp_bias": False}
MOST_HEAD = 4096  # features
DEFAULTS = {field.name: field.default for field in fields(Emu3Config)}


@dataclass
class Weights(DecoderWeights):
    """The tensors that generate codes."""

    config: Emu3Config

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.state = checkpoint.without(self.state, ("rotary_emb.inv_freq",))
        self.require(weight_shapes(self.config))


@dataclass
class Folder:
    """A folder as published."""

    weights: Weights
    vq: Emu3VQ | None  # the official folders have none
    vocabulary_map: dict[str, int]


def weight_shapes(config: Emu3Config) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the target's weights, in the order of use."""
    table = (config.vocab_size, config.dim)
    layers = layer_shapes(config, head_rms=config.head_norms)
    return {"embedding": table, **layers, "norm": (config.dim,), "head": table}


def read_folder(folder: Path) -> Folder:
    """ExportError: no Emu3 folder, or its files contradict each other."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    settings = Section.read(folder / "config.json")
    part = network_part(settings)
    state = original_state(checkpoint.read_folder(folder, ANCHORS), str(folder))
    config = emu3_config(settings, part, HEAD_NORM in state)
    names = hugging_face_names()
    tie(names, state, language(settings), str(folder))
    weights = Weights(
        {k: v for k, v in state.items() if not k.startswith(VQ)}, config, names, str(folder)
    )
    listed = dict(settings.section("vocabulary_map").values) if "vocabulary_map" in settings else {}
    check_ids(folder / "config.json", listed)
    return Folder(weights, tokenizer_of(state, settings, str(folder)), listed)


def tokenizer_of(state: State, settings: Section, where: str) -> Emu3VQ | None:
    if not any(name.startswith(VQ) for name in state):
        return None
    return load_vq(state, settings.section("vq_config"), where)


def network_part(settings: Section) -> Section:
    """What describes the network: in transformers' layout a nested part."""
    kind = settings.values.get("model_type")
    if kind not in (CONVERTED, ORIGINAL):
        raise settings.error("model_type", f"{CONVERTED} or {ORIGINAL}")
    part = settings.section("text_config") if kind == CONVERTED else language(settings)
    refuse_quantised(settings, part)
    part.fixed(FIXED)
    return part


def emu3_config(settings: Section, part: Section, head_norms: bool) -> Emu3Config:
    """Sizes by config.json. Heads with norms have a width of their own, as Emu3.5's code has it."""
    converted = settings.values["model_type"] == CONVERTED
    facts = decoder_facts(part, LLAMA_SIZES, DEFAULTS if converted else None)
    if head_norms:
        facts |= {"head_norms": True, "head_size": part.integer("head_dim", most=MOST_HEAD)}
    config = make_config(Emu3Config, facts, settings.where, part)
    part.fixed({"head_dim": config.head_dim})
    return config
