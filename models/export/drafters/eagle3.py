"""Adds an EAGLE-3 drafter to a bundle: a published folder, or what models.eagle.train writes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from ...archive import archived_tensor
from ...bundle import BundleModule, Storage
from ...eagle.config import DrafterConfig
from ...eagle.drafter import rotary_table
from ...eagle.eagle3 import Eagle3Config, Eagle3Drafter, default_layers
from ...eagle.eagle3_module import Eagle3Module
from ...recording import Call
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..common import SPARE_POSITIONS, STORAGES, seeded
from ..config_file import Section, make_config, rope_base
from .attach import add_options, attach, drafter_calls, layer_entries, prompt_entry
from .files import (
    ANCHORS,
    LAYER_SIZES,
    check_tokens,
    layer_facts,
    read_manifest,
    read_settings,
    trained_config,
)

INTEGERS = (
    torch.uint8, torch.uint16, torch.uint32, torch.uint64,
    torch.int8, torch.int16, torch.int32, torch.int64,
)  # fmt: skip


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "eagle-3",
        help="EAGLE-3 drafter for an existing bundle",
        description="Adds a drafter that reads inner layers of the target to a bundle: a published "
        "folder with config.json, or a file of models.eagle.train.",
    )
    parser.set_defaults(run=run)
    add_options(parser)
    parser.add_argument(
        "--layers",
        type=int,
        nargs="+",
        metavar="N",
        help="layers of the target whose inputs it reads, default: as published, 2, the middle one, "
        "the last but two",
    )


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    where = str(options.drafter)
    settings, state = read_settings(options.drafter, ANCHORS)
    config = read_config(settings, state, manifest, where)
    if options.layers:
        config = replace(config, layers=tuple(options.layers))
    check_tokens(config.layer, manifest, where)
    check_layers(config, manifest, where)
    check_map(config, state, where)
    drafter = load_eagle3(config, completed(state, config, options.bundle, manifest), where)
    attach(
        options.bundle,
        options.name,
        options.overwrite,
        lambda _, manifest: eagle3_part(drafter, STORAGES.get(options.dtype), manifest),
    )


def read_config(
    settings: Section, state: State, manifest: Mapping[str, Any], where: str
) -> Eagle3Config:
    """Reads a Hugging Face configuration or one of our training; sizes come from the weights."""
    width, features = checkpoint.shape_of(state, "fc.weight", 2, where)
    entries = checkpoint.shape_of(state, "lm_head.weight", 2, where)[0]
    if "hidden_size" not in settings:
        config: Eagle3Config = trained_config(Eagle3Config, settings)
        return config
    settings.fixed({"hidden_size": width, "draft_vocab_size": entries})
    facts = {
        **layer_facts(settings),
        "hidden": width,
        "vocabulary": manifest["tokens"]["vocabulary"],
        "max_length": manifest["cache"]["max_length"],
        "rotary": "line",
        "rope_base": rope_base(settings),
        "prompt_length": manifest["prompt"]["length"],
    }
    layer = make_config(DrafterConfig, facts, settings.where, settings, LAYER_SIZES)
    return Eagle3Config(layer, features, entries, default_layers(manifest["cache"]["layers"]))


def check_layers(config: Eagle3Config, manifest: Mapping[str, Any], where: str) -> None:
    """The target has the layers, in this order, and what they get side by side is as wide as fc reads."""
    layers, count = config.layers, manifest["cache"]["layers"]
    if not layers or list(layers) != sorted({n for n in layers if 0 <= n < count}):
        raise ExportError(
            f"{where}: layers: got {list(layers)}, expected ascending ones below {count}; give --layers"
        )
    got, expected = config.features, len(layers) * manifest["target"]["hidden"]
    if got != expected:
        raise ExportError(
            f"{where}: fc.weight reads {got} features, {len(layers)} layers of the target give {expected}"
        )


def check_map(config: Eagle3Config, state: State, where: str) -> None:
    """ExportError: nothing says which ids the entries of a smaller draft vocabulary are."""
    got, all_ids = config.draft_vocabulary, config.layer.vocabulary
    if "d2t" not in state and got != all_ids:
        raise ExportError(
            f"{where}: missing key d2t: lm_head.weight has {got} entries, the bundle {all_ids} ids"
        )


def completed(
    state: State, config: Eagle3Config, bundle: Path, manifest: Mapping[str, Any]
) -> State:
    """Published files may leave out the target's embedding, and the map of a draft vocabulary that is all."""
    file = bundle / manifest["modules"]["target"]["file"]
    all_ids = torch.zeros(config.draft_vocabulary, dtype=torch.int64)
    state = {"d2t": all_ids, **state}
    if "embed_tokens.weight" not in state:
        embedding = archived_tensor(file, "embedding")
        if embedding is None:
            raise ExportError(f"{file}: no embedding, and the drafter has none")
        state["embed_tokens.weight"] = embedding.to(state["fc.weight"])
    return without_spare(state)


def without_spare(state: State) -> State:
    return checkpoint.without(state, ("midlayer.self_attn.rotary_emb.",))


def load_eagle3(config: Eagle3Config, state: State, where: str) -> Eagle3Drafter:
    with unfilled():
        drafter = Eagle3Drafter(config)
    table = state["d2t"]
    if table.is_nested or table.layout != torch.strided or table.is_meta:
        raise ExportError(f"{where}: d2t: expected a dense tensor of whole numbers")
    if table.dtype not in INTEGERS or table.shape != (config.draft_vocabulary,):
        raise ExportError(
            f"{where}: d2t: got {table.dtype} of shape {list(table.shape)}, expected "
            f"{config.draft_vocabulary} integers"
        )
    table = table.long()
    ids, last = table + torch.arange(len(table)), config.layer.vocabulary - 1
    if len(ids.unique()) != len(ids) or int(ids.min()) < 0 or int(ids.max()) > last:
        raise ExportError(f"{where}: d2t: expected different ids, 0 to {last}")
    del drafter.d2t, drafter.t2d  # no weights
    checkpoint.load_strictly(drafter, checkpoint.without(state, ("d2t", "t2d")), where)
    drafter.register_buffer("d2t", table)
    drafter.rotary = rotary_table(config.layer)
    return drafter.requires_grad_(False)


def eagle3_part(
    drafter: Eagle3Drafter, wanted: Storage | None, manifest: Mapping[str, Any]
) -> BundleModule:
    """The module for all positions of the target; its angles keep their precision."""
    config = drafter.config
    layer = replace(config.layer, max_length=manifest["cache"]["max_length"] + SPARE_POSITIONS)
    first, codes = manifest["tokens"]["first_image_id"], manifest["target"]["head"]
    storage = wanted or Storage(checkpoint.widest(drafter.parameters()))
    module = Eagle3Module(drafter, first, codes).to(storage.dtype)
    if not module.known:
        raise ExportError("the drafter's vocabulary has no id of an image")
    module.rotary = rotary_table(layer)
    entries = {"kind": "eagle-3", "feature_layers": list(config.layers), **layer_entries(layer)}
    entries.update(prompt_entry(layer, manifest))
    return BundleModule(module, storage.dtype, calls_of(config), entries, bits=storage.bits)


def calls_of(config: Eagle3Config) -> list[Call]:
    """With features of its own, and of the target."""
    calls = drafter_calls(config.layer)
    chain = calls[2]
    embeddings, _, *rest = chain.inputs
    features = torch.randn(1, embeddings.shape[1], config.features, generator=seeded())
    return [*calls, Call("forward", [embeddings, features, *rest])]
