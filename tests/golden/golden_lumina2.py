"""Exports Lumina-mGPT 2.0 out of recorded cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from golden_chameleon import Target
from torch import Tensor

STEP = 32  # pixels of a size token's unit


def export(
    out: Path,
    model: Path | None,
    vq: Path | None,
    sizes: Iterable[tuple[int, int]],
    *words: object,
    text_length: int = 16,
) -> Path:
    """A bundle in fp32 with images of sizes (width, height), in pixels."""
    parts: list[object] = []
    for flag, path in (("--model", model), ("--vq", vq)):
        parts += [flag, path] if path else []
    listed = ",".join(f"{width}x{height}" for width, height in dict.fromkeys(sizes))
    limits = ("--sizes", listed, "--dtype", "fp32", "--text-length", text_length)
    command = ("models.export", "lumina-mgpt-2", *parts, *limits, "--out", out, *words)
    engine.run(sys.executable, "-m", *command)
    return out


def grid_of(bundle: Path, width: int, height: int) -> dict[str, Any]:
    grids = engine.manifest(bundle)["grids"]
    return next(g for g in grids if (g["width"], g["height"]) == (width, height))


def image_ids(grid: dict[str, Any], codes: list[int], first: int) -> list[int]:
    """Ids of an image as the manifest's grid frames its codes."""
    ids, columns = list(grid["before"]), grid["columns"]
    for row in range(grid["rows"]):
        ids += [first + code for code in codes[row * columns : (row + 1) * columns]]
        ids += grid["row_end"]
    return ids + grid["after"]


def codes_of(bundle: Path, ids: Tensor) -> Tensor:
    """The codes among ids."""
    tokens = engine.manifest(bundle)["tokens"]
    codes = ids - tokens["first_image_id"]
    return codes[(codes >= 0) & (codes < tokens["codebook_size"])]


def feed(
    bundle: Path, prompt: Tensor, image: Tensor, before: int, pairs: bool = True
) -> tuple[Target, Tensor]:
    """Hidden states [2,R,H], conditional first, from the last of the `before` ids in front of codes on.

    image: all its ids. Without `pairs` there is no unconditional row.
    """
    target = Target(bundle, 2 if pairs else 1, len(prompt) + len(image))
    opened = torch.cat([prompt, image[:before]])
    halves = [opened, opened[len(prompt) :]] if pairs else [opened]
    rows = [torch.stack([hidden[-1] for hidden in target.prefill(halves)])]
    rows += [target.step(token) for token in image[before:]]
    return target, torch.stack(rows, 1)


def scales(bundle: Path, width: int, height: int, cfg: float) -> list[float]:
    """The engine's scale of guidance of every code (tests/golden/programs/golden_guidance.cpp)."""
    request = {"width": width, "height": height, "cfg_scale": cfg}
    found = engine.run(engine.BUILD / "golden_guidance", bundle, stdin=json.dumps(request) + "\n")
    return [float(scale) for scale in json.loads(found)["scales"]]
