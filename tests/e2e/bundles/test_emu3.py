"""Emu3 and Emu3.5: negative prompts, rounded weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.bundles.checks import Twin
from tests.e2e.support import Cli


@pytest.fixture
def emu3(twin: Twin) -> Path:
    return twin("emu3")


@pytest.fixture
def emu35(twin: Twin) -> Path:
    return twin("emu35")


def test_the_default_negative_prompt(cli: Cli, emu3: Path, tmp_path: Path) -> None:
    usual = json.loads((emu3 / "manifest.json").read_text())["prompt"]["negative_prompt"]
    found = []
    for words in ((), ("--negative-prompt", usual), ("--negative-prompt", "fog")):
        save = ("--save-codes", "codes.json", "--overwrite", "-o", "x.png", "-q", "-t", 1)
        assert cli("generate", "-p", "a boat", *save, *words, model=emu3).returncode == 0
        codes = json.loads((tmp_path / "codes.json").read_text())["images"][0]["codes"]
        found.append(codes)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize("dtype", ["int8", "int4"])
def test_rounded_weights(cli: Cli, emu35: Path, tmp_path: Path, dtype: str) -> None:
    """`sjd` verifies by the same rounded target: greedy codes are the autoregressive ones."""
    found = []
    for method in ("ar", "sjd"):
        save = ("--save-codes", "codes.json", "--overwrite", "-o", "x.png", "-q", "-t", 1)
        words = ("-p", "a boat", "--dtype", dtype, "--temperature", 0, "--method", method)
        assert cli("generate", *words, *save, model=emu35).returncode == 0
        found.append(json.loads((tmp_path / "codes.json").read_text())["images"][0]["codes"])
    assert found[0] == found[1]
