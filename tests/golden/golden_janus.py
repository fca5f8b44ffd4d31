"""Exports Janus-Pro folders of recorded cases."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path

import golden_engine as engine
from golden_cases import Case


def folder(case: Case) -> Path:
    """The published files."""
    return case.folder / case.info["weights"][0]["folder"]


def export(
    out: Path, model: Path, sizes: Iterable[tuple[int, int]], text_length: int, *words: object
) -> Path:
    """A bundle in fp32 with images of sizes (width, height), in pixels."""
    file = out.parent / f"{out.name}.json"
    config = {"sizes": [f"{w}x{h}" for w, h in sizes], "text_length": text_length}
    file.write_text(json.dumps(config), encoding="utf-8")
    command = ("models.export", "janus", "--model", model, "--dtype", "fp32", "--config", file)
    engine.run(sys.executable, "-m", *command, "--out", out, *words)
    return out


def manifest(bundle: Path) -> dict:
    return json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
