"""The enlarged demo generates the demo's images."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch

from models.bundle import Storage
from models.demo.enlarge import enlarge
from models.eagle.config import DrafterConfig
from models.eagle.eagle3 import Eagle3Config, Eagle3Drafter
from models.export.drafters.attach import attach, target_head
from models.export.drafters.eagle3 import eagle3_part
from models.export.drafters.heads import heads_part, speculator_part
from models.export.drafters.refine import refiner_part
from models.heads.medusa import Heads, HeadsConfig
from models.heads.mlp import Speculator, SpeculatorConfig
from models.heads.refine import Refiner, RefinerConfig
from models.transformer.rotary import grid_table, regrid_table
from tests.conftest import Runner

SIZES = {  # of no published model, but small; the second has heads of another width, like LlamaGen-3B
    "wide": {"n_layer": 10, "n_head": 5, "dim": 320},
    "headed": {"n_layer": 9, "n_head": 4, "dim": 400},
}


@pytest.fixture(scope="module")
def source(demo_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo with a drafter that reads inner layers, and heads, of random weights but for what reads the last state."""
    out = tmp_path_factory.mktemp("source") / "bundle"
    shutil.copytree(demo_bundle, out)
    manifest = json.loads((out / "manifest.json").read_text())
    width, codes = manifest["target"]["hidden"], manifest["target"]["head"]
    torch.manual_seed(0)
    layer = DrafterConfig(
        width, width // 64, 320, codes, 400, grid=manifest["grids"][0]["columns"],
        prompt_length=manifest["prompt"]["length"],
    )  # fmt: skip
    drafter = Eagle3Drafter(Eagle3Config(layer, 3 * width, codes, (1, 4, 7)))
    with torch.no_grad():
        drafter.fc.weight[:, 2 * width :] += torch.eye(width)
        drafter.lm_head.weight.copy_(target_head(out, manifest))
    drafter = drafter.bfloat16().requires_grad_(False)
    attach(out, "inner", False, lambda _, manifest: eagle3_part(drafter, None, manifest))
    storage = Storage(torch.bfloat16)
    heads = Heads(HeadsConfig(width, codes, 3)).bfloat16().requires_grad_(False)
    heads.begin(torch.empty(0), target_head(out, manifest))
    heads[1][0].linear.weight.normal_(std=0.02)
    attach(out, "heads", False, lambda *_: heads_part(heads, storage, manifest))
    speculator = Speculator(SpeculatorConfig(width, codes, 3)).bfloat16().requires_grad_(False)
    speculator.begin(torch.randn(codes, width), target_head(out, manifest))
    attach(out, "steps", False, lambda *_: speculator_part(speculator, storage, manifest))
    refiner = Refiner(RefinerConfig(width, codes)).bfloat16().requires_grad_(False)
    attach(out, "stale", False, lambda *_: refiner_part(refiner, storage))
    return out


@pytest.fixture(scope="module", params=SIZES)
def enlarged(
    request: pytest.FixtureRequest, source: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("enlarged") / "bundle"
    enlarge(source, out, request.param, SIZES[request.param], codes=2048)
    return out


def generate(
    run_program: Runner, lamplighter: Path, bundle: Path, folder: Path, *flags: object
) -> tuple[list[int], int]:
    """The codes of an image and the passes it took."""
    words = (lamplighter, "generate", "-m", bundle, "-p", "a red boat on the sea at dawn", "-t", 1)
    files = ("-o", folder / "a.png", "--save-codes", folder / "codes.json", "--overwrite", "--json")
    result = run_program(*words, *files, *flags)
    assert result.returncode == 0, result.stderr
    image = json.loads((folder / "codes.json").read_text())["images"][0]
    return image["codes"], json.loads(result.stdout)["target_passes"]


@pytest.mark.parametrize("flags", [
    ("--method", "ar", "--temperature", 0),
    ("--method", "eagle", "--tree", "chain-3"),
    ("--method", "eagle-3", "--tree", "chain-3"),
    ("--method", "flash", "--tree", "chain-3"),
    ("--method", "medusa", "--tree", "chain-3"),
    ("--method", "mlp", "--tree", "chain-3"),
    ("--method", "refine", "--tree", "chain-3"),
    ("--method", "ar", "--cfg-scale", 9, "--top-k", 0),
])  # fmt: skip
def test_images_and_acceptance_stay(
    run_program: Runner, lamplighter: Path, source: Path, enlarged: Path, tmp_path: Path,
    flags: tuple[object, ...],
) -> None:  # fmt: skip
    small, passes = generate(run_program, lamplighter, source, tmp_path, *flags, "--dtype", "fp32")
    large, own = generate(run_program, lamplighter, enlarged, tmp_path, *flags, "--dtype", "fp32")
    first = next(
        (i for i, pair in enumerate(zip(small, large, strict=True)) if len({*pair}) > 1), 256
    )
    # The most probable tokens are the same. Where tokens are generated, a number that falls between two of them
    # by a rounding's width may tell the images apart from there on.
    least = 256 if 0 in flags and "--temperature" in flags else 128
    assert first >= least, f"the first {first} of 256 tokens are the demo's"
    assert abs(own - passes) <= (256 - first) // 4


def test_checks_itself(run_program: Runner, lamplighter: Path, enlarged: Path) -> None:
    result = run_program(lamplighter, "check", enlarged)
    assert result.returncode == 0, result.stdout + result.stderr


def test_larger_grids_are_generated(
    run_program: Runner, lamplighter: Path, demo_bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    enlarge(demo_bundle, out, "wide", SIZES["wide"], 1024, grid=18)
    result = run_program(lamplighter, "check", out)
    assert result.returncode == 0, result.stdout + result.stderr
    codes, passes = generate(run_program, lamplighter, out, tmp_path, "--method", "eagle")
    assert len(codes) == 18 * 18
    # The drafter still knows something of untrained positions: its rows belong to the target's.
    assert passes < 0.6 * len(codes)


@pytest.mark.parametrize("rotation", ["zero", "identity"])
def test_regridded_rotations_are_those_of_the_larger_image(rotation: str) -> None:
    spare = torch.full((3, 8, 2), 5.0)
    small, large = (grid_table(side, 16, 10000.0, 7, rotation) for side in (5, 9))
    regridded = regrid_table(torch.cat([small, spare]), 7, 5, 9)
    torch.testing.assert_close(regridded, torch.cat([large, spare]))
