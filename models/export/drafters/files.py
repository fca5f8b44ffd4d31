"""Reads EAGLE drafters in their published form and in that of models.eagle.train."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...bundle import check_manifest
from ...eagle.config import DrafterConfig
from ...eagle.drafter import Drafter, rotary_table, with_own_norms
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..config_file import (
    MOST,
    Section,
    language,
    make_config,
    refuse_quantised,
    rope_base,
)

ANCHORS = ("fc.weight",)  # what all drafters with a layer have
GRID_BASE = 10000.0  # a constant of LlamaGen's code, which published drafters do not repeat
LAYER_SIZES = {
    "heads": "num_attention_heads", "kv_heads": "num_key_value_heads", "hidden": "hidden_size",
}  # fmt: skip
MOST_TRAINED = {
    "hidden": MOST["dim"], "heads": MOST["n_head"], "kv_heads": MOST["n_head"], "ffn": MOST["ffn_dim"],
    "max_length": 1 << 17, "grid": 1 << 10, "prompt_length": 1 << 16, "queries": 1 << 12,
}  # fmt: skip
PUBLISHED_GRIDS = {"t2i": 16, "t2i2": 32}  # input_type of the published LlamaGen drafters


def read_manifest(bundle: Path) -> dict[str, Any]:
    manifest = checkpoint.read_json(bundle / "manifest.json")
    try:
        check_manifest(manifest)
    except ValueError as error:
        raise ExportError(f"{bundle}/manifest.json: {error}") from error
    if "target" not in manifest["modules"]:
        raise ExportError(f"{bundle}: no target, a drafter needs one", 4)
    return manifest


def read_settings(path: Path, anchors: Sequence[str]) -> tuple[Section, State]:
    """Configuration and weights of a published folder, or of a file that training writes."""
    if path.is_dir():
        settings = Section.read(path / "config.json")
        refuse_quantised(settings)
        return language(settings), checkpoint.read_folder(path, anchors)
    content = checkpoint.read_file(path)
    if not isinstance(content, Mapping) or not isinstance(content.get("config"), Mapping):
        raise ExportError(f"{path}: no config in the file; expected a drafter's folder or file")
    return trained_section(content, path), checkpoint.unwrap(content, path, anchors)


def trained_section(content: Any, path: Path) -> Section:
    """The configuration in a file that training writes; an empty one where there is none."""
    settings = content.get("config") if isinstance(content, Mapping) else None
    return Section(settings if isinstance(settings, Mapping) else {}, str(path), "config.")


def trained_config(kind: Any, given: Section) -> Any:
    """A configuration that training wrote, by the types of its fields; what it lacks has the default."""
    values = {}
    for field in dataclasses.fields(kind):
        name, form = field.name, str(field.type)
        if name not in given and field.default is not dataclasses.MISSING:
            continue
        if form == "int":
            least = 0 if field.default == 0 else 1
            values[name] = given.integer(name, least=least, most=MOST_TRAINED.get(name, 1 << 24))
        elif form == "float":
            rotary = name == "rope_base"
            values[name] = given.rotary_base(name) if rotary else given.number(name, 0.1)
        elif form == "bool":
            values[name] = given.flag(name)
        elif form == "str":
            values[name] = given.text(name)
        elif form == "DrafterConfig":
            layer = getattr(kind, "LAYER", DrafterConfig)
            values[name] = trained_config(layer, inner_section(given, name))
        else:
            values[name] = tuple(integers(given, name))
    return make_config(kind, values, given.where)


def inner_section(given: Section, name: str) -> Section:
    if not isinstance(given.values.get(name), Mapping):
        raise given.error(name, "an object")
    return Section(given.values[name], given.where, f"{given.prefix}{name}.")


def integers(given: Section, name: str) -> list[int]:
    found = given.values.get(name)
    if not isinstance(found, (list, tuple)) or not all(type(n) is int for n in found):
        raise given.error(name, "a list of whole numbers")
    return list(found)


def read_drafter(path: Path, manifest: Mapping[str, Any]) -> tuple[DrafterConfig, State]:
    """Shape and weights of a drafter in any layout; they must fit the bundle."""
    settings, state = read_settings(path, ANCHORS)
    state = checkpoint.without(state, ("rotary_emb.", "freqs_cis", "lm_head."))
    where = str(path)
    checkpoint.shape_of(state, "embed_tokens.weight", 2, where)
    if "hidden_size" in settings:
        config = published_config(settings, state, manifest)
    else:
        config = trained_config(DrafterConfig, settings)
    check_fit(config, manifest, where)
    return config, state


def published_config(settings: Section, state: State, manifest: Mapping[str, Any]) -> DrafterConfig:
    """Reads a Hugging Face configuration; the weights say which parts there are."""
    prompt, grid = manifest["prompt"], manifest["grids"][0]["columns"]
    line = has_tokens(manifest) or settings.values.get("model_type") == "chameleon"
    if line:
        length = manifest["cache"]["max_length"]
    else:
        check_stage(settings, grid)
        length = prompt["length"] + grid * grid
    facts = dict(
        **layer_facts(settings),
        vocabulary=state["embed_tokens.weight"].shape[0],
        max_length=length,
        fc_bias="fc.bias" in state,
        input_norm="layers.0.input_layernorm.weight" in state,
        qk_norm="layers.0.self_attn.q_norm.weight" in state,
        rotary="line" if line else "grid",
        rope_base=rope_base(settings) if line else rope_base(settings, "rope_base", GRID_BASE),
        grid=grid,
        prompt_length=prompt["length"],
        padding=not line and (prompt["kind"], prompt["align"]) == ("text_features", "end"),
    )
    return make_config(DrafterConfig, facts, settings.where, settings, LAYER_SIZES)


def layer_facts(settings: Section) -> dict[str, Any]:
    """Sizes of a drafter's layer by a published configuration."""
    settings.fixed({"hidden_act": "silu"})
    return {
        "hidden": settings.integer("hidden_size", most=MOST["dim"]),
        "heads": settings.integer("num_attention_heads", most=MOST["n_head"]),
        "kv_heads": settings.integer("num_key_value_heads", 0, most=MOST["n_head"]),
        "ffn": settings.integer("intermediate_size", most=MOST["ffn_dim"]),
        "norm_eps": settings.number("rms_norm_eps", 0.1),
    }


