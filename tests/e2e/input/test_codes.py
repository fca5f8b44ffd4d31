"""Files of saved codes that cannot be decoded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.support import CODES, Cli, Refused, edit_manifest

GENERATE = ("generate", "-p", "a")
DECODER_KEYS = {
    "schema_version", "name", "family", "exporter", "licence", "source", "files", "modules", "decoder",
}  # fmt: skip


def test_an_image_holds_no_codes(cli: Cli, tmp_path: Path) -> None:
    assert cli(*GENERATE, "-o", "a.png").returncode == 0
    result = cli("decode", "a.png", "-o", "b.png")
    assert result.returncode == 3 and "a.png: got an image, expected the tokens" in result.stderr


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "invalid JSON"),
        ("{}", "format is missing"),
        ('{"format": "other", "schema": 1, "images": []}', "format"),
        ('{"format": "lamplighter codes", "schema": 2, "images": []}', "schema"),
        ('{"format": "lamplighter codes", "schema": 1, "images": []}', "images"),
        ('{"format": "lamplighter codes", "schema": 1, "images": [{"rows": 1, "columns": 2, "codes": [1]}]}', "1 indices, expected 2"),
        ('{"format": "lamplighter codes", "schema": 1, "images": [{"rows": 1, "columns": 1, "codes": [-1]}]}', "-1"),
        ('{"format": "lamplighter codes", "schema": 1, "images": [{"rows": 1, "columns": 1, "codes": [40]}]}', "got id 40"),
        ('{"format": "lamplighter codes", "schema": 1, "images": [{"rows": 0, "columns": 1, "codes": []}]}', "rows"),
        ('{"format": "lamplighter codes", "schema": 1, "images": [{"rows": 1, "columns": 1, "codes": ["a"]}]}', "integers"),
    ],
)  # fmt: skip
def test_code_files(refused: Refused, tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "codes.json").write_text(content)
    assert words in refused(3, "decode", "codes.json", "-o", "x.png")


def codes_file(*grids: tuple[int, int], first: int = 0) -> str:
    images = [
        {"rows": rows, "columns": columns, "codes": [first] + [0] * (rows * columns - 1)}
        for rows, columns in grids
    ]
    return json.dumps({"format": "lamplighter codes", "schema": 1, "images": images})


@pytest.mark.parametrize("grid", [(1, 4096), (128, 128), (1024, 1024), (3, 4), (4, 3), (8, 8)])
def test_codes_of_other_grids(
    refused: Refused, tiny_bundle: Path, tmp_path: Path, grid: tuple[int, int]
) -> None:
    """Refuses before it loads weights, which are missing, and before it creates files."""
    copy = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, copy)
    (copy / "image_decoder.pt").unlink()
    (tmp_path / "codes.json").write_text(codes_file((4, 4), grid))
    words = refused(3, "decode", "codes.json", "-o", "new/", model=copy, timeout=60)
    got = f"{grid[0]}x{grid[1]} (rows x columns), expected 4x4"
    assert f"codes.json: images[1]: codes: got {got}" in words


@pytest.mark.parametrize("id", [-1, CODES, 2**31, 2**63, 2**64 - 1])
def test_codes_out_of_range(refused: Refused, tmp_path: Path, id: int) -> None:
    images = [json.loads(codes_file((4, 4), first=i))["images"][0] for i in (0, id)]
    file = {"format": "lamplighter codes", "schema": 1, "images": images}
    (tmp_path / "codes.json").write_text(json.dumps(file))
    words = refused(3, "decode", "codes.json", "-o", "x.png")
    assert words.startswith("lamplighter: error: codes.json: images[1]") and f"{id}, " in words


def test_codes_for_a_decoder_alone(
    ran: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    """A decoder's bundle names no grids, so any grid that fits into memory works."""
    copy = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, copy)

    def strip(manifest: dict[str, Any]) -> None:
        manifest["modules"] = {"image_decoder": manifest["modules"]["image_decoder"]}
        manifest["files"] = {"image_decoder.pt": manifest["files"]["image_decoder.pt"]}
        for key in set(manifest) - DECODER_KEYS:
            del manifest[key]

    edit_manifest(copy, strip)
    for rows, columns in ((3, 5), (1, 40)):
        (tmp_path / "codes.json").write_text(codes_file((rows, columns)))
        ran("decode", "codes.json", "-o", "x.png", "--overwrite", model=copy)
        with Image.open(tmp_path / "x.png") as image:
            assert image.size == (8 * columns, 8 * rows)
    for grid in ((1, 4096), (129, 128)):
        (tmp_path / "codes.json").write_text(codes_file(grid))
        words = refused(3, "decode", "codes.json", "-o", "y.png", model=copy, timeout=60)
        assert (
            f"images[0]: codes: got {grid[0]}x{grid[1]} (rows x columns), expected at most" in words
        )


def test_code_file_with_other_parameters(refused: Refused, tmp_path: Path) -> None:
    for parameters in ({}, {"schema": 1, "prompt": 3}, 5):
        image = {"rows": 1, "columns": 1, "codes": [1], "parameters": parameters}
        file = {"format": "lamplighter codes", "schema": 1, "images": [image]}
        (tmp_path / "codes.json").write_text(json.dumps(file))
        assert "images[0].parameters" in refused(3, "decode", "codes.json", "-o", "x.png")
