"""Adds drafters to a bundle, whatever their kind."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ... import ops
from ...archive import archived_tensor
from ...bundle import BundleModule, add_part, edited
from ...eagle.config import DrafterConfig
from ...recording import Call, Recorder, save_tensors
from ...rounding import numbers
from ...scratch import clean_leftovers
from ...transformer.head import NAMES, Head, head_of
from ..checkpoint import ExportError
from ..common import ROLES, add_attach_options, add_dtype_option, decoder_calls, errors_of, seeded
from .files import has_tokens

NEIGHBOURS_FILE = "neighbours.safetensors"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of every exporter of a drafter with a layer."""
    add_attach_options(parser, "the drafter's name in the bundle")
    parser.add_argument(
        "--drafter",
        type=Path,
        required=True,
        metavar="PATH",
        help="folder with config.json and model.safetensors or pytorch_model.bin, or a file of "
        "our training",
    )
    add_dtype_option(parser, "storage precision, default: as in the checkpoint")


def add_text_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--text",
        action="store_true",
        help="it drafts texts about images, for bundles that describe images",
    )


def of_texts(bundle: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest with what drafters of texts have to fit. ExportError: the bundle has no texts."""
    if "text" not in manifest:
        raise ExportError(
            f"{bundle}: describes no images, expected it for --text; export it again, with --text",
            4,
        )
    cache = {**manifest["cache"], "max_length": manifest["text"]["length"]}
    return {**manifest, "cache": cache}


def attach(
    bundle: Path,
    name: str,
    overwrite: bool,
    make: Callable[[Path, dict[str, Any]], BundleModule],
    neighbours: Tensor | None = None,
    texts: bool = False,
) -> None:
    """Adds the drafter that `make` gives for a bundle's folder and manifest, or changes nothing.

    texts: it drafts texts, and `make` gets the manifest that of_texts makes.
    """
    check_name(name)
    clean_leftovers(bundle.resolve())
    ops.load()
    with errors_of(bundle), edited(bundle) as (folder, manifest):
        seen = of_texts(bundle, manifest) if texts else manifest
        section, other = manifest, manifest.get("text", {})
        if texts:
            section, other = other, section
        if name in other.get("drafters", {}):
            kind = "images" if texts else "texts"
            raise ExportError(f"--name {name}: {bundle} has a drafter of {kind} of this name", 2)
        present = [name] if name in section.get("drafters", {}) else []
        present += ["neighbours"] if neighbours is not None and "neighbours" in manifest else []
        refuse_present(bundle, present, overwrite)
        part = make(folder, seen)
        recorded = Recorder.load(folder, manifest, without=name)
        remove_drafter(folder, section, name)
        add_part(folder, section, recorded, "drafters", name, part)
        recorded.save(folder, manifest)
        if neighbours is not None:
            (folder / NEIGHBOURS_FILE).unlink(missing_ok=True)
            save_tensors({"neighbours": neighbours}, folder / NEIGHBOURS_FILE)
            manifest["neighbours"] = {"file": NEIGHBOURS_FILE}


def check_name(name: str) -> None:
    if not re.fullmatch("[A-Za-z0-9][A-Za-z0-9._-]*", name) or name in ROLES:
        raise ExportError(f"--name {name}: expected letters, digits, . _ - and no module's name", 2)


def refuse_present(bundle: Path, present: Sequence[str], overwrite: bool) -> None:
    """ExportError: a name to add is taken, and --overwrite is not given."""
    if present and not overwrite:
        raise ExportError(f"{bundle} has {present[0]} already; give --overwrite", 7)


def remove_drafter(folder: Path, section: dict[str, Any], name: str) -> None:
    """Takes a drafter of this name, if there is one, out of a bundle that is edited.

    section: the entries among which its drafters stand.
    """
    old = section.setdefault("drafters", {}).pop(name, None)
    if old:
        (folder / old["file"]).unlink()


def target_head(folder: Path, manifest: Mapping[str, Any], texts: bool = False) -> Head:
    """Head of the target's archive in its row order, in its storage precision or rounded to what bf16 can
    say. ExportError: there is none of the manifest's sizes.

    texts: of the ids that are no codes of images.
    """
    file = folder / manifest["modules"]["target"]["file"]
    names = {name: name for name in NAMES}
    codes, width = manifest["target"]["head"], manifest["target"]["features"]
    if texts:
        names["head"] = "text_head"
        codes = manifest["tokens"]["vocabulary"] - manifest["tokens"]["codebook_size"]
    try:
        found = {name: archived_tensor(file, stored) for name, stored in names.items()}
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ExportError(f"{file.name}: no TorchScript archive: {reason}", 4) from error
    shapes = {"head": [codes, width]}
    bias = found["head_in_bias"]
    if bias is not None:
        inner = len(bias)
        shapes = {
            "head_in": [inner, width],
            "head_in_bias": [inner],
            "head": [codes, inner],
            "head_bias": [codes],
        }
    weights = {}
    for name, expected in shapes.items():
        weight = found[name]
        if weight is not None and not weight.is_floating_point():
            weight = numbers(weight)[:, : expected[1]]
        if weight is None or list(weight.shape) != expected:
            got = "nothing" if weight is None else f"shape {list(weight.shape)}"
            raise ExportError(
                f"{file.name}: {names[name]}: got {got}, expected shape {expected}", 4
            )
        weights[name] = weight
    return head_of(weights)


def layer_entries(config: DrafterConfig) -> dict[str, Any]:
    """Manifest entries of a drafter's layer."""
    return {
        "layers": 1,
        "kv_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "max_length": config.max_length,
    }


def prompt_entry(config: DrafterConfig, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Manifest entry of the id that stands in for prompts that are no tokens."""
    return {} if has_tokens(manifest) else {"prompt_id": config.prompt_id}


def drafter_calls(config: DrafterConfig) -> list[Call]:
    random = seeded()
    rows = list(torch.randn(2, 1, 4, config.hidden, generator=random))  # embeddings, features
    first = config.prompt_length if config.rotary == "grid" else 2
    cache = (1, config.kv_heads, config.head_dim)
    return decoder_calls(rows, config.vocabulary, first, cache, random)
