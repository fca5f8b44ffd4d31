"""Lumina-mGPT 2.0 with the methods that need no trained drafter: row ends, falling guidance."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli, Refused

CAPTIONS = ("a red boat", "  Ein süßer Käfer, 35mm photo\n", "<reserved08799> typed")
SIZES = ((64, 96), (64, 32))
# Guidance whose scale falls, rises or stays, and none.
LINES = checks.requests(SIZES, CAPTIONS, (9, 2, 1))


@pytest.fixture(scope="module", params=[False, True], ids=["schedule", "official"])
def lumina2(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its own target as draft model."""
    sizes = [f"{width}x{height}" for width, height in SIZES]
    words = ["--official-schedule"] if request.param else []
    bundle = families.lumina2(tmp_path_factory.mktemp("lumina2"), sizes, *words)
    attach_model(bundle, bundle, "twin")
    return bundle


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, lumina2: Path, tmp_path: Path, dtype: str
) -> None:
    generate = partial(checks.generate_requests, cli, lumina2, tmp_path, LINES)
    expected = checks.check_lossless_methods(generate, dtype)
    assert len({tuple(image["codes"]) for image in expected}) == len(expected)


@pytest.mark.parametrize("method", checks.BATCHED, ids=lambda method: method[0])
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, lumina2: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    generate = partial(checks.generate_requests, cli, lumina2, tmp_path, LINES)
    checks.check_batches(generate, method)


@pytest.mark.parametrize("method", checks.SIDE_BY_SIDE, ids=lambda method: method[0])
def test_row_parallel_methods_refuse_row_ends(
    refused: Refused, lumina2: Path, method: tuple[object, ...]
) -> None:
    message = refused(2, "generate", "-p", "a", "-o", "x.png", "--method", *method, model=lumina2)
    assert "needs image rows of codes only" in message and "sjd runs with any bundle" in message


def test_inspect(cli: Cli, lumina2: Path) -> None:
    lines = cli("inspect", model=lumina2).stdout
    official = json.loads((lumina2 / "manifest.json").read_text())["sampling"]["schedule"].get(
        "raise"
    )
    words = "raised to 4.00 or falling to it over 0.25" if official else "falling to 4.00 over 1.00"
    assert f"cfg-scale 4.00, {words} of the codes" in lines


def test_other_sizes_are_refused(refused: Refused, lumina2: Path) -> None:
    message = refused(2, "generate", "-p", "a", "-W", 96, "-H", 96, "-o", "x.png", model=lumina2)
    assert "64x96" in message and "64x32" in message
