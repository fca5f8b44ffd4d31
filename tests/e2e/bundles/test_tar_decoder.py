"""Tar's de-tokenizer behind its language model, and prompts that are codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e import families
from tests.e2e.support import Cli, Refused

EXPECTED = "4, 9 or 36 codes of 0..39"


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.tar_decoder(tmp_path_factory.mktemp("tar-decoder"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return families.tar(tmp_path_factory.mktemp("tar"), ("84x84", "42x42"))


def test_captions_to_images(cli: Cli, model: Path, decoder: Path, tmp_path: Path) -> None:
    """Two commands; the image's prompt is the codes, which --params-from takes from there."""
    captions = ("-p", "a red boat", "-p", "two dogs")
    words = ("generate", *captions, "-W", 42, "-q", "--save-codes", "stage1.json")
    assert cli(*words, model=model).returncode == 0
    words = ("generate", "-q", "--method", "sjd", "--save-codes", "stage2.json")
    result = cli(*words, "--prompt-codes", "stage1.json", "-o", "%d.png", model=decoder)
    assert result.returncode == 0, result.stderr
    first, second = (
        json.loads((tmp_path / f"stage{n}.json").read_text())["images"] for n in (1, 2)
    )
    assert len(first) == len(second) == 2
    for given, made in zip(first, second, strict=True):
        assert made["parameters"]["prompt"] == " ".join(map(str, given["codes"]))
        assert (made["rows"], made["columns"]) == (4, 4)
    with Image.open(tmp_path / "1.png") as image:
        assert image.size == (8, 8)
    words = ("generate", "-q", "--params-from", "1.png", "-o", "again.png")
    assert cli(*words, model=decoder).returncode == 0
    assert (tmp_path / "again.png").read_bytes() == (tmp_path / "1.png").read_bytes()


def test_inspect(cli: Cli, decoder: Path) -> None:
    lines = cli("inspect", model=decoder).stdout
    assert "codes, at most 36 ids" in lines and "text features of width 48" in lines


def test_bench_makes_codes_of_its_own(cli: Cli, decoder: Path) -> None:
    words = ("bench", "--methods", "ar,sjd", "--repeats", 1, "--warmup", 0, "-q")
    result = cli(*words, model=decoder)
    assert result.returncode == 0, result.stderr


def test_other_prompts_are_refused(refused: Refused, decoder: Path) -> None:
    message = refused(3, "generate", "-p", "a red boat", "-o", "x.png", model=decoder)
    assert f"got 'a', expected a list of {EXPECTED}" in message and "--prompt-codes" in message
    message = refused(3, "generate", "-p", "1 2 3", "-o", "x.png", model=decoder)
    assert f"got 3 codes, expected {EXPECTED}" in message


def test_files_without_codes_are_refused(refused: Refused, decoder: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"format": "lamplighter codes", "schema": 1, "images": []}')
    words = ("generate", "--prompt-codes", "odd.json", "-o", "x.png")
    assert "odd.json" in refused(3, *words, model=decoder)


def test_bundles_of_captions_take_no_codes(refused: Refused, model: Path, tmp_path: Path) -> None:
    content = {"rows": 1, "columns": 1, "codes": [1]}
    text = json.dumps({"format": "lamplighter codes", "schema": 1, "images": [content]})
    (tmp_path / "codes.json").write_text(text)
    words = ("generate", "--prompt-codes", "codes.json", "--save-codes", "x.json")
    assert "does not read codes" in refused(2, *words, model=model)
