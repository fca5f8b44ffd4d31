"""An exporter run over published files, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest


class ExportRun:
    """Files in a folder, the bundle that comes of them, and in subclasses the call."""

    folder: Path
    out: Path

    def export(self, *arguments: object) -> int:
        raise NotImplementedError

    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "manifest.json").read_text()))

    def leftovers(self) -> list[str]:
        """What an export put beside its inputs."""
        return [p.name for p in self.folder.iterdir() if "bundle" in p.name or p.name[0] == "."]


def refused(
    files: ExportRun, capsys: pytest.CaptureFixture[str], code: int, *words: object,
    progress: str | None = None,
) -> str:  # fmt: skip
    """The one error line of an export that must fail and leave nothing behind; lines of progress may precede."""
    assert files.export(*words) == code
    lines = capsys.readouterr().err.splitlines()
    lines = [line for line in lines if progress is None or progress not in line]
    assert len(lines) == 1 and lines[0].startswith("error: "), lines
    assert not files.leftovers()
    return lines[0]
