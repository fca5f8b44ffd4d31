"""Every family generates with every method, on bundles that the exporters make of small checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.bundles import checks
from tests.e2e.families import TOKEN_FAMILIES
from tests.e2e.support import Cli

CAPTIONS = ("a red boat", "Ein süßer Käfer, 35mm photo", "b")
EXACT: tuple[tuple[object, ...], ...] = (
    ("eagle", "--tree", "chain-6"),
    ("eagle", "--tree", "lantern-26"),
    ("eagle-2", "--dynamic-depth", 4, "--dynamic-width", 4, "--dynamic-nodes", 20),
    ("eagle", "--tree", "lantern-26", "--rule", "traversal"),
    ("eagle", "--tree", "chain-6", "--rule", "block"),
    ("eagle", "--tree", "chain-6", "--draft-guidance", "conditional"),
    ("draft-model", "--tree", "chain-6"),
    ("draft-model", "--tree", "lantern-26", "--draft-guidance", "conditional"),
)
RELAXED: tuple[tuple[object, ...], ...] = (
    ("lantern", "--tree", "lantern-26", "--relax-k", 8, "--delta", 0.4),
    ("lantern++", "--tree", "chain-6", "--relax-k", 8, "--lambda", 3),
)


FAMILIES = (*TOKEN_FAMILIES, "llamagen-t2i", "llamagen-c2i")


@pytest.fixture(params=FAMILIES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bundle(family: Callable[[str], Path], name: str) -> Path:
    return family(name)


def grids(bundle: Path) -> list[dict[str, Any]]:
    return list(json.loads((bundle / "manifest.json").read_text())["grids"])


def requests(bundle: Path) -> list[dict[str, Any]]:
    """Captions or classes for every grid; some without guidance."""
    by_class = json.loads((bundle / "manifest.json").read_text())["prompt"]["kind"] == "class"
    subjects = [{"class": n} if by_class else {"prompt": text} for n, text in enumerate(CAPTIONS)]
    sides = [{"width": grid["width"], "height": grid["height"]} for grid in grids(bundle)]
    scales = [{"cfg_scale": scale} for scale in (3, 1.5, 1)]
    return [{**subject, **side, **scale} for side in sides
            for subject, scale in zip(subjects, scales, strict=True)]  # fmt: skip


@pytest.fixture
def generate(ran: Cli, bundle: Path, tmp_path: Path) -> checks.Generate:
    """Generates all requests; returns the JSON lines with the codes of the images."""
    lines = "\n".join(map(json.dumps, requests(bundle)))
    (tmp_path / "requests.jsonl").write_text(lines)

    def run(*arguments: object) -> list[dict[str, Any]]:
        result = ran(
            "generate", "--prompt-file", "requests.jsonl", "--json", "-t", 1, "--skip-checksums",
            "-o", "%d.png", "--overwrite", "--save-codes", "codes.json", *arguments, model=bundle,
        )  # fmt: skip
        images = json.loads((tmp_path / "codes.json").read_text())["images"]
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        assert len(lines) == len(images)
        return [{**line, "codes": p["codes"]} for line, p in zip(lines, images, strict=True)]

    return run


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    generate: checks.Generate, bundle: Path, name: str, dtype: str
) -> None:
    methods = checks.by_turns(EXACT, FAMILIES.index(name), dtype)
    expected = checks.check_lossless_methods(generate, dtype, methods)
    assert len({tuple(generated["codes"]) for generated in expected}) > len(grids(bundle))


@pytest.mark.parametrize("method", [("ar",), *EXACT, *RELAXED], ids=lambda m: " ".join(map(str, m)))
def test_batches_and_statistics(
    generate: checks.Generate, bundle: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    """Images of a batch equal images generated alone, and statistics count codes."""
    together = generate("--method", *method, "--batch-size", 3)
    names = [f"{number}.png" for number in range(len(together))]
    files = {name: (tmp_path / name).read_bytes() for name in names}
    generate("--method", *method, "--batch-size", 1)
    assert files == {name: (tmp_path / name).read_bytes() for name in names}
    for name, generated, request in zip(names, together, requests(bundle), strict=True):
        grid = next(g for g in grids(bundle) if request.items() >= {
            "width": g["width"], "height": g["height"]}.items())  # fmt: skip
        with Image.open(tmp_path / name) as image:
            assert image.size == (grid["width"], grid["height"])
        count = grid["rows"] * grid["columns"]
        passes = generated["target_passes"]
        assert generated["tokens"] == count == len(generated["codes"])
        if method == ("ar",):
            assert passes == count
            continue
        assert 1 < passes <= count and generated["cycles"] == passes - 1
        assert generated["step_compression"] == pytest.approx(count / passes)
        drafted, accepted = generated["drafted_by_depth"], generated["accepted_by_depth"]
        assert drafted[0] > 0 and accepted == sorted(accepted, reverse=True)
        # Every cycle commits the accepted codes and one more; the last one may reach beyond the image.
        assert 0 <= sum(accepted) + generated["cycles"] - (count - 1) <= len(accepted)
    if method != ("ar",) and bundle.parent.name.startswith(tuple(TOKEN_FAMILIES)):
        passes = sum(generated["target_passes"] for generated in together)
        assert sum(generated["tokens"] for generated in together) > 1.1 * passes


def test_trees_deeper_than_images(ran: Cli, family: Callable[[str], Path], tmp_path: Path) -> None:
    """Complete images wait while others of their batch continue."""
    prompts = [word for text in (*CAPTIONS, "c") for word in ("-p", text)]
    method = ("--method", "lantern++", "--tree", "chain-12", "--lambda", 8, "--relax-k", 40)
    common = ("-b", 4, "-W", 32, "-H", 64, "-t", 1, *method)
    for size in (1, 4):
        ran(
            "generate", *prompts, *common, "-o", f"{size}/", "--batch-size", size,
            model=family("lumina-mgpt"),
        )  # fmt: skip
    for alone in sorted((tmp_path / "1").iterdir()):
        assert alone.read_bytes() == (tmp_path / "4" / alone.name).read_bytes()


def test_check(ran: Cli, bundle: Path) -> None:
    result = ran("check", bundle, model=None)
    assert {"target", "image_decoder", "main"} <= {
        line.split(":")[0] for line in result.stdout.splitlines() if ": ok, " in line
    }
