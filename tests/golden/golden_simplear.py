"""Exports SimpleAR folders and Cosmos decoders of recorded cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import golden_engine as engine

CELL = 16  # pixels a side of a code


def export(
    out: Path, sizes: Iterable[tuple[int, int]], text_length: int, *words: object
) -> dict[str, Any]:
    """Manifest of a bundle in fp32 with images of sizes (width, height), in pixels."""
    file = out.parent / f"{out.name}.json"
    config = {"sizes": [f"{w}x{h}" for w, h in sizes], "text_length": text_length}
    file.write_text(json.dumps(config), encoding="utf-8")
    command = ("models.export", "simplear", "--dtype", "fp32", "--config", file, "--out", out)
    engine.run(sys.executable, "-m", *command, *words)
    return dict(json.loads((out / "manifest.json").read_text(encoding="utf-8")))


def encode(bundle: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Prompts of requests in a bundle: ids and unconditional."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    found = engine.run(engine.BUILD / "golden_prompts", bundle, stdin=lines)
    return [json.loads(line) for line in found.splitlines()]
