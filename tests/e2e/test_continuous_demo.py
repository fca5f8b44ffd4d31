"""The demo pair of continuous tokens that the repository ships."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from PIL import Image

from models.mar.demo.train import BUNDLE
from models.mar.demo.world import CLASSES
from tests.e2e.support import Cli

MOST_BYTES = 8_000_000


def test_it_is_small_and_generates_the_demo_s_classes() -> None:
    manifest = json.loads((BUNDLE / "manifest.json").read_text())
    assert manifest["prompt"]["classes"] == CLASSES and list(manifest["drafters"]) == ["small"]
    assert sum(path.stat().st_size for path in BUNDLE.iterdir()) <= MOST_BYTES


def test_its_modules_match_the_records(cli: Cli) -> None:
    result = cli("check", BUNDLE)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("rule", ["exact", "paper", "official"])
def test_it_speculates(ran: Cli, tmp_path: Path, rule: str) -> None:
    words = (
        "--class",
        37,
        "--method",
        "cspd",
        "--rule",
        rule,
        "--gamma",
        4,
        "--prefill-ratio",
        0.8,
    )
    for name in ("one.png", "two.png"):
        result = ran("generate", *words, "-o", name, "--json", model=BUNDLE)
    line = json.loads(result.stdout)
    assert line["tokens"] == 64 and line["target_passes"] <= 64
    if rule == "official":  # verifies whole blocks, which have no depth
        assert line["target_passes"] < 64
    else:
        assert sum(line["drafted_by_depth"]) > 0
    assert (tmp_path / "one.png").read_bytes() == (tmp_path / "two.png").read_bytes()


def test_nights_are_darker_than_noons(ran: Cli, tmp_path: Path) -> None:
    light = {}
    for time in (1, 3):
        words = ("--class", 5 * 6 + time, "-b", 3, "--steps", 16, "-q", "-o", f"{time}-%d.png")
        ran("generate", *words, model=BUNDLE)
        light[time] = [numpy.asarray(Image.open(p)).mean() for p in tmp_path.glob(f"{time}-*.png")]
    assert len(light[1]) == len(light[3]) == 3 and min(light[1]) > 1.5 * max(light[3])
