"""Adds a FLASH drafter to a bundle: a published folder, or what models.heads.train writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...bundle import BundleModule, Storage
from ...eagle.drafter import rotary_table
from ...heads.flash import Flash, FlashConfig, FlashLayerConfig
from ...heads.flash_module import FlashModule, flash_module
from ...recording import Call
from ...transformer.head import Head, keep_head
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..common import SPARE_POSITIONS, STORAGES, seeded
from ..config_file import MOST, Section, rope_base
from .attach import (
    add_options,
    add_text_option,
    attach,
    drafter_calls,
    layer_entries,
    of_texts,
    prompt_entry,
    target_head,
)
from .files import ANCHORS, check_fit, read_manifest, read_settings, trained_config


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "flash",
        help="FLASH drafter for an existing bundle",
        description="Adds a drafter that gives several tokens in a pass to a bundle: a published folder "
        "with config.json, or a file of models.heads.train.",
    )
    parser.set_defaults(run=run)
    add_options(parser)
    add_text_option(parser)


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    if options.text:
        manifest = of_texts(options.bundle, manifest)
    config, state = read_flash(options.drafter, manifest)
    check_fit(config.layer, manifest, str(options.drafter))
    with unfilled():
        flash = Flash(config)
    checkpoint.load_strictly(flash, state, str(options.drafter))
    flash.requires_grad_(False)

    def make(folder: Path, manifest: dict[str, Any]) -> BundleModule:
        storage = STORAGES.get(options.dtype) or Storage(checkpoint.widest(flash.parameters()))
        length = manifest["cache"]["max_length"] + SPARE_POSITIONS
        part = flash_part(flash, target_head(folder, manifest, options.text), length, storage)
        part.entries.update(prompt_entry(config.layer, manifest))
        return part

    attach(options.bundle, options.name, options.overwrite, make, texts=options.text)


def read_flash(path: Path, manifest: Mapping[str, Any]) -> tuple[FlashConfig, State]:
    where = str(path)
    settings, state = read_settings(path, ANCHORS)
    state = checkpoint.without(state, ("layers.rotary_emb.", "lm_head."))
    checkpoint.shape_of(state, "embed_tokens.weight", 2, where)
    if path.is_dir() or "hidden_size" in settings:
        return published_config(settings, state, manifest), state
    return trained_config(FlashConfig, settings), state


def published_config(settings: Section, state: State, manifest: Mapping[str, Any]) -> FlashConfig:
    """Reads groups, inner width and features of a pass from the weights: the file's num_key_value_heads
    is none of them."""
    where = settings.where
    hidden = settings.integer("hidden_size", most=MOST["dim"])
    heads = settings.integer("num_attention_heads", most=MOST["n_head"])
    if hidden % (2 * heads):
        raise settings.error("num_attention_heads", f"a divisor of half the width of {hidden}")
    rows = checkpoint.shape_of(state, "layers.k_proj.weight", 2, where)[0]
    groups, rest = divmod(rows, hidden // heads)
    ffn = checkpoint.shape_of(state, "layers.ar_proj.0.weight", 2, where)[0]
    outputs = checkpoint.shape_of(state, "layers.ar_proj.2.weight", 2, where)[0]
    ahead, beyond = divmod(outputs, hidden)
    if rest or beyond or not groups or not ahead:
        raise ExportError(
            f"{where}: {rows} rows of keys and {outputs} outputs do not fit {heads} heads in a width "
            f"of {hidden}"
        )
    layer = FlashLayerConfig(
        hidden,
        heads,
        ffn,
        len(state["embed_tokens.weight"]),
        manifest["cache"]["max_length"],
        groups,
        rotary="line",
        rope_base=rope_base(settings),
        prompt_length=manifest["prompt"]["length"],
    )
    return FlashConfig(layer, ahead)


def flash_part(
    flash: Flash,
    head: Head,
    length: int,
    storage: Storage,
    make: Callable[[Flash, Any], FlashModule] = flash_module,
) -> BundleModule:
    """The module for positions below `length`; head and angles keep their precision."""
    config = flash.config
    layer = replace(config.layer, max_length=length)
    module = make(flash, head).to(storage.dtype)
    module.rotary = rotary_table(layer)
    keep_head(module, head)
    entries = {"kind": "flash", "heads": config.heads, **layer_entries(layer)}
    if config.queries:
        entries.update(queries=config.queries, window=config.window)
    return BundleModule(module, storage.dtype, calls_of(config), entries, bits=storage.bits)


def calls_of(config: FlashConfig) -> list[Call]:
    *calls, last = drafter_calls(config.layer)
    hidden: Tensor = last.inputs[0]
    calls.append(Call("heads", [hidden[:, :1]]))
    if config.queries:
        random, width = seeded(), config.layer.hidden
        features = torch.randn(1, 9, width, generator=random)
        calls.append(Call("compress", [features, torch.tensor([5])]))
        embeddings, own, positions, _, lengths, slots = calls[2].inputs
        rows = torch.randn(1, config.queries, width, generator=random)
        positions = torch.cat([positions, torch.arange(config.queries)[None]], 1)
        count = positions.shape[1]
        slots = torch.nn.functional.pad(slots, (0, 0, 0, count))
        tree = torch.full((1, count, 1 + count // 64), -1, dtype=torch.int64)
        calls.append(
            Call("forward_compressed", [embeddings, own, rows, positions, tree, lengths, slots])
        )
    return calls
