"""Adds a refiner of stale drafts to a bundle: what models.heads.train_refiner writes."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...bundle import BundleModule, Storage
from ...heads.refine import Refiner, RefinerConfig
from ...heads.refine_module import RefinerModule
from ...recording import Call
from ...unfilled import unfilled
from .. import checkpoint
from ..common import STORAGES, seeded
from .attach import add_options, attach
from .files import read_manifest
from .heads import fitting


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "refine",
        help="refiner of stale drafts for an existing bundle",
        description="Adds a refiner to a bundle: a file of models.heads.train_refiner.",
    )
    parser.set_defaults(run=run)
    add_options(parser)


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    refiner = read_refiner(options.drafter, manifest)
    storage = STORAGES.get(options.dtype) or Storage(checkpoint.widest(refiner.parameters()))
    part = refiner_part(refiner, storage)
    attach(options.bundle, options.name, options.overwrite, lambda *_: part)


def read_refiner(path: Path, manifest: Mapping[str, Any]) -> Refiner:
    where = str(path)
    state = checkpoint.unwrap(checkpoint.read_file(path), path, ("hidden.weight",))
    codes, inner = checkpoint.shape_of(state, "head.weight", 2, where)
    _, hidden = checkpoint.shape_of(state, "hidden.weight", 2, where)
    _, width = checkpoint.shape_of(state, "embedding.weight", 2, where)
    fitting(path, "hidden", hidden, manifest["target"]["hidden"])
    fitting(path, "codes", codes, manifest["target"]["head"])
    with unfilled():
        refiner = Refiner(RefinerConfig(hidden, codes, inner, width))
    checkpoint.load_strictly(refiner, state, where)
    return refiner.requires_grad_(False)


def refiner_part(refiner: Refiner, storage: Storage) -> BundleModule:
    config, random = refiner.config, seeded()
    module = RefinerModule(refiner).to(storage.dtype)
    hidden = torch.randn(2, 3, config.hidden, generator=random)
    stale = torch.randint(-1, config.codes, (2, 3), generator=random)
    read = torch.randn(2, 1, 2 * config.inner, generator=random)
    state = torch.randn(2, 1, config.inner, generator=random)
    tokens = torch.randint(config.codes, (2, 1), generator=random)
    calls = [
        Call("read", [hidden, stale]),
        Call("step", [read, state, tokens]),
        Call("logits", [state]),
    ]
    return BundleModule(module, storage.dtype, calls, {"kind": "refine"}, bits=storage.bits)
