"""SimpleAR: negative prompts, captions of a file with prompts of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.bundles.checks import Twin
from tests.e2e.support import Cli, Refused


@pytest.fixture(params=["simplear", "simplear all ids"])
def simplear(request: pytest.FixtureRequest, twin: Twin) -> Path:
    return twin(request.param)


def test_inspect_describes_the_tokens(cli: Cli, simplear: Path) -> None:
    tokens = json.loads((simplear / "manifest.json").read_text())["tokens"]
    generated, all_of_them = tokens["codebook_size"], tokens["vocabulary"]
    expected = f"{generated} codes in a vocabulary of {all_of_them}"
    if generated == all_of_them:
        expected = f"all {generated} ids of the vocabulary, text included"
    assert expected in cli("inspect", model=simplear).stdout


def codes_of(cli: Cli, bundle: Path, folder: Path, *arguments: object) -> list[int]:
    words = ("-p", "a red boat", "-q", "-t", 1, "-o", "one.png", "--overwrite")
    save = ("--save-codes", "one.json")
    result = cli("generate", *words, *save, *arguments, model=bundle)
    assert result.returncode == 0, result.stderr
    return list(json.loads((folder / "one.json").read_text())["images"][0]["codes"])


def test_negative_prompts(cli: Cli, ran: Cli, simplear: Path, tmp_path: Path) -> None:
    """The bundle's by default, another one by flag, none without guidance; images record theirs."""
    usual = json.loads((simplear / "manifest.json").read_text())["prompt"]["negative_prompt"]
    default = codes_of(cli, simplear, tmp_path)
    assert codes_of(cli, simplear, tmp_path, "--negative-prompt", usual) == default
    fog = codes_of(cli, simplear, tmp_path, "--negative-prompt", "fog: thick")
    assert fog != default
    ran("generate", "--params-from", "one.png", "-o", "two.png", "-q", "-t", 1, model=simplear)
    assert (tmp_path / "two.png").read_bytes() == (tmp_path / "one.png").read_bytes()
    assert b"\nNegative prompt: fog: thick\n" in (tmp_path / "one.png").read_bytes()
    unguided = ("--cfg-scale", 1)
    assert codes_of(cli, simplear, tmp_path, *unguided) == codes_of(
        cli, simplear, tmp_path, *unguided, "--negative-prompt", "fog: thick"
    )


def test_one_caption_with_several_negative_prompts(
    cli: Cli, ran: Cli, simplear: Path, tmp_path: Path
) -> None:
    texts = ("fog", "rain and snow", "")
    lines = [{"prompt": "a red boat", "negative_prompt": text, "seed": 42} for text in texts]
    (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    words = ("--prompt-file", "lines.jsonl", "-q", "-t", 1, "-o", "%d.png", "--overwrite")
    ran("generate", *words, "--save-codes", "all.json", model=simplear)
    images = json.loads((tmp_path / "all.json").read_text())["images"]
    for image, text in zip(images, texts, strict=True):
        alone = codes_of(cli, simplear, tmp_path, "--seed", 42, "--negative-prompt", text)
        assert image["codes"] == alone


def test_negative_prompts_that_are_too_long(refused: Refused, simplear: Path) -> None:
    words = ("generate", "-p", "a", "--negative-prompt", "zq " * 80, "-o", "x.png")
    message = refused(3, *words, model=simplear)
    assert "negative_prompt: got" in message and "expected at most 112" in message


def test_families_without_negative_prompts(refused: Refused) -> None:
    message = refused(2, "generate", "-p", "a", "--negative-prompt", "fog", "-o", "x.png")
    assert "has no negative prompts" in message
