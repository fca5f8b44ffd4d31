"""Janus-Pro with the methods that need no trained drafter: padded unconditional prompts, a head of two layers."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli, Refused

CAPTIONS = ("a red boat", "  Ein süßer Käfer, 35mm photo\n", "<begin_of_image> and \u3000")
SIZES = ((128, 128), (80, 48))
LINES = checks.requests(SIZES, CAPTIONS, (5, 2, 1))


@pytest.fixture(scope="module")
def janus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its own target as draft model."""
    sizes = [f"{width}x{height}" for width, height in SIZES]
    bundle = families.janus(tmp_path_factory.mktemp("janus"), sizes)
    attach_model(bundle, bundle, "twin")
    return bundle


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, janus: Path, tmp_path: Path, dtype: str
) -> None:
    generate = partial(checks.generate_requests, cli, janus, tmp_path, LINES)
    expected = checks.check_lossless_methods(generate, dtype)
    assert len({tuple(image["codes"]) for image in expected}) == len(expected)


@pytest.mark.parametrize(
    "method", [*checks.BATCHED, *checks.SIDE_BY_SIDE], ids=lambda method: method[0]
)
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, janus: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    generate = partial(checks.generate_requests, cli, janus, tmp_path, LINES)
    checks.check_batches(generate, method)


def test_inspect(cli: Cli, janus: Path) -> None:
    lines = cli("inspect", model=janus).stdout
    assert 'tokens: 609, "<|User|>: {prompt}' in lines
    assert "unconditional: 609, padded with 611 to the same length, 612" in lines


def test_other_sizes_are_refused(refused: Refused, janus: Path) -> None:
    message = refused(2, "generate", "-p", "a", "-W", 384, "-H", 384, "-o", "x.png", model=janus)
    assert "128x128" in message and "80x48" in message


def test_captions_that_are_too_long(refused: Refused, janus: Path) -> None:
    message = refused(3, "generate", "-p", "zq " * 80, "-o", "x.png", model=janus)
    assert "tokens, expected at most 96" in message
