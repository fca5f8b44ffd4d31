"""Adds an EAGLE drafter to a bundle: a published folder, or what models.eagle.train writes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from ...bundle import BundleModule, Storage
from ...eagle.drafter import Drafter, rotary_table
from ...eagle.module import DrafterModule, drafter_module
from ...transformer.head import Head, keep_head
from ..checkpoint import ExportError, widest
from ..common import SPARE_POSITIONS, STORAGES
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
from .files import check_fit, load_drafter, read_drafter, read_manifest

KIND = "eagle"  # of the drafters that this module makes


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "drafter",
        help="EAGLE drafter for an existing bundle",
        description="Adds a published LlamaGen, Anole or Lumina-mGPT drafter, or an own one, to a "
        "bundle; its head is the one of the bundle's target.",
    )
    parser.set_defaults(run=run)
    add_options(parser)
    add_text_option(parser)
    parser.add_argument(
        "--neighbours", type=Path, metavar="FILE", help="table of nearest codes (.npy) to add"
    )


def run(options: argparse.Namespace) -> None:
    if options.text and options.neighbours:
        raise ExportError("--neighbours: got a file, expected none beside --text", 2)
    manifest = read_manifest(options.bundle)
    if options.text:
        manifest = of_texts(options.bundle, manifest)
    config, state = read_drafter(options.drafter, manifest)
    drafter = load_drafter(config, state, str(options.drafter))
    table = None
    if options.neighbours:
        table = read_neighbours(options.neighbours, manifest["tokens"]["codebook_size"])
    storage = STORAGES.get(options.dtype)
    attach_drafter(
        options.bundle, options.name, drafter, storage, options.overwrite, table, options.text
    )


def attach_drafter(
    bundle: Path,
    name: str,
    drafter: Drafter,
    storage: Storage | None = None,
    overwrite: bool = False,
    neighbours: Tensor | None = None,
    texts: bool = False,
) -> None:
    """Adds the drafter, and a table uint16 [codes,K] of neighbours, to a bundle, or changes nothing.

    storage: in the precision of the weights by default. texts: it drafts texts.
    """

    def make(folder: Path, manifest: dict[str, Any]) -> BundleModule:
        check_fit(drafter.config, manifest, f"drafter {name}")
        length = manifest["cache"]["max_length"] + SPARE_POSITIONS
        part = drafter_part(drafter, target_head(folder, manifest, texts), length, storage)
        part.entries.update(prompt_entry(drafter.config, manifest))
        return part

    attach(bundle, name, overwrite, make, neighbours, texts)


def drafter_part(
    drafter: Drafter,
    head: Head,
    length: int,
    wanted: Storage | None,
    make: Callable[[Drafter, Any], DrafterModule] = drafter_module,
) -> BundleModule:
    """The module for positions below `length`; head and angles keep their precision."""
    config = replace(drafter.config, max_length=length)
    storage = wanted or Storage(widest(drafter.parameters()))
    module = make(drafter, head).to(storage.dtype)
    module.rotary = rotary_table(config)
    keep_head(module, head)
    entries = {"kind": KIND, **layer_entries(config)}
    if config.padding:
        entries["padding"] = True
    return BundleModule(module, storage.dtype, drafter_calls(config), entries, bits=storage.bits)


def read_neighbours(path: Path, codes: int) -> Tensor:
    """A published table .npy [codes,K]: the nearest codes of every code, nearest first."""
    try:
        table = numpy.load(path, allow_pickle=False)
    except FileNotFoundError as error:
        raise ExportError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: no .npy table: {error}") from error
    integers = numpy.issubdtype(table.dtype, numpy.integer)
    if table.ndim != 2 or table.shape[0] != codes or not integers:
        got = f"{table.dtype} of shape {list(table.shape)}"
        raise ExportError(f"{path}: got {got}, expected integers [{codes}, K]")
    if table.size == 0 or table.min() < 0 or table.max() >= codes:
        raise ExportError(f"{path}: expected codes 0 to {codes - 1}")
    if (table == numpy.arange(codes)[:, None]).any():
        raise ExportError(f"{path}: a code is its own neighbour; expected others only")
    return torch.from_numpy(table.astype(numpy.uint16))
