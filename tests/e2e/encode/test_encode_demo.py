"""Images into codes with the bundle that the repository ships."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.demo.render.world import render
from models.demo.training.data import scene_of
from tests.e2e.support import CAPTION, Cli, codes

SIDE, PATCH = 16, 16  # tokens of a row, pixels of a token
REGION = (6, 5, 4, 3)  # column, row, columns and rows of tokens
SAME = 0.75  # share of equal codes
GENERATED, RENDERED, KEPT = 32.0, 23.0, 30.0  # dB
CAPTIONS = (CAPTION, "a white lighthouse on the coast at dusk", "a green tent in the snow at night")


def array(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).astype(float)


def psnr(one: np.ndarray, other: np.ndarray) -> float:
    return float(10 * np.log10(255**2 / np.square(one - other).mean()))


@pytest.fixture
def boat(ran: Cli, demo_bundle: Path, tmp_path: Path) -> Path:
    """An image of the demo, with its codes beside it."""
    ran(
        "generate",
        "-p",
        CAPTION,
        "--seed",
        5,
        "-o",
        "boat.png",
        "--save-codes",
        "boat.json",
        model=demo_bundle,
    )
    return tmp_path / "boat.png"


def test_images_of_the_demo_give_their_codes(ran: Cli, demo_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("\n".join(CAPTIONS) + "\n")
    words = ("--prompt-file", "captions.txt", "--save-codes", "generated.json", "-o", "generated/")
    ran("generate", *words, model=demo_bundle)
    images = sorted((tmp_path / "generated").glob("*.png"))
    ran("encode", *images, "-o", "found.json", model=demo_bundle)
    generated, found = (
        np.array(codes(tmp_path / f"{name}.json")) for name in ("generated", "found")
    )
    assert (generated == found).mean() > SAME
    ran("decode", "found.json", "-o", "again-%d.png", model=demo_bundle)
    for number, path in enumerate(images):
        assert psnr(array(path), array(tmp_path / f"again-{number}.png")) > GENERATED


def test_renderings_are_kept(ran: Cli, demo_bundle: Path, tmp_path: Path) -> None:
    """Scenes that nothing was trained on, which the demo did not generate."""
    for seed in (0, 50):
        Image.fromarray(render(scene_of(seed), seed)).save(tmp_path / f"{seed}.png")
    ran("encode", "0.png", "50.png", "-o", "found.json", model=demo_bundle)
    ran("decode", "found.json", "-o", "again-%d.png", model=demo_bundle)
    qualities = [
        psnr(array(tmp_path / f"{seed}.png"), array(tmp_path / f"again-{number}.png"))
        for number, seed in enumerate((0, 50))
    ]
    assert min(qualities) > RENDERED


def test_a_png_goes_on_below_its_first_rows(
    ran: Cli, demo_bundle: Path, boat: Path, tmp_path: Path
) -> None:
    ran("encode", boat, "-o", "found.json", model=demo_bundle)
    words = ("-p", "a red boat on the sea at night", "--from", boat, "--keep-rows", 8)
    ran("generate", *words, "-o", "night.png", "--save-codes", "night.json", model=demo_bundle)
    (found,), (night,) = codes(tmp_path / "found.json"), codes(tmp_path / "night.json")
    assert night[: 8 * SIDE] == found[: 8 * SIDE] and night[8 * SIDE :] != found[8 * SIDE :]
    upper = slice(0, 7 * PATCH)  # the decoder sees beyond a token's square
    assert psnr(array(boat)[upper], array(tmp_path / "night.png")[upper]) > KEPT


def test_a_rectangle_of_a_png_is_generated_anew(
    ran: Cli, demo_bundle: Path, boat: Path, tmp_path: Path
) -> None:
    ran("encode", boat, "-o", "found.json", model=demo_bundle)
    column, row, columns, rows = REGION
    region = ",".join(str(PATCH * number) for number in REGION)
    words = (
        "-p",
        "a blue boat on the sea at dawn",
        "--from",
        boat,
        "--region",
        region,
        "--candidates",
        4,
    )
    ran("generate", *words, "-o", "blue.png", "--save-codes", "blue.json", model=demo_bundle)
    found, blue = (
        np.array(codes(tmp_path / f"{name}.json")).reshape(SIDE, SIDE) for name in ("found", "blue")
    )
    inside = np.zeros((SIDE, SIDE), bool)
    inside[row : row + rows, column : column + columns] = True
    assert (found == blue)[~inside].all() and (found != blue)[inside].any()


def test_a_jpeg_of_an_image_shows_the_same(
    ran: Cli, demo_bundle: Path, boat: Path, tmp_path: Path
) -> None:
    file = io.BytesIO()
    Image.open(boat).save(file, "JPEG", quality=90)
    ran("encode", "-", "-o", "found.json", model=demo_bundle, input=file.getvalue(), text=False)
    ran("decode", "found.json", "-o", "again.png", model=demo_bundle)
    assert psnr(array(boat), array(tmp_path / "again.png")) > RENDERED
