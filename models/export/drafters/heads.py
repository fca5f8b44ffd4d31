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
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State
from ..common import STORAGES, add_attach_options, add_dtype_option, seeded
from ..config_file import Section
from ..messages import listed, note
from .attach import attach
from .files import read_manifest, trained_section

MEDUSA = ("0.0.linear.weight", "0.0.weight")  # anchors of both kinds
SPECULATOR = ("emb.0.weight",)
MOST_HEADS = 64


def add_parsers(families: Any) -> None:
    for kind, what, files in (
        ("medusa", "Medusa heads", "a published medusa_lm_head.pt"),
        ("mlp", "an MLP speculator", "a published folder with config.json"),
    ):
        parser = families.add_parser(
            kind,
            help=f"{what.removeprefix('an ')} for an existing bundle",
            description=f"Adds {what} to a bundle: {files}, or a file of models.heads.train.",
        )
        parser.set_defaults(run=run)
        add_attach_options(parser, "the name in the bundle")
        parser.add_argument("--heads", type=Path, required=True, metavar="PATH")
        add_dtype_option(parser, "storage")


def run(options: argparse.Namespace) -> None:
    manifest = read_manifest(options.bundle)
    make = heads_part if options.family == "medusa" else speculator_part
    read = read_heads if options.family == "medusa" else read_speculator
    guesser: Any = read(options.heads, manifest)
    dtype = checkpoint.widest(guesser.parameters())
    part = make(guesser, STORAGES.get(options.dtype) or Storage(dtype), manifest)
    attach(options.bundle, options.name, options.overwrite, lambda *_: part)


def fitting(path: Path, key: str, got: int, expected: int) -> None:
    if got != expected:
        raise ExportError(f"{path}: {key}: got {got}, the target has {expected}")


def read_heads(path: Path, manifest: Mapping[str, Any]) -> Heads:
    """Heads of any layout, for the codes of the bundle's images."""
    if path.is_dir():
        state = checkpoint.read_folder(path, MEDUSA)
    else:
        state = checkpoint.unwrap(checkpoint.read_file(path), path, MEDUSA)
    number = r"(\d{1,4})"
    pattern = rf"{number}\.{number}\.(linear\.weight|linear\.bias|weight)"
    found = [re.fullmatch(pattern, name) for name in state]
    if not found or None in found:
        wrong = next(name for name, match in zip([*state, ""], [*found, None]) if match is None)
        raise ExportError(
            f"{path}: got {wrong or 'nothing'}, expected 0.0.linear.weight, 0.1.weight, ..."
        )
    numbers = [(int(match[1]), int(match[2])) for match in found if match]
    count, blocks = 1 + max(head for head, _ in numbers), max(block for _, block in numbers)
    if count > MOST_HEADS or blocks > MOST_HEADS:
        raise ExportError(
            f"{path}: got {count} heads of {blocks} blocks, expected up to {MOST_HEADS}"
        )
    vocabulary, hidden = checkpoint.shape_of(state, f"0.{blocks}.weight", 2, str(path))
    head = manifest["target"]["head"]
    fitting(path, "hidden", hidden, manifest["target"]["hidden"])
    first = manifest["tokens"]["first_image_id"]
    if vocabulary != head:
        if vocabulary < first + head:
            raise ExportError(f"{path}: vocabulary: got {vocabulary}, the target's head has {head}")
        for number in range(count):  # of all tokens; images need the codes
            name = f"{number}.{blocks}.weight"
            checkpoint.shape_of(state, name, 2, str(path))
            state[name] = state[name][first : first + head].clone()
    with unfilled():
        heads = Heads(HeadsConfig(hidden, head, count, blocks))
    checkpoint.load_strictly(heads, state, str(path))
    return heads.requires_grad_(False)


def heads_part(heads: Heads, storage: Storage, manifest: Mapping[str, Any]) -> BundleModule:
    config = heads.config
    module = HeadsModule(heads).to(storage.dtype)
    calls = [Call("heads", [torch.randn(2, 1, config.hidden, generator=seeded())])]
    entries = {"kind": "medusa", "heads": config.heads}
    return BundleModule(module, storage.dtype, calls, entries, bits=storage.bits)


def read_speculator(path: Path, manifest: Mapping[str, Any]) -> Speculator:
    """A published folder, or a file of models.heads.train."""
    if path.is_dir():
        settings = Section.read(path / "config.json")
        state = checkpoint.read_folder(path, SPECULATOR)
    else:
        content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, SPECULATOR)
        settings = trained_section(content, path)
    vocabulary, inner = checkpoint.shape_of(state, "emb.0.weight", 2, str(path))
    _, hidden = checkpoint.shape_of(state, "proj.0.weight", 2, str(path))
    fitting(path, "hidden", hidden, manifest["target"]["hidden"])
    fitting(path, "vocabulary", vocabulary, manifest["tokens"]["vocabulary"])
    if path.is_dir():
        check_published(settings, hidden, inner)
    tied = settings.flag("tie_weights", settings.flag("tied", False))
    blocks = checkpoint.count_blocks(state, "emb.")
    trained = settings.integer("heads", blocks, most=MOST_HEADS)
    steps = settings.integer("n_predict", trained, most=MOST_HEADS)
    scaled = settings.flag("scale_input", False)
    config = SpeculatorConfig(hidden, vocabulary, steps, inner, tied, scaled)
    with unfilled():
        speculator = Speculator(config)
    if tied:
        state = untied(state, config.heads)
    checkpoint.load_strictly(speculator, state, str(path))
    return speculator.requires_grad_(False)


def check_published(settings: Section, hidden: int, inner: int) -> None:
    """Sizes agree with the weights; 0 is the hidden width. Older files leave out what was false then."""
    settings.fixed({"emb_dim": hidden})
    if inner != hidden or settings.values.get("inner_dim") != 0:
        settings.fixed({"inner_dim": inner})
    absent = [name for name in ("tie_weights", "scale_input") if name not in settings]
    if absent:
        note(f"{settings.where}: leaves out {listed(absent)}, takes false")


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
