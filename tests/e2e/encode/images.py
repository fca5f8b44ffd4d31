"""Images for the command `encode`, and their codes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

CAPTION = "a red boat"
Encode = Callable[..., list[list[int]]]


def colours(width: int, height: int, seed: int = 0) -> Image.Image:
    """Soft random colours."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def scaled(image: Image.Image, width: int, height: int) -> Image.Image:
    """Rows first: Pillow itself takes columns first for some sizes."""
    rows = image.resize((width, image.height), Image.Resampling.LANCZOS)
    return rows.resize((width, height), Image.Resampling.LANCZOS)


def codes(path: Path) -> list[list[int]]:
    return [image["codes"] for image in json.loads(path.read_text())["images"]]


def expected(bundle: Path, image: Image.Image) -> list[int]:
    """The codes by the bundle's module itself."""
    module = torch.jit.load(str(bundle / "image_encoder.pt"))
    module.prepare(torch.empty(0))
    values = torch.from_numpy(np.array(image.convert("RGB"))).float() / 255 * 2 - 1
    with torch.inference_mode():
        found = module.nearest(module.latents(values.permute(2, 0, 1)[None].contiguous()))
    return found.flatten().tolist()  # type: ignore[no-any-return]


def file_bytes(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


PNG, JPEG = file_bytes(colours(64, 48)), file_bytes(colours(64, 48), "JPEG")
WEBP = file_bytes(colours(64, 48), "WebP", lossless=True)
