"""Emu3 and Emu3.5 with the methods that need no trained drafter: row ends, negative prompts, sizes in the text."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli, Refused

CAPTIONS = ("a red boat", "  Ein süßer Käfer, 35mm photo\n", "<|extra_200|> typed {rows}")
NEGATIVES = (None, "fog", "")
SIZES = ((8, 12), (10, 4))
LINES = [
    line | ({} if negative is None else {"negative_prompt": negative})
    for line, negative in zip(
        checks.requests(SIZES, CAPTIONS, (3, 2, 1)), NEGATIVES * len(SIZES), strict=True
    )
]


def make_bundle(name: str, factory: pytest.TempPathFactory) -> Path:
    """The bundle with its own target as draft model."""
    sizes = [f"{width}x{height}" for width, height in SIZES]
    bundle: Path = getattr(families, name)(factory.mktemp(name), sizes)
    attach_model(bundle, bundle, "twin")
    return bundle


@pytest.fixture(scope="module")
def emu3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle("emu3", tmp_path_factory)


@pytest.fixture(scope="module")
def emu35(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_bundle("emu35", tmp_path_factory)


@pytest.fixture(params=["emu3", "emu35"])
def bundle(request: pytest.FixtureRequest) -> Path:
    return Path(request.getfixturevalue(request.param))


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, bundle: Path, tmp_path: Path, dtype: str
) -> None:
    generate = partial(checks.generate_requests, cli, bundle, tmp_path, LINES)
    expected = checks.check_lossless_methods(generate, dtype)
    assert len({tuple(image["codes"]) for image in expected}) == len(expected)


@pytest.mark.parametrize("method", checks.BATCHED, ids=lambda method: method[0])
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, bundle: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    generate = partial(checks.generate_requests, cli, bundle, tmp_path, LINES)
    checks.check_batches(generate, method)


@pytest.mark.parametrize("method", checks.SIDE_BY_SIDE, ids=lambda method: method[0])
def test_row_parallel_methods_refuse_row_ends(
    refused: Refused, bundle: Path, method: tuple[object, ...]
) -> None:
    message = refused(2, "generate", "-p", "a", "-o", "x.png", "--method", *method, model=bundle)
    assert "needs image rows of codes only" in message


def test_inspect(cli: Cli, emu3: Path) -> None:
    lines = cli("inspect", model=emu3).stdout
    assert '"{prompt}<|image start|>{rows}*{columns}<|image token|>"' in lines
    assert 'negative prompt: "lowres, bad anatomy' in lines


def test_other_sizes_are_refused(refused: Refused, bundle: Path) -> None:
    message = refused(2, "generate", "-p", "a", "-W", 96, "-H", 96, "-o", "x.png", model=bundle)
    assert "8x12" in message and "10x4" in message


def test_the_default_negative_prompt(cli: Cli, emu3: Path, tmp_path: Path) -> None:
    usual = json.loads((emu3 / "manifest.json").read_text())["prompt"]["negative_prompt"]
    found = []
    for words in ((), ("--negative-prompt", usual), ("--negative-prompt", "fog")):
        save = ("--save-codes", "codes.json", "--overwrite", "-o", "x.png", "-q", "-t", 1)
        assert cli("generate", "-p", "a boat", *save, *words, model=emu3).returncode == 0
        codes = json.loads((tmp_path / "codes.json").read_text())["images"][0]["codes"]
        found.append(codes)
    assert found[0] == found[1] != found[2]


def test_inspect_emu35(cli: Cli, emu35: Path) -> None:
    lines = cli("inspect", model=emu35).stdout
    role = "You are a helpful assistant for t2i task. USER: {prompt} ASSISTANT: "
    assert role + "<|extra_100|><|image start|>{rows}*{columns}<|image token|>" in lines


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
