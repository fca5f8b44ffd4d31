"""GLM-Image: codes of a preview and of an image, without an image decoder."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
from safetensors.torch import load_file

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
from tests.e2e.bundles import checks
from tests.e2e.support import Cli, Refused

CAPTIONS = ("a red boat", "  Ein süßer Käfer, 35mm photo\n", "<eop> typed {rows}")
SIZE = (96, 64)  # 2 x 3 codes behind 13 x 19 of a preview
LINES = checks.requests([SIZE], CAPTIONS, (1, 2, 1))


@pytest.fixture(scope="module")
def glm_image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle with its own target as draft model."""
    bundle = families.glm_image(tmp_path_factory.mktemp("glm_image"))
    attach_model(bundle, bundle, "twin")
    return bundle


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_lossless_methods_generate_the_autoregressive_codes(
    cli: Cli, glm_image: Path, tmp_path: Path, dtype: str
) -> None:
    generate = partial(checks.generate_requests, cli, glm_image, tmp_path, LINES)
    expected = checks.check_lossless_methods(generate, dtype)
    assert {(len(image["codes"]), len(image["preview"])) for image in expected} == {(6, 13 * 19)}
    assert len({tuple(image["preview"]) for image in expected}) == len(expected)


@pytest.mark.parametrize("method", checks.BATCHED[:2], ids=lambda method: method[0])
def test_images_of_batches_equal_images_generated_alone(
    cli: Cli, glm_image: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    generate = partial(checks.generate_requests, cli, glm_image, tmp_path, LINES)
    checks.check_batches(generate, method)


@pytest.mark.parametrize("method", checks.SIDE_BY_SIDE, ids=lambda method: method[0])
def test_row_parallel_methods_refuse_previews(
    refused: Refused, glm_image: Path, method: tuple[object, ...]
) -> None:
    words = ("-p", "a", "--save-codes", "x.json", "--method", *method)
    assert "a preview stands in front of them" in refused(2, "generate", *words, model=glm_image)


def test_tensors_have_the_codes(cli: Cli, glm_image: Path, tmp_path: Path) -> None:
    """Of all images of a run, whose path is printed once."""
    for name in ("codes.json", "codes.safetensors"):
        words = ("-p", "a boat", "-b", 2, "-q", "-t", 1, "--save-codes", name)
        result = cli("generate", *words, model=glm_image)
        assert (result.returncode, result.stdout) == (0, f"{name}\n")
    tensors = load_file(tmp_path / "codes.safetensors")
    for number, image in enumerate(json.loads((tmp_path / "codes.json").read_text())["images"]):
        assert tensors[f"codes.{number}"].flatten().tolist() == image["codes"]
        assert tensors[f"codes.{number}"].shape == (image["rows"], image["columns"]) == (2, 3)
        assert tensors[f"preview.{number}"].tolist() == image["preview"]
        size = image["parameters"]
        assert (size["width"], size["height"]) == SIZE


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
