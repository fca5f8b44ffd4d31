"""Tar's language model: codes of three scales, without an image decoder."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli, Refused

CAPTIONS = ("a red boat", "  Ein süßer Käfer, 35mm photo\n", "<I3> typed {rows}")
SIZES = ((84, 84), (42, 42), (28, 28))
LINES = checks.requests(SIZES, CAPTIONS, (1, 2, 1))


@pytest.fixture(scope="module")
def tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its own target as draft model."""
    sizes = [f"{width}x{height}" for width, height in SIZES]
    bundle = families.tar(tmp_path_factory.mktemp("tar"), sizes)
    attach_model(bundle, bundle, "twin")
    return bundle


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, tar: Path, tmp_path: Path, dtype: str
) -> None:
    generate = partial(checks.generate_requests, cli, tar, tmp_path, LINES)
    expected = checks.check_lossless_methods(generate, dtype, checks.EXACT)
    assert [len(image["codes"]) for image in expected] == [36] * 3 + [9] * 3 + [4] * 3
    assert len({tuple(image["codes"]) for image in expected}) == len(expected)


@pytest.mark.parametrize(
    "method", [*checks.BATCHED[:2], *checks.SIDE_BY_SIDE[:1]], ids=lambda method: method[0]
)
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, tar: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    generate = partial(checks.generate_requests, cli, tar, tmp_path, LINES)
    checks.check_batches(generate, method)


def test_inspect(cli: Cli, tar: Path) -> None:
    lines = cli("inspect", model=tar).stdout
    for grid in ("84x84 (6x6 tokens) after 305", "28x28 (2x2 tokens) after 307"):
        assert grid in lines
    assert "generate --save-codes FILE" in lines


def test_other_sizes_are_refused(refused: Refused, tar: Path) -> None:
    words = ("-p", "a", "--save-codes", "c.json", "-W", 56, "-H", 56)
    assert "84x84, 42x42, 28x28" in refused(2, "generate", *words, model=tar)
