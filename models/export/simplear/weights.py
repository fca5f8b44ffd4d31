"""Reads a published SimpleAR folder: sizes from config.json, weights tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...simplear.config import SimpleARConfig
from ...simplear.network import weight_shapes
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

MODEL_TYPES = ("qwen2", "simpar_qwen2", "simpar")
FIXED = {"hidden_act": "silu", "use_sliding_window": False}


@dataclass
class Weights(DecoderWeights):
    """The tensors of a folder."""

    config: SimpleARConfig

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.state = checkpoint.without(self.state, ("rotary_emb.inv_freq",))
        self.require(weight_shapes(self.config))


def read_folder(folder: Path, kinds: Sequence[str] = MODEL_TYPES) -> Weights:
    """kinds: values of model_type. ExportError: another folder, or its files contradict each other."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    settings = Section.read(folder / "config.json")
    config = simplear_config(settings, kinds)
    state, names = checkpoint.read_folder(folder, ANCHORS, BASE), hugging_face_names()
    tie(names, state, language(settings), str(folder))
    return Weights(state, config, names, str(folder))


def simplear_config(settings: Section, kinds: Sequence[str] = MODEL_TYPES) -> SimpleARConfig:
    """Sizes by config.json."""
    part = language(settings)
    if part.values.get("model_type") not in kinds:
        raise part.error("model_type", kinds[0])
    refuse_quantised(settings, part)
    part.fixed(FIXED)
    kinds = part.values["layer_types"] if "layer_types" in part else []
    if not isinstance(kinds, list) or any(kind != "full_attention" for kind in kinds):
        raise part.error("layer_types", "full_attention alone")
    config = make_config(SimpleARConfig, decoder_facts(part, LLAMA_SIZES), settings.where, part)
    part.fixed({"head_dim": config.head_dim})
    return config
