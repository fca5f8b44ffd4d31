"""`generate --from`: images that begin with the first tokens of another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import CAPTION, Cli, Refused, codes, pixels, texts


@pytest.mark.parametrize(
    "method", ["ar", "eagle", "eagle-2", "flash", "refine", "sjd", "ngram", "self"]
)
def test_a_greedy_image_goes_on_as_it_was(
    ran: Cli, demo_bundle: Path, saved: Path, tmp_path: Path, method: str
) -> None:
    words = ("-p", CAPTION, "--temperature", 0, "--method", method, "--save-codes", "again.json")
    kept = ("--from", saved, "--keep-rows", 5)
    ran("generate", *words, *kept, "-o", "again.png", model=demo_bundle)
    assert codes(tmp_path / "again.json") == codes(saved)
    assert pixels(tmp_path / "again.png") == pixels(tmp_path / "boat.png")


def test_variations_share_what_is_kept(
    cli: Cli, ran: Cli, demo_bundle: Path, saved: Path, tmp_path: Path
) -> None:
    words = ("-p", "a blue house in the snow", "--variations", 3, "--save-codes", "all.json")
    kept = ("--from", saved, "--keep-tokens", 100)
    ran("generate", *words, *kept, "-o", "%d.png", "--growth", "g.png", model=demo_bundle)
    all_codes = codes(tmp_path / "all.json")
    (first,) = codes(saved)
    assert [image[:100] for image in all_codes] == [first[:100]] * 3
    assert len({tuple(image[100:]) for image in all_codes}) == 3
    recorded: dict[str, Any] = json.loads(texts(tmp_path / "1.png")["lamplighter"])
    assert recorded["kept_tokens"] == 100 and recorded["tokens"] == len(first) - 100
    assert ", Kept tokens: 100, " in texts(tmp_path / "1.png")["parameters"]
    # The same again by the settings of the image, with the codes that they do not name.
    ran("generate", "--params-from", "1.png", "--from", saved, "-o", "b.png", model=demo_bundle)
    assert pixels(tmp_path / "b.png") == pixels(tmp_path / "1.png")
    result = cli("generate", "--params-from", "1.png", "-o", "c.png", model=demo_bundle)
    assert result.returncode == 3 and "give --from CODES" in result.stderr


SQUARE = {"rows": 4, "columns": 4, "codes": [1] * 16}


@pytest.mark.parametrize(
    ("images", "arguments", "code", "words"),
    [
        ([SQUARE], (), 2, "--keep-rows N, --keep-tokens N or --region beside it"),
        ([SQUARE], ("--keep-rows", 5), 2, "--keep-rows: got 5, expected 1..4"),
        ([SQUARE], ("--keep-rows", 0), 2, "expected 1..4"),
        ([SQUARE], ("--keep-tokens", 16), 2, "one is left to generate"),
        ([SQUARE], ("--keep-tokens", 17), 2, "expected 1..16"),
        ([SQUARE], ("--keep-rows", 1, "--from-index", 1), 2, "--from-index: got 1, expected 0..0"),
        (
            [SQUARE],
            ("--keep-rows", 1, "--variations", 0),
            2,
            "--variations: got 0, expected 1 or more",
        ),
        ([SQUARE], ("--keep-rows", 1, "--variations", 10**9), 2, "in all; see --variations"),
        ([SQUARE], ("--keep-rows", 1, "--method", "zipar"), 2, "image rows in parallel"),
        ([{"rows": 1, "columns": 3, "codes": [1] * 3}], ("--keep-rows", 1), 3, "rows of 3 codes"),
        ([{"rows": 1, "columns": 4, "codes": [9999] * 4}], ("--keep-rows", 1), 3, "got code 9999"),
    ],
)
def test_what_cannot_be_kept(
    refused: Refused, tmp_path: Path, images: list[Any], arguments: tuple[object, ...], code: int,
    words: str,
) -> None:  # fmt: skip
    content = {"format": "lamplighter codes", "schema": 1, "images": images}
    (tmp_path / "codes.json").write_text(json.dumps(content))
    line = ("generate", "-p", "a", "--from", "codes.json", *arguments, "-o", "x.png")
    assert words in refused(code, *line)
