"""Adds Medusa heads to a bundle: a published file or folder, or what models.medusa.train writes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..bundle import BundleModule, Storage
from ..medusa.heads import Heads, HeadsConfig
from ..medusa.module import HeadsModule
from ..recording import Call
from . import checkpoint
from .checkpoint import ExportError, State
from .common import STORAGES, seeded
from .drafter import attach
from .drafter_files import CONTAINERS, read_manifest

KIND = "medusa"
PREFIX = "medusa_head."  # of files that hold the target, too


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "medusa",
        help="Medusa heads for an existing bundle",
        description="Adds heads that guess several tokens ahead to a bundle: a published "
        "medusa_lm_head.pt, or a file of models.medusa.train.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    parser.add_argument("--name", required=True, help="the heads' name in the bundle")
    parser.add_argument("--heads", type=Path, required=True, metavar="FILE")
    parser.add_argument("--dtype", default="keep", choices=("keep", *STORAGES), help="storage")
    parser.add_argument("--overwrite", action="store_true", help="replace what has the same name")


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    heads = read_heads(options.heads, manifest)
    storage = STORAGES.get(options.dtype) or Storage(heads[0][-1].weight.dtype)
    attach(options.bundle, options.name, options.overwrite, lambda *_: heads_part(heads, storage))


def read_heads(path: Path, manifest: Mapping[str, Any]) -> Heads:
    """Heads of any layout, for the codes of the bundle's pictures."""
    state = checkpoint.read_folder(path) if path.is_dir() else read_state(path)
    if any(name.startswith(PREFIX) for name in state):
        state = {n.removeprefix(PREFIX): w for n, w in state.items() if n.startswith(PREFIX)}
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(linear\.weight|linear\.bias|weight)", n) for n in state]
    if not found or None in found:
        wrong = next(name for name, match in zip([*state, ""], [*found, None]) if match is None)
        raise ExportError(
            f"{path}: got {wrong or 'nothing'}, expected 0.0.linear.weight, 0.1.weight, ..."
        )
    places = [(int(match[1]), int(match[2])) for match in found if match]
    count, blocks = 1 + max(head for head, _ in places), max(block for _, block in places)
    vocabulary, hidden = checkpoint.shape_of(state, f"0.{blocks}.weight", 2, str(path))
    expected, head = manifest["target"]["hidden"], manifest["target"]["head"]
    if hidden != expected:
        raise ExportError(f"{path}: hidden: got {hidden}, the target has {expected}")
    first = manifest["tokens"]["first_image_id"]
    if vocabulary != head:
        if vocabulary < first + head:
            raise ExportError(f"{path}: vocabulary: got {vocabulary}, the target's head has {head}")
        for number in range(count):  # of all tokens; pictures need the codes
            name = f"{number}.{blocks}.weight"
            state[name] = state[name][first : first + head].clone()
    with torch.device("meta"):
        heads = Heads(HeadsConfig(hidden, head, count, blocks))
    checkpoint.load_strictly(heads, state, str(path))
    return heads.requires_grad_(False)


def read_state(path: Path) -> State:
    content = checkpoint.read_file(path)
    return checkpoint.unwrap(content, path, CONTAINERS)


def heads_part(heads: Heads, storage: Storage) -> BundleModule:
    config = heads.config
    module = HeadsModule(heads).to(storage.dtype)
    calls = [Call("heads", [torch.randn(2, 1, config.hidden, generator=seeded())])]
    entries = {"kind": KIND, "heads": config.heads}
    return BundleModule(module, storage.dtype, calls, entries, bits=storage.bits)
