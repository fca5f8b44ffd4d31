"""GLM-Image: codes of a preview and of an image, without an image decoder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from safetensors.torch import load_file

from tests.e2e.bundles.checks import Twin
from tests.e2e.support import Cli, Refused

SIDES = (2, 3)  # of the codes, behind 13 x 19 of a preview


@pytest.fixture
def glm_image(twin: Twin) -> Path:
    return twin("glm_image")


def test_tensors_have_the_codes(cli: Cli, glm_image: Path, tmp_path: Path) -> None:
    """Of all images of a run, whose path is printed once."""
    for name in ("codes.json", "codes.safetensors"):
        words = ("-p", "a boat", "-b", 2, "-q", "-t", 1, "--save-codes", name)
        result = cli("generate", *words, model=glm_image)
        assert (result.returncode, result.stdout) == (0, f"{name}\n")
    tensors = load_file(tmp_path / "codes.safetensors")
    for number, image in enumerate(json.loads((tmp_path / "codes.json").read_text())["images"]):
        assert tensors[f"codes.{number}"].flatten().tolist() == image["codes"]
        assert tensors[f"codes.{number}"].shape == (image["rows"], image["columns"]) == SIDES
        assert tensors[f"preview.{number}"].tolist() == image["preview"]
        assert len(image["preview"]) == 13 * 19
        size = image["parameters"]
        assert (size["width"], size["height"]) == (96, 64)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--save-codes: got none, expected a file"),
        (("--save-codes", "c.json", "-o", "a.png"), "--output: got 'a.png', expected none"),
        (("--save-codes", "c.json", "--grid", "a.png"), "--grid: got 'a.png', expected none"),
        (("--save-codes", "c.json", "--growth", "a.png"), "--growth: got 'a.png', expected none"),
        (("--save-codes", "c.json", "--skip-existing"), "--skip-existing: got it"),
    ],
)
def test_files_of_images_are_refused(
    refused: Refused, glm_image: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    text = refused(2, "generate", "-p", "a", *words, model=glm_image)
    assert message in text and "has no image decoder, it generates codes" in text
    assert not list(tmp_path.iterdir())


def test_lines_that_name_images_fail(refused: Refused, glm_image: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.jsonl").write_text('{"prompt": "a", "output": "a.png"}\n')
    words = ("--prompt-file", "lines.jsonl", "--save-codes", "c.json")
    assert "output: got 'a.png', expected none" in refused(3, "generate", *words, model=glm_image)


def test_inspect(cli: Cli, glm_image: Path) -> None:
    lines = cli("inspect", model=glm_image).stdout
    assert "96x64 (2x3 tokens) behind a preview (13x19 tokens)" in lines
    assert "missing for images modules.image_decoder" in " ".join(lines.split())
    assert "generate --save-codes FILE" in lines


def test_images_are_refused(refused: Refused, glm_image: Path) -> None:
    message = refused(4, "serve", "--port", 0, model=glm_image)
    assert "cannot generate images: it lacks modules.image_decoder" in message
