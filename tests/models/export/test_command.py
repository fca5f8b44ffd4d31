"""The command line of the exporters: where it runs from, and how far it says it is."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from models.export.progress import Progress


def test_bar_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress("reading", 3)
    for _ in range(3):
        progress.step()
    shown = terminal.getvalue()
    assert shown.count("\r") == 4 and shown.endswith(f"reading [{'#' * 30}] 100 %\n")
    assert f"[{'#' * 10}{' ' * 20}]  33 %" in shown


def test_the_exporters_run_from_any_folder(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("lamplighter-export")
    for command in ([str(program)], [sys.executable, "-m", "models.export"]):
        result = subprocess.run(
            [*command, "llamagen", "--gpt", "none.pt", "--out", "out"],
            cwd=tmp_path, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert result.returncode != 0 and "none.pt" in result.stderr
        assert list(tmp_path.iterdir()) == []
