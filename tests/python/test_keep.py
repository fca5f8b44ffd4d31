"""Images that begin with the first tokens of another one, from Python."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.conftest import Runner
from tests.e2e.families import chameleon

CAPTION = "a red boat"
KEPT = {"keep": np.ones((3, 4), int)}


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 64 x 48 pixels, 3 x 4 codes of 48, with an image encoder."""
    return chameleon(tmp_path_factory.mktemp("chameleon"))


@pytest.fixture(scope="module")
def reader(package: Any, bundle: Path) -> Any:
    return package.TextToImage(bundle, device="cpu", threads=1)


@pytest.fixture
def image() -> Image.Image:
    random = np.random.default_rng(0)
    return Image.fromarray(random.integers(0, 256, (30, 70, 4), dtype=np.uint8))


def test_images_are_those_of_the_program(
    reader: Any, lamplighter: Path, bundle: Path, run_program: Runner, image: Image.Image, tmp_path: Path
) -> None:  # fmt: skip
    image.save(tmp_path / "a.png")
    for part, fit in (({"keep_rows": 2}, None), ({"keep_tokens": 5}, "pad")):
        name, value = next(iter(part.items()))
        words = ["--" + name.replace("_", "-"), value, *(("--fit", fit) if fit else ())]
        ran = run_program(
            lamplighter, "generate", "-m", bundle, "-p", CAPTION, "--variations", 2, "--seed", 7,
            "--device", "cpu", "-t", 1, "--from", "a.png", *words, "-o", f"{name}-%d.png",
            "--save-codes", f"{name}.json", cwd=tmp_path,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        saved = [
            one["codes"] for one in json.loads((tmp_path / f"{name}.json").read_text())["images"]
        ]
        results = reader.generate([CAPTION] * 2, seed=7, keep=image, fit=fit, **part)
        assert [result.codes.ravel().tolist() for result in results] == saved
        kept = 8 if name == "keep_rows" else 5
        assert [result.settings["kept_tokens"] for result in results] == [kept, kept]
        assert (results[0].codes != results[1].codes).any()


def test_regions_are_those_of_the_program(
    reader: Any, lamplighter: Path, bundle: Path, run_program: Runner, image: Image.Image, tmp_path: Path
) -> None:  # fmt: skip
    image.save(tmp_path / "a.png")
    ran = run_program(
        lamplighter, "generate", "-m", bundle, "-p", CAPTION, "--seed", 7, "--device", "cpu", "-t", 1, "--from",
        "a.png", "--region", "17,0,30,20", "--candidates", 3, "--pick", "sample", "-o", "part.png", "--json",
        cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    line = json.loads(ran.stdout)
    (part,) = reader.generate(
        CAPTION, seed=7, keep=image, region=(17, 0, 30, 20), candidates=3, pick="sample"
    )
    assert part.settings["region"] == line["region"] == [16, 0, 32, 32]
    assert part.settings["log_probabilities"] == line["log_probabilities"]
    assert np.array_equal(np.asarray(Image.open(tmp_path / "part.png")), np.asarray(part.image))
    whole = reader.encode(image)
    assert np.array_equal(part.codes[~inside(whole)], whole[~inside(whole)])
    (below,) = reader.generate(CAPTION, keep=whole, region=(17, 0, 30, 20), behind="redraw")
    assert np.array_equal(below.codes[:2, 0], whole[:2, 0])
    assert below.settings["kept_tokens"] == 2


def inside(codes: Any) -> Any:
    """The tokens of the region above."""
    found = np.zeros(codes.shape, bool)
    found[:2, 1:3] = True
    return found


def test_every_form_of_an_image(reader: Any, image: Image.Image, tmp_path: Path) -> None:
    image.save(tmp_path / "a.png")
    file = io.BytesIO()
    image.save(file, "PNG")
    webp = io.BytesIO()
    image.save(webp, "WebP", lossless=True, exact=True)
    image.convert("RGB").save(tmp_path / "a.jpg")
    codes = reader.encode(image)
    saved = {"rows": 3, "columns": 4, "codes": codes.ravel().tolist()}
    text = {"format": "lamplighter codes", "schema": 1, "images": [saved]}
    (tmp_path / "codes.json").write_text(json.dumps(text))
    forms = [
        tmp_path / "a.png", str(tmp_path / "a.png"), file.getvalue(), webp.getvalue(), image, np.asarray(image),
        codes, codes.astype(np.int64), codes[:2], tmp_path / "codes.json", json.dumps(text).encode(),
    ]  # fmt: skip
    found = [reader.generate(CAPTION, keep=form, keep_rows=2)[0].codes for form in forms]
    assert found[0][:2].tolist() == codes[:2].tolist()
    assert all(np.array_equal(found[0], one) for one in found)
    with Image.open(tmp_path / "a.jpg") as read:
        jpeg, decoded = (
            reader.generate(CAPTION, keep=form, keep_rows=2)[0].codes[:2]
            for form in (tmp_path / "a.jpg", read)
        )
    assert (jpeg != decoded).sum() <= 2


def test_the_pipeline_takes_images(package: Any, bundle: Path, reader: Any, image: Image.Image) -> None:  # fmt: skip
    pipeline = package.Pipeline.from_pretrained(bundle, device="cpu", threads=1)
    pipeline.set_progress_bar_config(disable=True)
    output = pipeline(CAPTION, image=image, keep_rows=1, seed=3, num_images_per_prompt=2)
    want = reader.generate([CAPTION] * 2, seed=3, keep=image, keep_rows=1)
    assert [one.tobytes() for one in output.images] == [one.image.tobytes() for one in want]
    with pytest.raises(TypeError, match="mask_image is not supported; use image with keep_rows"):
        pipeline(CAPTION, image=image, mask_image=image)


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"keep": b"hello", "keep_rows": 1}, 3, "keep: "),
        ({"keep": b"\xff\xd8\xff", "keep_rows": 1}, 3, "keep: damaged JPEG image"),
        ({"keep": b"RIFF\x24\0\0\0WEBPVP8 ", "keep_rows": 1}, 3, "keep: damaged WebP image: it is cut off"),
        ({"keep": b"GIF89a", "keep_rows": 1}, 3, "in the format GIF, expected a PNG, JPEG or WebP"),
        ({"keep": "none.png", "keep_rows": 1}, 3, "none.png"),
        ({"keep": np.zeros((3, 4)), "keep_rows": 1}, 2, r"keep: got float64 of shape \(3, 4\)"),
        ({"keep": np.full((3, 4), 2**40), "keep_rows": 1}, 2, "keep: got codes above 2147483647"),
        ({"keep": np.full((3, 4), 48), "keep_rows": 1}, 3, "got code 48, expected 0..47"),
        ({"keep": np.ones((3, 5), int), "keep_rows": 1}, 3, "keep: got rows of 5 codes"),
        ({"keep": np.ones((3, 4), int)}, 2, "keep: expected keep_rows N, keep_tokens N or region beside"),
        ({"keep": np.ones((3, 4), int), "keep_rows": 1, "keep_tokens": 1}, 2, "expected one of them"),
        ({"keep": np.ones((3, 4), int), "keep_rows": 0}, 2, "keep_rows: got 0, expected 1..3"),
        ({"keep": np.ones((3, 4), int), "keep_rows": 3}, 2, "one is left to generate"),
        ({"keep": np.ones((3, 4), int), "keep_rows": 1.5}, 2, "keep_rows: got 1.5, expected a whole"),
        ({"keep": np.ones((3, 4), int), "keep_tokens": 2**70}, 2, "expected a smaller number"),
        ({"keep": np.ones((3, 4), int), "keep_rows": 1, "fit": "crop"}, 2, "fit: got it beside codes"),
        ({"keep": Image.new("RGB", (9, 9)), "keep_rows": 1, "fit": "squeeze"}, 2, "got 'squeeze'"),
        ({"keep_rows": 1}, 2, "keep_rows: got 1, expected keep beside it"),
        ({"region": (0, 0, 8, 8)}, 2, "region: got .0, 0, 8, 8., expected keep beside it"),
        ({"behind": "keep", **KEPT}, 2, "behind: got 'keep', expected region beside it"),
        ({"candidates": 2, **KEPT}, 2, "candidates: got 2, expected region beside it"),
        ({"region": (0, 0, 8), **KEPT}, 2, "region: got .0, 0, 8., expected x, y, width, height"),
        ({"region": (0, 0, 8, 2**31), **KEPT}, 2, "expected x, y, width, height"),
        ({"region": (0, 0, 8, 0.5), **KEPT}, 2, "expected x, y, width, height"),
        ({"region": 5, **KEPT}, 2, "region: got 5, expected x, y, width, height"),
        ({"region": (0, 0, 65, 8), **KEPT}, 2, "a rectangle inside the 64x48 pixels"),
        ({"region": (0, 0, 64, 48), **KEPT}, 2, "nothing of it is kept"),
        ({"region": (0, 0, 8, 8), "behind": 3, **KEPT}, 2, "behind: got 3, expected a word"),
        ({"region": (0, 0, 8, 8), "behind": "x", **KEPT}, 2, "behind: got 'x', expected keep or redraw"),
        ({"region": (0, 0, 8, 8), "pick": "x", **KEPT}, 2, "pick: got 'x', expected best or sample"),
        ({"region": (0, 0, 8, 8), "candidates": 0, **KEPT}, 2, "candidates: got 0, expected 1..256"),
        ({"region": (0, 0, 8, 8), "candidates": 2**40, **KEPT}, 2, "expected a smaller number"),
        ({"region": (0, 0, 8, 8), "keep_rows": 1, **KEPT}, 2, "region, keep_rows: got both"),
        ({"fit": "pad"}, 2, "fit: got 'pad', expected keep beside it"),
    ],
)  # fmt: skip
def test_what_cannot_be_kept(
    package: Any, reader: Any, options: dict[str, Any], code: int, words: str
) -> None:
    with pytest.raises(package.Error, match=words) as caught:
        reader.generate(CAPTION, **options)
    assert caught.value.exit_code == code and "\n" not in str(caught.value)


def test_bundles_without_an_encoder_keep_codes(package: Any, bare_bundle: Path) -> None:
    engine = package.TextToImage(bare_bundle, device="cpu", threads=1)
    (first,) = engine.generate("a tent at night", method="sjd", seed=1)
    (below,) = engine.generate("a tent at dawn", method="sjd", keep=first.codes, keep_rows=8)
    assert np.array_equal(below.codes[:8], first.codes[:8])
    assert (below.codes != first.codes).any()
    with pytest.raises(package.Error, match="lacks image_encoder"):
        engine.generate("a tent at dawn", keep=first.image, keep_rows=8)
