"""Helpers for caption sets: the command of a run, and the comparison of two folders."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ITEMS = 40
Batch = Callable[..., subprocess.CompletedProcess[str]]


def command(lamplighter: Path, bundle: Path, captions: Path, out: Path, *more: object) -> list[str]:
    words = [
        lamplighter,
        "batch",
        captions,
        "-o",
        out,
        "-m",
        bundle,
        "-q",
        "--skip-checksums",
        "-t",
        1,
    ]
    return [str(word) for word in (*words, *more)]


def manifest(out: Path) -> list[dict[str, Any]]:
    lines = [
        json.loads(line)
        for path in sorted(out.glob("manifest*.jsonl"))
        for line in path.read_text().splitlines()
    ]
    for line in lines:
        for key in ("ms", "batch"):
            line.pop(key, None)
    return sorted(lines, key=lambda line: (line["index"], line["repeat"]))


def assert_same(out: Path, whole: Path) -> None:
    """Asserts that both folders hold the same images and records, and no temporary files."""
    names = sorted(path.name for path in (whole / "images").iterdir())
    assert sorted(path.name for path in (out / "images").iterdir()) == names
    for name in [f"images/{name}" for name in names] + ["captions.json", "metadata.jsonl"]:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name
    assert [line for line in manifest(out) if line["status"] == "ok"] == manifest(whole)
    assert not [path.name for path in (out / ".tmp").iterdir() if "lock" not in path.name]
