"""Reads a published Janus-Pro folder: sizes from config.json, weights tensor by tensor, image tokenizer."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...janus.config import JanusConfig
from ...janus.network import weight_shapes
from ...llamagen.vq import VQModel
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..config_file import LLAMA_SIZES, Section, decoder_facts, make_config, refuse_quantised
from ..decoder_weights import DecoderWeights, hugging_face_names
from ..llamagen.config import vq_config
from . import converted

MODEL_TYPE = "multi_modality"
ANCHORS = ("language_model.model.embed_tokens.weight",)
VQ_PREFIX = "gen_vision_model."
# What reads images for answers, and the head for text.
IGNORED = ("vision_model.", "aligner.", "language_model.lm_head.", VQ_PREFIX)
VQ_IGNORED = "quantize.codebook_used"
PARTS = {  # what is computed of a part's `cls`
    "gen_vision_config": "VQ-16",
    "gen_aligner_config": "MlpProjector",
    "gen_head_config": "vision_head",
}
# What the language model's section leaves out, as the library does with its defaults.
LLAMA_DEFAULTS = {
    "vocab_size": 32000,
    "dim": 4096,
    "n_layer": 32,
    "n_head": 32,
    "ffn_dim": 11008,
    "max_positions": 2048,
    "rope_base": 10000.0,
    "norm_eps": 1e-6,
}
LLAMA_FIXED = {
    "model_type": "llama",
    "hidden_act": "silu",
    "attention_bias": False,
    "mlp_bias": False,
}


@dataclass
class Weights(DecoderWeights):
    """The tensors that generate images, without the image tokenizer's."""

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
    settings = Section.read(folder / "config.json")
    if settings.values.get("model_type") == converted.MODEL_TYPE:
        state = checkpoint.read_folder(folder, converted.ANCHORS, converted.BASE)
        state = converted.original_state(state, str(folder))
        config = converted.janus_config(settings, state, language_facts)
    else:
        config = janus_config(settings)
        state = checkpoint.read_folder(folder, ANCHORS)
    vq = load_vq(state, str(folder))
    if vq.config.codebook_size != config.codes:
        raise ExportError(
            f"{folder}: the image tokenizer has {vq.config.codebook_size} codes, the head generates "
            f"{config.codes}"
        )
    kept = {k: v for k, v in state.items() if not ignored(k)}
    weights = Weights(kept, config, weight_names(config), str(folder))
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
    """The image tokenizer, its encoder too where there is one: LlamaGen's under a prefix."""
    part = {k[len(VQ_PREFIX) :]: v for k, v in state.items() if k.startswith(VQ_PREFIX)}
    part = {k: v for k, v in part.items() if not k.startswith(VQ_IGNORED)}
    if not part:
        raise ExportError(f"{where}: no image tokenizer ({VQ_PREFIX}*)")
    config = vq_config(part, Section({}, where), f"{where}: {VQ_PREFIX[:-1]}")
    with unfilled():
        model = VQModel(config, encoder=any(key.startswith("encoder.") for key in part))
    checkpoint.load_strictly(model, part, f"{where}: {VQ_PREFIX[:-1]}")
    return model


def janus_config(settings: Section) -> JanusConfig:
    """Sizes by config.json."""
    if settings.values.get("model_type") != MODEL_TYPE:
        raise settings.error(
            "model_type", f"{MODEL_TYPE} as DeepSeek publishes Janus-Pro, or {converted.MODEL_TYPE}"
        )
    if "gen_head_config" not in settings:
        raise ExportError(
            f"{settings.where}: no gen_head_config, expected a model that generates with a head of "
            "codes (Janus-Pro)"
        )
    tokenizer, aligner, head = (part_params(settings, name) for name in PARTS)
    aligner.fixed({"projector_type": "mlp_gelu"})
    if "projector_type" not in aligner:
        raise aligner.error("projector_type", "mlp_gelu")
    part = settings.section("language_config")
    facts = {
        **language_facts(settings, part),
        "codes": head.integer("image_token_size"),
        "code_dim": aligner.integer("input_dim"),
        "aligner_depth": aligner.integer("depth", 1, most=1000),
        "head_width": head.integer("image_token_embed"),
    }
    config = make_config(JanusConfig, facts, settings.where, part)
    tokenizer.fixed({"image_token_size": config.codes, "n_embed": config.code_dim})
    aligner.fixed({"n_embed": config.dim})
    head.fixed({"n_embed": config.dim})
    part.fixed({"head_dim": config.head_dim})
    return config


def language_facts(settings: Section, part: Section) -> dict[str, Any]:
    """Fields of JanusConfig that the description of the language model gives."""
    refuse_quantised(settings, part)
    part.fixed(LLAMA_FIXED)
    facts = decoder_facts(part, LLAMA_SIZES, LLAMA_DEFAULTS)
    return {"text_ids": facts.pop("vocab_size"), **facts}


def part_params(settings: Section, name: str) -> Section:
    """Parameters of a part, which must be of the class that is computed."""
    part = settings.section(name)
    if part.values.get("cls") != PARTS[name]:
        raise part.error("cls", PARTS[name])
    return part.section("params")
