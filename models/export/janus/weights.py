"""Reads a published Janus-Pro folder: sizes from config.json, weights tensor by tensor, image tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ...janus.config import JanusConfig
from ...janus.network import weight_shapes
from ...llamagen.vq import VQModel
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..decoder_weights import DecoderWeights, hugging_face_names
from ..llamagen.config import vq_config

MODEL_TYPE = "multi_modality"
VQ_PREFIX = "gen_vision_model."
# What reads pictures, and the head for text.
IGNORED = ("vision_model.", "aligner.", "language_model.lm_head.", VQ_PREFIX)
VQ_IGNORED = ("encoder.", "quant_conv.", "quantize.codebook_used")
PARTS = {  # what is computed of a part's `cls`
    "gen_vision_config": "VQ-16",
    "gen_aligner_config": "MlpProjector",
    "gen_head_config": "vision_head",
}
# Names of Llama's configuration; keys that equal its defaults, those of JanusConfig, are left out.
LLAMA = {
    "dim": "hidden_size", "n_layer": "num_hidden_layers", "n_head": "num_attention_heads",
    "n_kv_head": "num_key_value_heads", "ffn_dim": "intermediate_size",
    "max_positions": "max_position_embeddings", "rope_base": "rope_theta",
    "norm_eps": "rms_norm_eps",
}  # fmt: skip
LLAMA_FIXED = {
    "model_type": "llama", "hidden_act": "silu", "rope_scaling": None, "attention_bias": False,
    "mlp_bias": False,
}  # fmt: skip


@dataclass
class Weights(DecoderWeights):
    """The tensors that draw, without the image tokenizer's."""

    config: JanusConfig

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.require(weight_shapes(self.config))


@dataclass
class Folder:
    """A folder as published."""

    weights: Weights
    vq: VQModel


def read_folder(folder: Path) -> Folder:
    """ExportError: no Janus-Pro folder, or its files contradict each other."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    config = janus_config(checkpoint.read_json(folder / "config.json"), folder / "config.json")
    state = checkpoint.read_folder(folder)
    vq = load_vq(state, str(folder))
    if vq.config.codebook_size != config.codes:
        raise ExportError(
            f"{folder}: the image tokenizer has {vq.config.codebook_size} codes, the head draws "
            f"{config.codes}"
        )
    drawing = {k: v for k, v in state.items() if not ignored(k)}
    weights = Weights(drawing, config, weight_names(config), str(folder))
    return Folder(weights, vq)


def ignored(name: str) -> bool:
    return name.startswith(IGNORED) or name.endswith("rotary_emb.inv_freq")


def weight_names(config: JanusConfig) -> dict[str, tuple[str, ...]]:
    """Names of janus.network -> tensors of the folder."""
    names = hugging_face_names("language_model.")
    names |= {
        "codes": ("gen_embed.weight",),
        "head_in": ("gen_head.output_mlp_projector.weight",),
        "head_in_bias": ("gen_head.output_mlp_projector.bias",),
        "head": ("gen_head.vision_head.weight",),
        "head_bias": ("gen_head.vision_head.bias",),
    }
    for layer in range(config.aligner_depth):  # a GELU stands between two linear layers
        for part in ("weight", "bias"):
            names[f"aligner.{layer}.{part}"] = (f"gen_aligner.layers.{2 * layer}.{part}",)
    return names


def load_vq(state: State, where: str) -> VQModel:
    """The image tokenizer without its encoder: LlamaGen's under a prefix."""
    part = {k[len(VQ_PREFIX) :]: v for k, v in state.items() if k.startswith(VQ_PREFIX)}
    part = {k: v for k, v in part.items() if not k.startswith(VQ_IGNORED)}
    if not part:
        raise ExportError(f"{where}: no image tokenizer ({VQ_PREFIX}*)")
    config = vq_config(part, {}, f"{where}: {VQ_PREFIX[:-1]}")
    with torch.device("meta"):
        model = VQModel(config, encoder=False)
    checkpoint.load_strictly(model, part, f"{where}: {VQ_PREFIX[:-1]}")
    return model


def janus_config(settings: Mapping[str, Any], where: Path) -> JanusConfig:
    """Sizes by config.json."""
    kind = settings.get("model_type")
    if kind != MODEL_TYPE:
        raise ExportError(
            f"{where}: model_type is {kind}, expected {MODEL_TYPE}, as DeepSeek publishes Janus-Pro"
        )
    if "gen_head_config" not in settings:
        raise ExportError(
            f"{where}: no gen_head_config, expected a model that draws with a head of codes (Janus-Pro)"
        )
    tokenizer, aligner, head = (part_params(settings, name, where) for name in PARTS)
    projector = aligner.get("projector_type")
    if projector != "mlp_gelu":
        raise ExportError(f"{where}: projector_type is {projector}, expected mlp_gelu")
    language = section(settings, "language_config", where)
    for name, expected in LLAMA_FIXED.items():
        if language.get(name, expected) != expected:
            raise ExportError(
                f"{where}: language_config.{name} is {language[name]}, expected {expected}"
            )
    facts = {
        "text_ids": language.get("vocab_size", 32000),
        "codes": head.get("image_token_size"),
        "code_dim": aligner.get("input_dim"),
        "aligner_depth": aligner.get("depth", 1),
        "head_width": head.get("image_token_embed"),
    }
    facts |= {new: language[old] for new, old in LLAMA.items() if language.get(old) is not None}
    config = make_config(facts, where)
    agree(
        where,
        "gen_vision_config",
        tokenizer,
        image_token_size=config.codes,
        n_embed=config.code_dim,
    )
    agree(where, "gen_aligner_config", aligner, n_embed=config.dim)
    agree(where, "gen_head_config", head, n_embed=config.dim)
    agree(where, "language_config", language, head_dim=config.head_dim)
    return config


def section(settings: Mapping[str, Any], name: str, where: Path) -> Mapping[str, Any]:
    value = settings.get(name)
    if not isinstance(value, dict):
        raise ExportError(f"{where}: {name}: got {value}, expected an object")
    return value


def part_params(settings: Mapping[str, Any], name: str, where: Path) -> Mapping[str, Any]:
    """Parameters of a part, which must be of the class that is computed."""
    part = section(settings, name, where)
    if part.get("cls") != PARTS[name]:
        raise ExportError(f"{where}: {name}.cls is {part.get('cls')}, expected {PARTS[name]}")
    return section(part, "params", where)


def agree(where: Path, name: str, block: Mapping[str, Any], **facts: int) -> None:
    """Sizes that a block repeats."""
    for key, fact in facts.items():
        if block.get(key, fact) != fact:
            raise ExportError(
                f"{where}: {name}: {key} is {block[key]}, expected {fact} by the other parts"
            )


def make_config(facts: Mapping[str, Any], where: Path) -> JanusConfig:
    for name, value in facts.items():
        kinds = (int, float) if name in ("rope_base", "norm_eps") else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or value <= 0:
            raise ExportError(f"{where}: {name} is {value}, expected a positive number")
    try:
        return JanusConfig(**facts)
    except ValueError as error:
        raise ExportError(f"{where}: {error}") from error
