"""Bundles with several grids: the choice of the grid, and the output of inspect."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.families import CODES, TEXT_LENGTH, VOCABULARY
from tests.e2e.support import Cli, Refused

SIZES = ((32, 96), (64, 64), (32, 64))  # in the order of the exporter's flags
LISTED = "32x96, 64x64, 32x64"


@pytest.fixture
def bundle(family: Callable[[str], Path]) -> Path:
    return family("lumina-mgpt")


@pytest.fixture
def run(ran: Cli, bundle: Path) -> Callable[..., str]:
    def run(*arguments: object) -> str:
        result = ran(*arguments, model=bundle)
        return result.stdout

    return run


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ((), (32, 96)),
        (("-W", 32), (32, 96)),
        (("-W", 64), (64, 64)),
        (("-H", 96), (32, 96)),
        (("-H", 64), (64, 64)),
        (("-W", 32, "-H", 64), (32, 64)),
        (("--width", 64, "--height", 64), (64, 64)),
    ],
)
def test_sides_choose_the_grid(
    run: Callable[..., str], tmp_path: Path, flags: tuple[object, ...], expected: tuple[int, int]
) -> None:
    """One side is enough; the first grid of the bundle with that side is used."""
    run("generate", "-p", "a tree", *flags, "-o", "a.png", "--save-codes", "codes.json")
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == expected
    (generated,) = json.loads((tmp_path / "codes.json").read_text())["images"]
    assert (generated["columns"] * 16, generated["rows"] * 16) == expected
    run("decode", "codes.json", "-o", "b.png")
    run("generate", "--params-from", "a.png", "-o", "c.png")
    assert (tmp_path / "c.png").read_bytes() == (tmp_path / "a.png").read_bytes()
    with Image.open(tmp_path / "a.png") as a, Image.open(tmp_path / "b.png") as b:
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize(
    "flags", [("-W", 48), ("-H", 32), ("-W", 64, "-H", 96), ("-W", 96, "-H", 32)]
)
def test_other_sizes(refused: Refused, bundle: Path, flags: tuple[object, ...]) -> None:
    assert LISTED in refused(2, "generate", "-p", "a", "-o", "x.png", *flags, model=bundle)


def test_sizes_of_a_prompt_file(run: Callable[..., str], tmp_path: Path) -> None:
    lines = [{"prompt": "a", "width": w, "height": h} for w, h in (*SIZES, *reversed(SIZES))]
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("generate", "--prompt-file", "p.jsonl", "-o", "%d.png", "--batch-size", 3)
    for number, line in enumerate(lines):
        with Image.open(tmp_path / f"{number}.png") as image:
            assert image.size == (line["width"], line["height"])


def test_size_is_part_of_the_prompt(run: Callable[..., str], tmp_path: Path) -> None:
    """Grids with equal numbers of codes have different prompts."""
    codes = []
    for sides in ((32, 64), (32, 96)):
        flags = ("-W", sides[0], "-H", sides[1], "--temperature", 0)
        run("generate", "-p", "a", *flags, "-o", "x.png", "--overwrite", "--save-codes", "c.json")
        codes.append(json.loads((tmp_path / "c.json").read_text())["images"][0]["codes"])
    assert codes[0] != codes[1][: len(codes[0])]


def test_long_captions(cli: Cli, refused: Refused, bundle: Path) -> None:
    words = refused(3, "generate", "-p", "word " * TEXT_LENGTH, "-o", "x.png", model=bundle)
    assert "tokens" in words and "expected at most" in words


@pytest.fixture
def report(run: Callable[..., str]) -> dict[str, Any]:
    return dict(json.loads(run("inspect", "--json", "--dtype", "bf16")))


def test_inspect_for_programs(report: dict[str, Any], bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert report["manifest"] == manifest and report["dtype"] == "bf16"
    assert set(report["methods"]) >= {"ar", "eagle", "eagle-2", "lantern", "lantern++"}
    others = ("eagle-3", "flash", "flash+sjd", "medusa", "mlp")
    assert report["missing"].pop("cspd") == ["tokens.kind: continuous"]
    assert report["missing"].pop("refine") == ["drafters", "grids without row_end"]
    side_by_side = dict.fromkeys(("zipar", "zipar+sjd", "pjd"), ["grids without row_end"])
    assert report["missing"] == dict.fromkeys(others, ["drafters"]) | side_by_side
    assert report["missing_for_generation"] == []
    assert report["sampling"] == {
        "cfg_scale": 4.0, "temperature": 1.0, "top_k": 30, "top_p": 1.0, "order": "ar",
    }  # fmt: skip
    assert report["weight_bytes"] == {
        "image_decoder": (bundle / "image_decoder.pt").stat().st_size,
        "image_encoder": (bundle / "image_encoder.pt").stat().st_size,
        "target": (bundle / "target.pt").stat().st_size,
        **{
            name: (bundle / drafter["file"]).stat().st_size
            for name, drafter in manifest["drafters"].items()
        },
    }
    assert set(manifest["drafters"]) == {"main", "twin"}
    for grid, (width, height) in zip(report["grids"], SIZES, strict=True):
        rows, columns = height // 16, width // 16
        assert (grid["width"], grid["height"]) == (width, height)
        assert (grid["rows"], grid["columns"], grid["codes"]) == (rows, columns, rows * columns)
        assert grid["row_ends"] == rows - 1
        slot = manifest["prompt"]["length"] + rows * columns + rows - 1
        row_bytes = 2 * 2 * 2 * 32  # keys and values of a guided pair: 4 heads of 8, two bytes each
        assert grid["guided_slot"] == {
            "cache_slots": slot, "target_bytes": row_bytes * slot,
            "drafter_bytes": {"main": row_bytes * slot, "twin": row_bytes * slot},
        }  # fmt: skip


def test_inspect_memory_follows_the_precision(
    report: dict[str, Any], run: Callable[..., str]
) -> None:
    """Twice the precision takes twice the bytes."""
    wide = json.loads(run("inspect", "--json", "--dtype", "fp32"))
    for narrow, other in zip(report["grids"], wide["grids"], strict=True):
        assert other["guided_slot"]["target_bytes"] == 2 * narrow["guided_slot"]["target_bytes"]


def test_inspect_for_people(run: Callable[..., str]) -> None:
    text = run("inspect", "--dtype", "bf16")
    for words in (
        "lumina-mgpt",
        "32x96 (6x2 tokens) after 8197 8807 8805, rows end with 8803",
        "64x64 (4x4 tokens)",
        "tokenizer             bpe, at most",
        'tokens: 0, "Generate an image of {width}x{height} according to the following prompt:\\n',
        "unconditional: none",
        f"{CODES} codes in a vocabulary of {VOCABULARY}",
        "caches of a guided image in bf16",
        "top-k 30",
        "ar, eagle, eagle-2, lantern, lantern++",
    ):
        assert words in text, words
