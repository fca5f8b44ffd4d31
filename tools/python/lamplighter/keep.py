"""Other images of which images keep tokens: files, bytes, images of Pillow, arrays of pixels and of codes."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from . import _native
from .error import USAGE, Error

Kept = Union[str, "os.PathLike[str]", bytes, Image.Image, NDArray[Any]]
"""A path or the bytes of an image file (PNG, JPEG or WebP) or a file of codes, an image, pixels (height, width, 3 or 4), or codes (rows,
columns)."""


def on_white(image: Image.Image) -> NDArray[np.uint8]:
    """The pixels of an image, (height, width, 3); transparent ones show a white ground."""
    if image.has_transparency_data:
        clear = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", clear.size, "white"), clear)
    return np.asarray(image.convert("RGB"))


Region = Sequence[int]
"""x, y, width, height in pixels."""


def continued(
    keep: Kept | None,
    rows: int | None,
    tokens: int | None,
    region: Region | None,
    fit: str | None,
    **of_region: Any,
) -> tuple[_native.Continued | None, int | None, int | None, _native.Region | None, str | None]:
    """What images keep of another one, for the engine. `of_region`: how a region is generated, None is the default."""
    given = {"keep_rows": rows, "keep_tokens": tokens, "region": region, "fit": fit}
    for name, value in {**given, **of_region}.items() if keep is None else ():
        if value is not None:
            raise Error(f"{name}: got {value!r}, expected keep beside it: what is kept", USAGE)
    for name, value in of_region.items():
        if value is not None and region is None:
            raise Error(f"{name}: got {value!r}, expected region beside it", USAGE)
    if keep is None:
        return None, None, None, None, None
    amounts = _whole("keep_rows", rows), _whole("keep_tokens", tokens)
    return _other(keep), *amounts, _rectangle(region, **of_region), fit


def _rectangle(
    region: Region | None, behind: str | None, candidates: int | None, pick: str | None
) -> _native.Region | None:
    if region is None:
        return None
    try:
        sides = [operator.index(side) for side in region]
    except TypeError:
        sides = []
    if len(sides) != 4 or any(abs(side) >= 2**31 for side in sides):
        raise Error(f"region: got {region!r}, expected x, y, width, height: pixels", USAGE)
    count = _whole("candidates", 1 if candidates is None else candidates)
    if count is None or abs(count) >= 2**31:
        raise Error(f"candidates: got {candidates!r}, expected a smaller number", USAGE)
    for name, word in (("behind", behind), ("pick", pick)):
        if word is not None and not isinstance(word, str):
            raise Error(f"{name}: got {word!r}, expected a word", USAGE)
    return _native.Region(*sides, behind or "keep", count, pick or "best")


def _whole(name: str, value: int | None) -> int | None:
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        raise Error(f"{name}: got {value!r}, expected a whole number", USAGE) from None
    if abs(number) >= 2**63:
        raise Error(f"{name}: got {number}, expected a smaller number", USAGE)
    return number


def _other(keep: Kept) -> _native.Continued:
    if isinstance(keep, (str, os.PathLike)):
        return _native.Continued.of_file(os.fspath(keep))
    if isinstance(keep, (bytes, bytearray, memoryview)):
        return _native.Continued.of_bytes(bytes(keep))
    if isinstance(keep, Image.Image):
        return _native.Continued.of_pixels(on_white(keep))
    return _of_array(np.asarray(keep))


def _of_array(array: NDArray[Any]) -> _native.Continued:
    if array.ndim == 2 and np.issubdtype(array.dtype, np.integer):
        limits = np.iinfo(np.int32)
        if array.size and (array.min() < limits.min or array.max() > limits.max):
            raise Error(f"keep: got codes above {limits.max}", USAGE)
        return _native.Continued.of_codes(array.astype(np.int32))
    if array.ndim == 3 and array.shape[2] in (3, 4) and array.dtype == np.uint8:
        return _native.Continued.of_pixels(on_white(Image.fromarray(array)))
    raise Error(
        f"keep: got {array.dtype} of shape {array.shape}, expected a path, the bytes of a file, an image, pixels "
        "in uint8 (height, width, 3 or 4) or codes (rows, columns)",
        USAGE,
    )
