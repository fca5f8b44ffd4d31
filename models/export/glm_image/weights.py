"""Reads the language model of a GLM-Image folder: sizes from config.json, weights tensor by tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from ...glm_image.config import GlmImageConfig
from ...transformer.plain import layer_shapes
from .. import checkpoint
from ..checkpoint import ExportError
from ..config_file import (
    LLAMA_SIZES,
    Section,
    decoder_facts,
    make_config,
    refuse_quantised,
    shown,
)
from ..decoder_weights import DecoderWeights, hugging_face_names
from ..messages import note

BASE = "model.language_model."
ANCHORS = (f"{BASE}embed_tokens.weight",)
OTHERS = ("model.visual.", "model.vqmodel.")  # read images, which prompts have none of
FIXED = {"hidden_act": "silu", "attention_bias": True}
SIZES = {field: key for field, key in LLAMA_SIZES.items() if field != "rope_base"}
DEFAULTS = {field.name: field.default for field in fields(GlmImageConfig)}
ROPE = ("rope_parameters", "rope_scaling")
ROTATIONS = {
    "rope_base": "rope_theta", "turned_share": "partial_rotary_factor", "sections": "mrope_section",
}  # fmt: skip
MOST_SECTIONS = 16


@dataclass
class Weights(DecoderWeights):
    """The tensors that generate codes."""

    config: GlmImageConfig
    head_ids: int = 0  # codes and ids around images

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.turned = self.config.turned
        self.state = {k: v for k, v in self.state.items() if not k.startswith(OTHERS)}
        self.state = checkpoint.without(self.state, ("rotary_emb.inv_freq",))
        self.require(weight_shapes(self.config, self.head_ids))


@dataclass
class Folder:
    """A folder as published."""

    weights: Weights
    codes: int
    image_start: int  # id in front of images


def names() -> dict[str, tuple[str, ...]]:
    """Names of transformer.decoder -> the tensors of the published folder."""
    layer = f"{BASE}layers.{{}}."
    base = {
        name: tuple(source.replace("model.", BASE, 1) for source in sources)
        for name, sources in hugging_face_names().items()
    }
    return base | {
        "w13": (f"{layer}mlp.gate_up_proj.weight",),
        "attention_out_norm": (f"{layer}post_self_attn_layernorm.weight",),
        "feed_out_norm": (f"{layer}post_mlp_layernorm.weight",),
    }


def weight_shapes(config: GlmImageConfig, head_ids: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the target's weights, in the order of use."""
    return {
        "embedding": (config.vocab_size, config.dim),
        **layer_shapes(config, qkv_bias=True, branch_norms=True),
        "norm": (config.dim,),
        "head": (head_ids, config.dim),
    }


def read_folder(folder: Path) -> Folder:
    """ExportError: no GLM-Image folder, or its files contradict each other."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    settings = Section.read(folder / "config.json")
    settings_kind(settings)
    part = settings.section("text_config")
    refuse_quantised(settings, part)
    settings.fixed({"tie_word_embeddings": False})
    config = network_config(part)
    ids = usual(part, "vision_vocab_size", 16512)
    tokenizer = settings.section("vq_config") if "vq_config" in settings else None
    codes = usual(tokenizer or Section({}, settings.where, "vq_config."), "num_embeddings", 16384)
    start = usual(settings, "image_start_token_id", 16384)
    if codes > ids or max(start, ids - 1) >= config.vocab_size:
        raise ExportError(
            f"{settings.where}: {codes} codes, {ids} ids of images and image_start_token_id {start} do not "
            f"fit a vocabulary of {config.vocab_size}"
        )
    state = checkpoint.read_folder(folder, ANCHORS)
    return Folder(Weights(state, config, names(), str(folder), head_ids=ids), codes, start)


def usual(section: Section, name: str, default: int) -> int:
    """A number that is said where the file leaves it out."""
    if name not in section:
        note(
            f"{section.where}: leaves out what equals the defaults: {section.label(name)} {default}"
        )
    return section.integer(name, default, least=0)


def settings_kind(settings: Section) -> None:
    if settings.values.get("model_type") != "glm_image":
        raise settings.error("model_type", "glm_image")


def network_config(part: Section) -> GlmImageConfig:
    """Sizes by the description of the language model."""
    part.fixed(FIXED)
    facts = decoder_facts(part, SIZES, DEFAULTS) | rotations(part)
    config = make_config(GlmImageConfig, facts, part.where, part, LLAMA_SIZES | ROTATIONS)
    part.fixed({"head_dim": config.head_dim})
    return config


def rotations(part: Section) -> dict[str, Any]:
    """Base, share of the features and sections, wherever releases of transformers describe them."""
    found: dict[str, dict[str, Any]] = {}
    for place in [part, *(part.section(name) for name in ROPE if name in part)]:
        if place is not part:
            place.known(
                ("rope_type", "type", "rope_theta", "partial_rotary_factor", "mrope_section")
            )
            place.fixed({"rope_type": "default", "type": "default"})
        for field, value in described(place).items():
            found.setdefault(field, {})[f"{place.prefix}{field}"] = value
    for values in found.values():
        if len({shown(value) for value in values.values()}) > 1:
            texts = " and ".join(f"{name} is {shown(value)}" for name, value in values.items())
            raise ExportError(f"{part.where}: {texts}, expected one value")
    one = {field: next(iter(values.values())) for field, values in found.items()}
    facts = {field: one.get(key, DEFAULTS[field]) for field, key in ROTATIONS.items()}
    if absent := [f"{key} {facts[field]}" for field, key in ROTATIONS.items() if key not in one]:
        kind = part.prefix.rstrip(".")
        note(f"{part.where}: {kind} leaves out what equals the defaults: {', '.join(absent)}")
    return facts | {"sections": tuple(facts["sections"])}


def described(place: Section) -> dict[str, Any]:
    """What one place says of rotations."""
    values: dict[str, Any] = {}
    if "rope_theta" in place:
        values["rope_theta"] = place.rotary_base("rope_theta")
    if "partial_rotary_factor" in place:
        values["partial_rotary_factor"] = place.number("partial_rotary_factor", 1.0)
    if "mrope_section" in place:
        values["mrope_section"] = sections(place)
    return values


def sections(place: Section) -> Sequence[int]:
    values = place.values["mrope_section"]
    legal = isinstance(values, list) and 0 < len(values) <= MOST_SECTIONS
    if not legal or not all(type(value) is int and 0 < value <= 4096 for value in values):
        raise place.error("mrope_section", "numbers of pairs")
    return list(values)
