"""At temperature 0, lossless methods generate the tokens of autoregressive decoding."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest

from models.demo.render.captions import caption
from models.demo.render.scene import sample_scene
from tests.e2e.support import Cli

PROMPTS = {"bf16": 16, "fp32": 8}  # fp32 takes several times as long
METHODS = (
    ("eagle", "--tree", "chain-4"),
    ("eagle", "--tree", "lantern-26"),
    ("eagle", "--tree", "chain-3", "--rule", "block"),
    ("eagle-2", "--dynamic-depth", "3", "--dynamic-width", "6", "--dynamic-nodes", "16"),
    ("eagle-2", "--dynamic-depth", "6", "--dynamic-width", "6", "--adapt", "neighbours"),
    ("sjd", "--tree", "chain-7", "--adapt", "neighbours"),
)
Generate = Callable[..., list[list[int]]]


@pytest.fixture(scope="module")
def prompts() -> list[str]:
    rng = numpy.random.default_rng(640)
    return [caption(sample_scene(rng), rng) for _ in range(max(PROMPTS.values()))]


@pytest.fixture
def generate(ran: Cli, bundle: Path, prompts: list[str], tmp_path: Path) -> Generate:
    """Image tokens of all prompts at temperature 0."""
    if not json.loads((bundle / "manifest.json").read_text()).get("drafters"):
        pytest.skip("the bundle has no drafter")

    def run(dtype: str, *method: str) -> list[list[int]]:
        lines = prompts[: PROMPTS[dtype]]
        (tmp_path / "prompts.txt").write_text("\n".join(lines) + "\n")
        ran(
            "generate", "-q", "--prompt-file", "prompts.txt", "--temperature", 0, "--dtype", dtype,
            "--batch-size", 8, "-t", 1, "-o", "%d.png", "--overwrite", "--skip-checksums",
            "--save-codes", "codes.json", "--method", *method, model=bundle,
        )  # fmt: skip
        images = json.loads((tmp_path / "codes.json").read_text())["images"]
        return [image["codes"] for image in images]

    return run


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_tokens_equal_autoregressive_decoding(generate: Generate, dtype: str) -> None:
    expected = generate(dtype, "ar")
    count = PROMPTS[dtype]
    assert len(expected) == count and len(set(map(tuple, expected))) > count // 2
    for method in METHODS:
        codes = generate(dtype, *method)
        wrong = [i for i in range(count) if codes[i] != expected[i]]
        assert not wrong, f"{' '.join(method)}: other tokens for prompts {wrong}"
