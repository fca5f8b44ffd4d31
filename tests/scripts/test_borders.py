"""scripts/borders.py: its measure, and a short run on the demo bundle."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conftest import ROOT, Runner

SCRIPT = ROOT / "scripts" / "borders.py"


@pytest.fixture
def borders(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import borders

    return borders


def test_differences_across_borders(borders: Any) -> None:
    pixels = np.zeros((8, 8, 3), np.int64)
    pixels[2:5, 1:4] = 10  # a rectangle with a step on every side of it
    assert borders.across(pixels, (1, 2, 3, 3)) == (10.0, 10.0)
    pixels[5:, 1:4] = 10  # it goes on below
    pixels[2, 0] = 10  # and at one of the three pixels on its left
    unseen, seen = borders.across(pixels, (1, 2, 3, 3))
    assert unseen == pytest.approx(5) and seen == pytest.approx(10 * 5 / 6)


def test_regions_lie_inside(borders: Any) -> None:
    for x, y, width, height in borders.regions(50):
        assert min(x, y) > 0 and x + width < 256 and y + height < 256
        assert all(side % 16 == 0 for side in (x, y, width, height))


def test_a_short_run(run_program: Runner, tmp_path: Path) -> None:
    words = ("--out", tmp_path / "out", "--images", 2, "--candidates", "1,2")
    ran = run_program(sys.executable, SCRIPT, *words, cwd=tmp_path, timeout=600)
    assert ran.returncode == 0, ran.stderr
    run = json.loads((tmp_path / "out" / "borders.json").read_text())
    assert [row[:2] for row in run["rows"]] == [
        ["before", None], ["1", "best"], ["2", "best"], ["2", "sample"],
    ]  # fmt: skip
    gain = run["columns"].index("log_probability_gain")
    assert run["rows"][2][gain] >= max(0, run["rows"][3][gain])
    assert ran.stdout.count("\n") == 6
