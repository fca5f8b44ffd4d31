"""Every family with the methods that need no trained drafter, on its small bundle."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.bundles import checks
from tests.e2e.bundles.checks import FAMILIES, SIDE_BY_SIDE, Twin
from tests.e2e.support import Cli, Refused


def pairs(
    methods: Callable[[checks.Family], tuple[tuple[object, ...], ...]],
) -> pytest.MarkDecorator:
    """Runs a test for these methods of every family."""
    found = [(name, method) for name, family in FAMILIES.items() for method in methods(family)]
    ids = [f"{name} {method[0]}" for name, method in found]
    return pytest.mark.parametrize(("name", "method"), found, ids=ids)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize("name", FAMILIES)
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, twin: Twin, tmp_path: Path, name: str, dtype: str
) -> None:
    lines = FAMILIES[name].requests()
    generate = partial(checks.generate_requests, cli, twin(name), tmp_path, lines)
    methods = checks.by_turns(checks.EXACT, list(FAMILIES).index(name), dtype)
    expected = checks.check_lossless_methods(generate, dtype, methods)
    assert len({tuple(checks.tokens_of(image)) for image in expected}) == len(lines)


@pairs(lambda family: family.batched if family.no_rows else family.batched + SIDE_BY_SIDE)
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, twin: Twin, tmp_path: Path, name: str, method: tuple[object, ...]
) -> None:
    lines = FAMILIES[name].requests()
    generate = partial(checks.generate_requests, cli, twin(name), tmp_path, lines)
    checks.check_batches(generate, method)


@pairs(lambda family: SIDE_BY_SIDE if family.no_rows else ())
def test_row_parallel_methods_refuse_other_rows(
    refused: Refused, twin: Twin, name: str, method: tuple[object, ...]
) -> None:
    words = ("-p", "a", "--save-codes", "x.json", "--method", *method)
    message = refused(2, "generate", *words, model=twin(name))
    assert FAMILIES[name].no_rows in message and "sjd runs with any bundle" in message


@pytest.mark.parametrize("name", FAMILIES)
def test_other_sizes_are_refused(refused: Refused, twin: Twin, name: str) -> None:
    words = ("-p", "a", "-W", 384, "-H", 384, "--save-codes", "x.json")
    message = refused(2, "generate", *words, model=twin(name))
    assert all(f"{width}x{height}" in message for width, height in FAMILIES[name].sizes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("janus", 'tokens: 609, "<|User|>: {prompt}'),
        ("janus", "unconditional: 609, padded with 611 to the same length, 612"),
        ("lumina2", "cfg-scale 4.00, falling to 4.00 over 1.00 of the codes"),
        ("lumina2 official", "cfg-scale 4.00, raised to 4.00 or falling to it over 0.25 of the codes"),
        ("simplear", '"<|t2i|>An image of {prompt}<|soi|>", negative prompt: "aerial view'),
        ("emu3", '"{prompt}<|image start|>{rows}*{columns}<|image token|>"'),
        ("emu3", 'negative prompt: "lowres, bad anatomy'),
        ("emu35", "You are a helpful assistant for t2i task. USER: {prompt} ASSISTANT: <|extra_100|>"),
        ("emu35", "<|extra_100|><|image start|>{rows}*{columns}<|image token|>"),
    ],
)  # fmt: skip
def test_inspect(cli: Cli, twin: Twin, name: str, expected: str) -> None:
    assert expected in cli("inspect", model=twin(name)).stdout


@pytest.mark.parametrize("name", FAMILIES)
def test_inspect_names_methods_that_need_a_drafter(cli: Cli, twin: Twin, name: str) -> None:
    """Also where codes are not decoded. Nothing makes refiners for rows that end, nor for heads of two layers."""
    refined = name in ("glm_image", "simplear", "simplear all ids", "tar decoder")
    names = [
        "eagle, eagle-2, eagle-3, lantern, lantern++, medusa, mlp, flash, eagle+sjd, flash+sjd"
    ]
    exporters = ["drafter, eagle-3, medusa, mlp, flash"]
    if refined:
        names.append("refine")
        exporters.append("refine")
    line = f"{', '.join(names)} need a drafter (lamplighter-export {', '.join(exporters)})"
    lines = cli("inspect", model=twin(name)).stdout.splitlines()
    assert line in [each.strip() for each in lines]
    missing = json.loads(cli("inspect", "--json", model=twin(name)).stdout)["missing"]
    reason = "target.head_layers: 1" if name == "janus" else "grids without row_end"
    assert missing["refine"] == ["drafters", *([] if refined else [reason])]


def test_captions_that_are_too_long(refused: Refused, twin: Twin) -> None:
    message = refused(3, "generate", "-p", "zq " * 80, "-o", "x.png", model=twin("janus"))
    assert "tokens, expected at most 96" in message
