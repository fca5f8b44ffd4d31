"""Images from files, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

from .errors import EvaluationError

SUFFIXES = {".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".tif", ".tiff"}


def files_below(folder: Path) -> list[Path]:
    """All images of a folder and those below it, sorted."""
    files = sorted(f for f in folder.rglob("*") if f.suffix.lower() in SUFFIXES and f.is_file())
    if not files:
        raise EvaluationError(f"--reference: {folder}: no images there")
    return files


def load(file: Path, side: int | None) -> Image.Image:
    """RGB. With `side`: the middle square, Lanczos-resized to side x side pixels, as LANTERN scores it."""
    try:
        image = Image.open(file).convert("RGB")
    except OSError as error:
        raise EvaluationError(f"{file}: cannot be read as an image ({error})") from error
    if side is None:
        return image
    least = min(image.size)
    left, top = (round((edge - least) / 2) for edge in image.size)
    square = image.crop((left, top, left + least, top + least))
    return square if least == side else square.resize((side, side), Image.Resampling.LANCZOS)


def batches(
    files: Sequence[Path], size: int, side: int | None = None
) -> Iterator[list[Image.Image]]:
    """Lists of `size` images; no more than one list is held."""
    for begin in range(0, len(files), size):
        yield [load(file, side) for file in files[begin : begin + size]]
