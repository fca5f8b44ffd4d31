"""Images of a folder with captions beside them, as files that the engine encodes.

The captions stand in metadata.jsonl, a line {"file_name": ..., "text": ...} for each image, or for NAME.png in
NAME.txt. Images of formats that the engine does not read become PNG files, turned as their EXIF data says.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from ..evaluate.images import SUFFIXES
from ..export.checkpoint import ExportError
from ..scratch import images_folder
from .features import TargetModel, run_program
from .files import keep, prepare_lines, read_text

METADATA = "metadata.jsonl"
NAMES, CAPTIONS = "images.txt", "captions.txt"  # of a data set
READ = ("PNG", "JPEG", "WEBP")  # formats of which the engine reads all but CMYK and animations
FITS = ("crop", "pad", "stretch")


@dataclass(frozen=True)
class CaptionedImage:
    """An image file and its caption, one line."""

    path: Path
    caption: str


def one_line(text: str, where: str) -> str:
    caption = " ".join(text.split())
    if not caption:
        raise ExportError(f"{where}: got no caption, expected a line of text")
    return caption


def listed(file: Path, key: str = "text") -> Iterator[CaptionedImage]:
    """The images that a metadata.jsonl names, in its order; their captions are the texts of `key`."""
    for number, line in enumerate(read_text(file).split("\n"), 1):
        if not line.strip():
            continue
        where = f"{file}:{number}"
        try:
            entry: Any = json.loads(line)
        except (ValueError, RecursionError):
            entry = None
        known = isinstance(entry, dict) and [entry.get(name) for name in ("file_name", key)]
        if not known or not all(isinstance(value, str) for value in known):
            raise ExportError(f'{where}: expected {{"file_name": ..., "{key}": ...}}')
        path = file.parent / known[0]
        if not path.resolve().is_relative_to(file.parent.resolve()):
            raise ExportError(f"{where}: {known[0]} is not below {file.parent}")
        yield CaptionedImage(path, one_line(known[1], where))


def beside(folder: Path) -> Iterator[CaptionedImage]:
    """The images of a folder and the folders below, by their names, with the captions beside them."""
    for path in sorted(folder.rglob("*")):
        if path.suffix.lower() in SUFFIXES:
            text = path.with_suffix(".txt")
            yield CaptionedImage(path, one_line(read_text(text), str(text)))


def images_of(folder: Path, most: int) -> list[CaptionedImage]:
    """The first images of a folder. ExportError: it is none, has none, or a caption is missing."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    file = folder / METADATA
    found = listed(file) if file.is_file() else beside(folder)
    images = list(islice(found, most))
    if not images:
        raise ExportError(f"{folder}: got no images, expected NAME.png and NAME.txt, or {METADATA}")
    return images


def encode_images(
    model: TargetModel, images: Sequence[CaptionedImage], fit: str, out: Path, binary: Path
) -> None:
    """Runs the engine's encoder on images and keeps the tokens."""
    with images_folder(out) as folder:
        partial, files = folder / "codes.json", readable_files(images, folder)
        command = [binary, "encode", "-q", "-m", model.bundle, "-o", partial, "--fit", fit]
        command += ["-W", model.grid["width"], "-H", model.grid["height"], "-t", 1, "--", *files]
        run_program(command)
        keep(partial, out)


def readable_files(images: Sequence[CaptionedImage], folder: Path) -> list[Path]:
    """Files that the engine reads; PNG files in `folder` in place of the others."""
    return [readable_file(image.path, folder / f"{i}.png") for i, image in enumerate(images)]


def readable_file(path: Path, out: Path) -> Path:
    try:
        with Image.open(path) as image:
            if (
                image.format in READ
                and image.mode != "CMYK"
                and not getattr(image, "is_animated", False)
            ):
                return path
            image = ImageOps.exif_transpose(image)
            has_alpha = image.has_transparency_data
            image.convert("RGBA" if has_alpha else "RGB").save(out, compress_level=1)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise ExportError(f"{path}: cannot be read as an image ({error})", 3) from error
    return out


def require_encoder(bundle: Path, manifest: dict[str, Any]) -> None:
    """ExportError: the bundle cannot read images."""
    if "image_encoder" not in manifest["modules"]:
        raise ExportError(
            f"{bundle}: lacks image_encoder, expected one for --image-folder; export it again, with an image "
            "tokenizer that holds the encoder"
        )


def prepare_images(out: Path, source: Path, most: int) -> list[CaptionedImage]:
    """The images of the data set `out`; on a later call they must be the same."""
    images = images_of(source, most)
    names, captions = out / NAMES, out / CAPTIONS
    if captions.exists() and not names.exists():
        raise ExportError(f"{out}: holds generated images; use another folder", 7)
    prepare_lines(names, [str(image.path.relative_to(source)) for image in images], str(source))
    prepare_lines(captions, [image.caption for image in images], str(source))
    return images
