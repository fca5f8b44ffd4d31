"""scripts/growth.py on the demo bundle, and its errors."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runner

SCRIPT = ROOT / "scripts" / "growth.py"
COMPARE = """
import argparse, json, pathlib, sys
import growth
growth.PROGRAM = pathlib.Path(sys.argv[2])
ballast = b"x" * (1 << 30)  # memory of this process must not count
options = argparse.Namespace(device="cpu", threads=1, rounds=1, method="eagle")
points = growth.compare(pathlib.Path(sys.argv[1]), options, {"grid": 16}, 2, "--tree", "chain-3")
print(json.dumps(points))
"""


def test_a_point_of_each_method(run_program: Runner, demo_bundle: Path, lamplighter: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    result = run_program(sys.executable, "-c", COMPARE, demo_bundle, lamplighter, env=environment)
    assert result.returncode == 0, result.stderr
    plain, drafted = json.loads(result.stdout)
    assert (plain["method"], drafted["method"]) == ("ar", "eagle")
    assert plain["S"] == 1 and drafted["S"] > 1.5 and plain["grid"] == 16
    assert drafted["ratio"] == pytest.approx(plain["ms"] / drafted["ms"], rel=0.01)
    assert plain["ms a pass"] * 256 == pytest.approx(2 * plain["ms"], rel=0.01)
    assert 20 < plain["MB"] < 1024


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--grids", "16,x"), "got 16,x, expected numbers above 0"),
        (("--rounds", 0), "--rounds and --threads: expected 1 or more"),
    ],
)
def test_bad_flags(
    run_program: Runner, tmp_path: Path, flags: tuple[object, ...], line: str
) -> None:
    result = run_program(sys.executable, SCRIPT, "--out", tmp_path / "o", *flags)
    assert result.returncode == 2 and line in result.stderr
    assert not list(tmp_path.iterdir())
