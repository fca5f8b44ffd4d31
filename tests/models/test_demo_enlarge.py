"""The enlarged demo draws the demo's pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from models.demo.enlarge import enlarge
from models.transformer.rotary import grid_table, regrid_table
from tests.conftest import Runner

SIZES = {  # of no published model, but small; the second has heads of another width, like LlamaGen-3B
    "wide": {"n_layer": 10, "n_head": 5, "dim": 320},
    "headed": {"n_layer": 9, "n_head": 4, "dim": 400},
}


@pytest.fixture(scope="module", params=SIZES)
def enlarged(
    request: pytest.FixtureRequest, demo_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("enlarged") / "bundle"
    enlarge(demo_bundle, out, request.param, SIZES[request.param], codes=2048)
    return out


def draw(
    run_program: Runner, lamplighter: Path, bundle: Path, folder: Path, *flags: object
) -> tuple[list[int], int]:
    """The codes of a picture and the passes it took."""
    words = (lamplighter, "generate", "-m", bundle, "-p", "a red boat on the sea at dawn", "-t", 1)
    files = ("-o", folder / "a.png", "--save-codes", folder / "codes.json", "--overwrite", "--json")
    result = run_program(*words, *files, *flags)
    assert result.returncode == 0, result.stderr
    picture = json.loads((folder / "codes.json").read_text())["pictures"][0]
    return picture["codes"], json.loads(result.stdout)["target_passes"]


@pytest.mark.parametrize("flags", [
    ("--method", "ar", "--temperature", 0),
    ("--method", "eagle", "--tree", "chain-3"),
    ("--method", "eagle-3", "--tree", "chain-3"),
    ("--method", "flash", "--tree", "chain-3"),
    ("--method", "ar", "--cfg-scale", 9, "--top-k", 0),
])  # fmt: skip
def test_pictures_and_acceptance_stay(
    run_program: Runner, lamplighter: Path, demo_bundle: Path, enlarged: Path, tmp_path: Path,
    flags: tuple[object, ...],
) -> None:  # fmt: skip
    small, passes = draw(run_program, lamplighter, demo_bundle, tmp_path, *flags, "--dtype", "fp32")
    large, own = draw(run_program, lamplighter, enlarged, tmp_path, *flags, "--dtype", "fp32")
    first = next(
        (i for i, pair in enumerate(zip(small, large, strict=True)) if len({*pair}) > 1), 256
    )
    # The most probable tokens are the same. Where tokens are drawn, a number that falls between two of them
    # by a rounding's width may tell the pictures apart from there on.
    least = 256 if 0 in flags and "--temperature" in flags else 128
    assert first >= least, f"the first {first} of 256 tokens are the demo's"
    assert abs(own - passes) <= (256 - first) // 4


def test_checks_itself(run_program: Runner, lamplighter: Path, enlarged: Path) -> None:
    result = run_program(lamplighter, "check", enlarged)
    assert result.returncode == 0, result.stdout + result.stderr


def test_larger_grids_are_drawn(
    run_program: Runner, lamplighter: Path, demo_bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    enlarge(demo_bundle, out, "wide", SIZES["wide"], 1024, grid=18)
    result = run_program(lamplighter, "check", out)
    assert result.returncode == 0, result.stdout + result.stderr
    codes, passes = draw(run_program, lamplighter, out, tmp_path, "--method", "eagle")
    assert len(codes) == 18 * 18
    # Of untrained places the drafter still knows something: its rows belong to the target's.
    assert passes < 0.6 * len(codes)


@pytest.mark.parametrize("rotation", ["zero", "identity"])
def test_regridded_rotations_are_those_of_the_larger_picture(rotation: str) -> None:
    spare = torch.full((3, 8, 2), 5.0)
    small, large = (grid_table(side, 16, 10000.0, 7, rotation) for side in (5, 9))
    regridded = regrid_table(torch.cat([small, spare]), 7, 5, 9)
    torch.testing.assert_close(regridded, torch.cat([large, spare]))
