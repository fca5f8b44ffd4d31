"""Adds the target of another bundle to a bundle, as a drafter of its own: --method draft-model."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from ...archive import archived_tensor
from ...bundle import describe, edited
from ...recording import BF16_TOLERANCE, Recorder, distance
from ..checkpoint import ExportError
from ..common import errors_of
from .attach import check_name, refuse_present, remove_drafter
from .files import read_manifest

KIND = "model"


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "draft-model",
        help="target of another bundle as drafter of an existing bundle",
        description="Adds the target of a bundle to another one of the same prompts, grids and codes, "
        "for --method draft-model: a small model drafts for a large one.",
    )
    parser.set_defaults(run=run)
    parser.add_argument("--model", type=Path, required=True, metavar="BUNDLE", help="drafted for")
    parser.add_argument(
        "--from",
        dest="source",
        type=Path,
        required=True,
        metavar="BUNDLE",
        help="its target drafts",
    )
    parser.add_argument("--name", required=True, help="the drafter's name in the bundle")
    parser.add_argument("--overwrite", action="store_true", help="replace what has the same name")


def run(options: argparse.Namespace) -> None:
    attach_model(options.model, options.source, options.name, options.overwrite)


def attach_model(bundle: Path, source: Path, name: str, overwrite: bool = False) -> None:
    """Adds the target of the bundle `source` to `bundle`, in its storage precision, or changes nothing."""
    check_name(name)
    read_manifest(bundle)
    theirs = read_manifest(source)
    with errors_of(bundle), edited(bundle) as (folder, manifest):
        refuse_present(bundle, [name] if name in manifest.get("drafters", {}) else [], overwrite)
        check_same_prompts(source, theirs, bundle, manifest)
        check_same_codes(source, theirs, bundle, manifest)
        recorded = Recorder.load(folder, manifest, without=name)
        remove_drafter(folder, manifest, name)
        target = theirs["modules"]["target"]
        file = folder / f"drafter-{name}.pt"
        shutil.copyfile(source / target["file"], file)
        if describe(file) != theirs["files"][target["file"]]:
            raise ExportError(f"{source / target['file']}: changed or damaged; copy it again", 4)
        manifest["drafters"][name] = {
            "file": file.name,
            "dtype": target["dtype"],
            "kind": KIND,
            **theirs["cache"],
        }
        take_records(source, theirs, name, recorded)
        recorded.save(folder, manifest)


def check_same_prompts(
    source: Path, theirs: Mapping[str, Any], bundle: Path, own: Mapping[str, Any]
) -> None:
    """Both targets take the same tokens, or the same features of the same text.

    A bundle of a target alone says no more of its prompts than their shape.
    """
    for key in sorted((own["prompt"].keys() | theirs["prompt"].keys()) - {"vocabulary"}):
        refuse_other(source, f"prompt.{key}", theirs["prompt"].get(key), own["prompt"].get(key))
    if own["prompt"]["kind"] == "class":
        return
    one, other = (tokenizer_of(manifest) for manifest in (theirs, own))
    if one and other and one != other:
        raise ExportError(f"{source}: tokenizer: got another one than in {bundle}")
    if own["prompt"]["kind"] == "text_features":
        check_same_features(source, theirs, bundle, own)


def tokenizer_of(manifest: Mapping[str, Any]) -> dict[str, Any] | None:
    """A tokenizer's entry with the file's checksum instead of its name."""
    entry = manifest.get("tokenizer")
    return entry and {**entry, "file": manifest["files"][entry["file"]]["sha256"]}


def check_same_features(
    source: Path, theirs: Mapping[str, Any], bundle: Path, own: Mapping[str, Any]
) -> None:
    """The text encoders are one file, or their recorded features are alike."""
    files = [
        m["files"][m["modules"]["text_encoder"]["file"]]
        for m in (theirs, own)
        if "text_encoder" in m["modules"]
    ]
    if len(files) < 2 or files[0] == files[1]:
        return
    features = [recorded_features(*pair) for pair in ((source, theirs), (bundle, own))]
    if not features[0] or not alike(*features):
        raise ExportError(f"{source}: text_encoder: got other features than in {bundle}")


def recorded_features(folder: Path, manifest: Mapping[str, Any]) -> list[Tensor]:
    """Inputs and results of the text encoder's recorded calls."""
    recorded = Recorder.load(folder, dict(manifest), without="")
    calls = [record for record in recorded.records if record["module"] == "text_encoder"]
    names = [name for call in calls for name in (*call["inputs"], *call["outputs"])]
    return [recorded.tensors[name] for name in names]


def alike(one: list[Tensor], other: list[Tensor]) -> bool:
    """Equal up to the roundings of a storage precision."""
    shapes = [[tensor.shape for tensor in tensors] for tensors in (one, other)]
    return shapes[0] == shapes[1] and distance(one, other) <= BF16_TOLERANCE


def check_same_codes(
    source: Path, theirs: Mapping[str, Any], bundle: Path, own: Mapping[str, Any]
) -> None:
    """A code means the same to both, and stands at the same position of the same images."""
    for key in ("vocabulary", "first_image_id", "codebook_size"):
        refuse_other(source, f"tokens.{key}", theirs["tokens"][key], own["tokens"][key])
    names = ("rows", "columns", "before", "row_end")
    one, other = (
        [[grid.get(name) or [] for name in names] for grid in m["grids"]] for m in (theirs, own)
    )
    refuse_other(source, "grids", one, other)
    length, needed = theirs["cache"]["max_length"], own["cache"]["max_length"]
    if length < needed:
        raise ExportError(f"{source}: cache.max_length: got {length}, expected {needed} or more")
    codebooks = [codebook(*pair) for pair in ((source, theirs), (bundle, own))]
    vectors = [tensor for tensor in codebooks if tensor is not None]
    if len(vectors) == 2 and not alike(vectors[:1], vectors[1:]):
        raise ExportError(f"{source}: image_decoder: got other codes than in {bundle}")


def codebook(folder: Path, manifest: Mapping[str, Any]) -> Tensor | None:
    """Vectors of the codes, where the bundle has an image decoder."""
    entry = manifest["modules"].get("image_decoder")
    if entry is None:
        return None
    try:
        return archived_tensor(folder / entry["file"], "codebook")
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        raise ExportError(
            f"{folder / entry['file']}: no TorchScript archive: {reason}", 4
        ) from error


def refuse_other(source: Path, key: str, got: Any, expected: Any) -> None:
    if got != expected:
        raise ExportError(f"{source}: {key}: got {got}, the model's is {expected}")


def take_records(source: Path, theirs: Mapping[str, Any], name: str, recorded: Recorder) -> None:
    """The records of the source's target become the drafter's."""
    all_records = Recorder.load(source, dict(theirs), without="")
    for record in all_records.records:
        if record["module"] != "target":
            continue
        own = {**record, "module": name}
        for key in ("inputs", "outputs", "mutated"):
            if key in record:
                own[key] = [f"{name}.{tensor}" for tensor in record[key]]
                recorded.tensors.update(
                    {f"{name}.{tensor}": all_records.tensors[tensor] for tensor in record[key]}
                )
        recorded.records.append(own)
