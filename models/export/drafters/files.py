"""Reads EAGLE drafters in their published form and in that of models.eagle.train."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...eagle.config import DrafterConfig
from ...eagle.drafter import Drafter, from_published
from ...llamagen.config import known_fields
from .. import checkpoint
from ..checkpoint import ExportError, State

CONTAINERS = ("model", "state_dict", "state", "drafter")
PUBLISHED_GRIDS = {"t2i": 16, "t2i2": 32}  # input_type of the published LlamaGen drafters


def read_manifest(bundle: Path) -> dict[str, Any]:
    manifest = checkpoint.read_json(bundle / "manifest.json")
    if "target" not in manifest.get("modules", {}):
        raise ExportError(f"{bundle}: no target, a drafter needs one", 4)
    return manifest


def read_settings(path: Path) -> tuple[Mapping[str, Any], State]:
    """Configuration and weights of a published folder, or of a file that training writes."""
    if path.is_dir():
        return checkpoint.read_json(path / "config.json"), checkpoint.read_folder(path)
    content = checkpoint.read_file(path)
    settings = content.get("config") if isinstance(content, Mapping) else None
    if not isinstance(settings, Mapping):
        raise ExportError(f"{path}: no config in the file; expected a drafter's folder or file")
    return settings, checkpoint.unwrap(content, path, CONTAINERS)


def read_drafter(path: Path, manifest: Mapping[str, Any]) -> tuple[DrafterConfig, State]:
    """Shape and weights of a drafter in any layout; they must fit the bundle."""
    settings, state = read_settings(path)
    state = checkpoint.without(state, ("rotary_emb.", "freqs_cis", "lm_head."))
    where = str(path)
    checkpoint.shape_of(state, "embed_tokens.weight", 2, where)
    try:
        if "hidden_size" in settings:
            config = published_config(settings, state, manifest, where)
        else:
            config = DrafterConfig(**known_fields(DrafterConfig, settings))
    except (TypeError, ValueError) as error:
        raise ExportError(f"{where}: config: {error}") from error
    check_fit(config, manifest, where)
    return config, state


def published_config(
    settings: Mapping[str, Any], state: State, manifest: Mapping[str, Any], where: str
) -> DrafterConfig:
    """From a Hugging Face configuration; which parts there are is told by the weights."""
    prompt, grid = manifest["prompt"], manifest["grids"][0]["columns"]
    names = ("num_attention_heads", "intermediate_size", "rms_norm_eps")
    missing = [name for name in names if name not in settings]
    if missing:
        raise ExportError(f"{where}: config.json lacks {missing[0]}")
    if settings.get("rope_scaling"):
        raise ExportError(f"{where}: rope_scaling is {settings['rope_scaling']}, expected none")
    line = has_tokens(manifest) or settings.get("model_type") == "chameleon"
    if line:
        length = manifest["cache"]["max_length"]
    else:
        check_stage(settings, grid, where)
        length = prompt["length"] + grid * grid
    return DrafterConfig(
        hidden=settings["hidden_size"],
        heads=settings["num_attention_heads"],
        kv_heads=settings.get("num_key_value_heads", 0),
        ffn=settings["intermediate_size"],
        vocabulary=state["embed_tokens.weight"].shape[0],
        max_length=length,
        fc_bias="fc.bias" in state,
        input_norm="layers.0.input_layernorm.weight" in state,
        qk_norm="layers.0.self_attn.q_norm.weight" in state,
        norm_eps=settings["rms_norm_eps"],
        rotary="line" if line else "grid",
        rope_base=settings.get("rope_theta" if line else "rope_base", 10000.0),
        grid=grid,
        prompt_length=prompt["length"],
        padding=not line and (prompt["kind"], prompt["align"]) == ("text_features", "end"),
    )


def has_tokens(manifest: Mapping[str, Any]) -> bool:
    """Prompts are tokens, which the drafter embeds; else one id stands in for them."""
    return bool(manifest["prompt"]["kind"] == "tokens")


def check_stage(settings: Mapping[str, Any], grid: int, where: str) -> None:
    """The published LlamaGen drafters are for 256 or for 512 pixels."""
    expected = PUBLISHED_GRIDS.get(settings.get("input_type", ""), grid)
    if expected != grid and grid in PUBLISHED_GRIDS.values():
        raise ExportError(
            f"{where}: input_type {settings['input_type']} is for a grid of {expected} x "
            f"{expected}, the bundle draws {grid} x {grid}"
        )


def check_fit(config: DrafterConfig, manifest: Mapping[str, Any], where: str) -> None:
    """The drafter reads the target's features, embeds its tokens and knows its picture."""
    check_equal(where, ("hidden", config.hidden, "target.features", manifest["target"]["features"]))
    check_tokens(config, manifest, where)


def check_tokens(config: DrafterConfig, manifest: Mapping[str, Any], where: str) -> None:
    """The drafter embeds the target's tokens and knows its picture."""
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
    """What the drafter has, and what the bundle has for it."""
    for name, got, key, expected in pairs:
        if got != expected:
            raise ExportError(f"{where}: {name} is {got}, the bundle's {key} is {expected}")


def load_drafter(config: DrafterConfig, state: State, where: str) -> Drafter:
    """The drafter in the precision of its checkpoint."""
    for name, tensor in state.items():
        if not tensor.is_floating_point():
            raise ExportError(f"{where}: {name} is {tensor.dtype}, expected floating point")
    try:
        drafter = from_published(config, state)
    except RuntimeError as error:  # torch lists every key and shape on a line of its own
        reason = re.sub(r"\s+", " ", str(error).partition("\n")[2]).strip()
        raise ExportError(f"{where}: {reason[:300]}") from error
    return drafter.to(state["embed_tokens.weight"].dtype).requires_grad_(False)
