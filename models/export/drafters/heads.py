"""Adds Medusa heads or an MLP speculator to a bundle: published ones, or what models.heads.train writes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ...bundle import BundleModule, Storage
from ...heads.medusa import Heads, HeadsConfig
from ...heads.medusa_module import HeadsModule
from ...heads.mlp import TIED, Speculator, SpeculatorConfig
from ...heads.mlp_module import SpeculatorModule
from ...recording import Call
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..common import STORAGES, seeded
from .attach import attach
from .files import CONTAINERS, read_manifest

PREFIXES = ("medusa_head.", "speculator.")  # of files that hold more


def add_parsers(families: Any) -> None:
    for kind, what, files in (
        ("medusa", "Medusa heads", "a published medusa_lm_head.pt"),
        ("mlp", "MLP speculator", "a published folder with config.json"),
    ):
        parser = families.add_parser(
            kind,
            help=f"{what} for an existing bundle",
            description=f"Adds {what} to a bundle: {files}, or a file of models.heads.train.",
        )
        parser.set_defaults(run=run)
        parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
        parser.add_argument("--name", required=True, help="the name in the bundle")
        parser.add_argument("--heads", type=Path, required=True, metavar="PATH")
        parser.add_argument("--dtype", default="keep", choices=("keep", *STORAGES), help="storage")
        parser.add_argument("--overwrite", action="store_true", help="replace the same name")


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    make = heads_part if options.family == "medusa" else speculator_part
    read = read_heads if options.family == "medusa" else read_speculator
    guesser: Any = read(options.heads, manifest)
    dtype = next(guesser.parameters()).dtype
    part = make(guesser, STORAGES.get(options.dtype) or Storage(dtype), manifest)
    attach(options.bundle, options.name, options.overwrite, lambda *_: part)


def without_prefix(state: State) -> State:
    for prefix in PREFIXES:
        if any(name.startswith(prefix) for name in state):
            return {n.removeprefix(prefix): w for n, w in state.items() if n.startswith(prefix)}
    return state


def fitting(path: Path, key: str, got: int, expected: int) -> None:
    if got != expected:
        raise ExportError(f"{path}: {key}: got {got}, the target has {expected}")


def read_heads(path: Path, manifest: Mapping[str, Any]) -> Heads:
    """Heads of any layout, for the codes of the bundle's pictures."""
    state = without_prefix(checkpoint.read_folder(path) if path.is_dir() else read_state(path))
    found = [re.fullmatch(r"(\d+)\.(\d+)\.(linear\.weight|linear\.bias|weight)", n) for n in state]
    if not found or None in found:
        wrong = next(name for name, match in zip([*state, ""], [*found, None]) if match is None)
        raise ExportError(
            f"{path}: got {wrong or 'nothing'}, expected 0.0.linear.weight, 0.1.weight, ..."
        )
    places = [(int(match[1]), int(match[2])) for match in found if match]
    count, blocks = 1 + max(head for head, _ in places), max(block for _, block in places)
    vocabulary, hidden = checkpoint.shape_of(state, f"0.{blocks}.weight", 2, str(path))
    head = manifest["target"]["head"]
    fitting(path, "hidden", hidden, manifest["target"]["hidden"])
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


def heads_part(heads: Heads, storage: Storage, manifest: Mapping[str, Any]) -> BundleModule:
    config = heads.config
    module = HeadsModule(heads).to(storage.dtype)
    calls = [Call("heads", [torch.randn(2, 1, config.hidden, generator=seeded())])]
    entries = {"kind": "medusa", "heads": config.heads}
    return BundleModule(module, storage.dtype, calls, entries, bits=storage.bits)


def read_speculator(path: Path, manifest: Mapping[str, Any]) -> Speculator:
    """A published folder, or a file of models.heads.train."""
    if path.is_dir():
        settings, state = checkpoint.read_json(path / "config.json"), checkpoint.read_folder(path)
    else:
        content = checkpoint.read_file(path)
        settings = content.get("config", {}) if isinstance(content, Mapping) else {}
        state = checkpoint.unwrap(content, path, CONTAINERS)
    state = without_prefix(state)
    vocabulary, inner = checkpoint.shape_of(state, "emb.0.weight", 2, str(path))
    _, hidden = checkpoint.shape_of(state, "proj.0.weight", 2, str(path))
    fitting(path, "hidden", hidden, manifest["target"]["hidden"])
    fitting(path, "vocabulary", vocabulary, manifest["tokens"]["vocabulary"])
    tied = bool(settings.get("tie_weights", settings.get("tied", False)))
    steps = settings.get("n_predict", settings.get("heads", checkpoint.count_blocks(state, "emb.")))
    scaled = bool(settings.get("scale_input", False))
    config = SpeculatorConfig(hidden, vocabulary, int(steps), inner, tied, scaled)
    with torch.device("meta"):
        speculator = Speculator(config)
    if tied:
        state = untied(state, config.heads)
    checkpoint.load_strictly(speculator, state, str(path))
    return speculator.requires_grad_(False)


def untied(state: State, steps: int) -> State:
    """Every step's weights, where files may hold shared ones once or for every step."""
    full = dict(state)
    for part, first in TIED:
        shared = {n: w for n, w in state.items() if n.startswith(f"{part}.{first}.")}
        for step in range(first + 1, steps):
            full.update({f"{part}.{step}.{n.split('.', 2)[2]}": w for n, w in shared.items()})
    return full


def speculator_part(
    speculator: Speculator, storage: Storage, manifest: Mapping[str, Any]
) -> BundleModule:
    config, random = speculator.config, seeded()
    first, codes = manifest["tokens"]["first_image_id"], manifest["target"]["head"]
    module = SpeculatorModule(speculator, first, codes).to(storage.dtype)
    calls = []
    for number in range(min(2, config.heads)):
        width = config.inner if number else config.hidden
        ids = torch.randint(config.vocabulary, (2, 3), generator=random)
        state = torch.randn(2, 3, width, generator=random)
        calls.append(Call("step", [state, ids, torch.tensor(number)]))
        after = torch.randn(2, 3, config.inner, generator=random)
        calls.append(Call("logits", [after, torch.tensor(number)]))
    entries = {"kind": "mlp", "heads": config.heads}
    return BundleModule(module, storage.dtype, calls, entries, bits=storage.bits)