def has_tokens(manifest: Mapping[str, Any]) -> bool:
    """Prompts are tokens, which the drafter embeds; else one id stands in for them."""
    return bool(manifest["prompt"]["kind"] == "tokens")


def check_stage(settings: Section, grid: int) -> None:
    """The published LlamaGen drafters are for 256 or for 512 pixels."""
    kind = settings.text("input_type", "")
    expected = PUBLISHED_GRIDS.get(kind, grid)
    if expected != grid and grid in PUBLISHED_GRIDS.values():
        raise ExportError(
            f"{settings.where}: input_type {kind} is for a grid of {expected} x "
            f"{expected}, the bundle generates {grid} x {grid}"
        )


def check_fit(config: DrafterConfig, manifest: Mapping[str, Any], where: str) -> None:
    """The drafter reads the target's features, embeds its tokens and knows its image."""
    check_equal(where, ("hidden", config.hidden, "target.features", manifest["target"]["features"]))
    check_tokens(config, manifest, where)


def check_tokens(config: DrafterConfig, manifest: Mapping[str, Any], where: str) -> None:
    """The drafter embeds the target's tokens and knows its image."""
    if config.rotary == "grid":
        if has_tokens(manifest):
            raise ExportError(f"{where}: rotary is grid, the bundle's prompts of tokens need line")
        grid = manifest["grids"][0]
        length = manifest["prompt"]["length"]
        check_equal(
            where,
            ("grid", config.grid, "grids[0].columns", grid["columns"]),
            ("prompt_length", config.prompt_length, "prompt.length", length),
        )
    tokens = manifest["tokens"]["vocabulary"]
    if config.vocabulary != tokens:  # equal in every family: codes of LlamaGen, else all ids
        raise ExportError(
            f"{where}: embeds {config.vocabulary} tokens, expected the {tokens} of the bundle; is the "
            "drafter for another model?"
        )


def check_equal(where: str, *pairs: tuple[str, int, str, int]) -> None:
    """ExportError: a size of the drafter differs from the bundle's."""
    for name, got, key, expected in pairs:
        if got != expected:
            raise ExportError(f"{where}: {name} is {got}, the bundle's {key} is {expected}")


def load_drafter(config: DrafterConfig, state: State, where: str) -> Drafter:
    """The drafter in the precision of its checkpoint."""
    state = {name: checkpoint.usable(name, tensor, where) for name, tensor in state.items()}
    with unfilled():
        drafter = Drafter(config)
    checkpoint.load_strictly(drafter, with_own_norms(drafter, state), where)
    drafter.rotary = rotary_table(config)
    return drafter.to(drafter.embed_tokens.weight.dtype).requires_grad_(False)
