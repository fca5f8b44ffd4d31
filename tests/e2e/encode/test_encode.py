"""Images in: `encode`, and `generate --from` with an image."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.e2e.encode.images import (
    CAPTION,
    JPEG,
    WEBP,
    Encode,
    codes,
    colours,
    expected,
    file_bytes,
    scaled,
)
from tests.e2e.support import Cli, Refused, edit_manifest, pixels, texts


def test_codes_are_those_of_the_module(
    ran: Cli, encode: Encode, bundle: Path, tmp_path: Path
) -> None:
    """Several images become one file in order, which decode reads."""
    images = [colours(64, 48, seed) for seed in range(3)]
    for number, image in enumerate(images):
        image.save(tmp_path / f"{number}.png")
    found = encode("0.png", "1.png", "2.png")
    assert found == [expected(bundle, image) for image in images]
    assert len({tuple(own) for own in found}) == 3
    file = json.loads((tmp_path / "codes.json").read_text())
    assert [(image["rows"], image["columns"]) for image in file["images"]] == [(3, 4)] * 3
    ran("decode", "codes.json", "-o", "again-%d.png", model=bundle)
    with Image.open(tmp_path / "again-2.png") as image:
        assert image.size == (64, 48)


@pytest.mark.parametrize("size", [(64, 48), (640, 200), (50, 300), (33, 21), (7, 1)])
def test_images_of_other_sizes(
    encode: Encode, bundle: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    """Cropped, padded and stretched as Pillow does with Lanczos' filter."""
    image = colours(*size)
    image.save(tmp_path / "a.png")
    width, height = size
    factor = max(64 / width, 48 / height)
    wide, tall = max(round(width * factor), 1), max(round(height * factor), 1)
    left, top = (wide - 64) // 2, (tall - 48) // 2
    cropped = scaled(image, wide, tall).crop((left, top, left + 64, top + 48))
    assert encode("a.png") == encode("a.png", "--fit", "crop") == [expected(bundle, cropped)]
    stretched = scaled(image, 64, 48)
    assert encode("a.png", "--fit", "stretch") == [expected(bundle, stretched)]
    factor = min(64 / width, 48 / height)
    wide, tall = max(round(width * factor), 1), max(round(height * factor), 1)
    padded = Image.new("RGB", (64, 48), "white")
    padded.paste(scaled(image, wide, tall), ((64 - wide) // 2, (48 - tall) // 2))
    assert encode("a.png", "--fit", "pad") == [expected(bundle, padded)]


def test_every_kind_of_png(encode: Encode, bundle: Path, tmp_path: Path) -> None:
    image = colours(64, 48)
    alpha = image.copy()
    alpha.putalpha(Image.linear_gradient("L").resize((64, 48)))
    ground = Image.new("RGBA", (64, 48), "white")
    deep = np.array(image.convert("L")).astype(np.uint16) * 257
    kinds = {
        "RGBA": (alpha, Image.alpha_composite(ground, alpha)),
        "L": (image.convert("L"), image.convert("L")),
        "P": (image.quantize(30), image.quantize(30)),
        "1": (image.convert("1"), image.convert("1")),
        "I;16": (Image.fromarray(deep), image.convert("L")),
    }
    for name, (saved, meant) in kinds.items():
        saved.save(tmp_path / "a.png")
        assert encode("a.png") == [expected(bundle, meant)], name


def test_jpeg_and_webp(encode: Encode, bundle: Path, tmp_path: Path) -> None:
    """Whatever the name says. Other decoders of JPEG may round otherwise."""
    image = colours(64, 48)
    (tmp_path / "a.png").write_bytes(WEBP)
    assert encode("a.png") == [expected(bundle, image)]
    files = {
        "JPEG": JPEG,
        "progressive": file_bytes(image, "JPEG", quality=90, progressive=True),
        "grey": file_bytes(image.convert("L"), "JPEG"),
        "WebP": file_bytes(image, "WebP", quality=80),
    }
    for name, content in files.items():
        (tmp_path / "a.jpg").write_bytes(content)
        with Image.open(io.BytesIO(content)) as read:
            wanted = expected(bundle, read)
        (found,) = encode("a.jpg")
        assert sum(one != other for one, other in zip(found, wanted)) <= 2, name


def test_jpeg_and_webp_are_turned(encode: Encode, bundle: Path, tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter to the right
    turned = colours(48, 64)
    for name, options in (
        ("a.jpg", {"quality": 100, "subsampling": 0}),
        ("a.webp", {"lossless": True}),
    ):
        turned.save(tmp_path / name, exif=exif, **options)
        (found,) = encode(name)
        wanted = expected(bundle, turned.transpose(Image.Transpose.ROTATE_270))
        assert sum(one != other for one, other in zip(found, wanted)) <= 2, name


def test_the_size_of_a_image_chooses_the_grid(
    encode: Encode, family: Callable[[str], Path], tmp_path: Path
) -> None:
    """Grids of 32 x 96, 64 x 64 and 32 x 64 pixels."""
    lumina = family("lumina-mgpt")
    colours(64, 64).save(tmp_path / "square.png")
    colours(100, 80).save(tmp_path / "other.png")
    assert encode("square.png", model=lumina) == [expected(lumina, colours(64, 64))]
    assert [len(own) for own in encode("square.png", "other.png", model=lumina)] == [16, 12]
    assert [len(own) for own in encode("other.png", "-W", 64, model=lumina)] == [16]
    assert [len(own) for own in encode("square.png", "-H", 64, "-W", 32, model=lumina)] == [8]


def test_a_image_goes_on(ran: Cli, encode: Encode, bundle: Path, tmp_path: Path) -> None:
    """Its first rows are kept, and a file of its codes gives the same images."""
    colours(64, 48).save(tmp_path / "a.png")
    (own,) = encode("a.png")
    words = ("-p", CAPTION, "--keep-rows", 2, "--variations", 3)
    for name in ("a.png", "codes.json"):
        ran(
            "generate", *words, "--from", name, "-o", f"{name}-%d.png", "--save-codes",
            f"{name}.out", model=bundle,
        )  # fmt: skip
    images = codes(tmp_path / "a.png.out")
    assert [image[:8] for image in images] == [own[:8]] * 3
    assert len({tuple(image[8:]) for image in images}) > 1
    assert codes(tmp_path / "codes.json.out") == images
    assert pixels(tmp_path / "a.png-1.png") == pixels(tmp_path / "codes.json-1.png")
    recorded: dict[str, Any] = json.loads(texts(tmp_path / "a.png-1.png")["lamplighter"])
    assert recorded["kept_tokens"] == 8 and recorded["tokens"] == 4
    again = ("--params-from", "a.png-1.png", "--from", "a.png", "-o", "b.png")
    ran("generate", *again, model=bundle)
    assert pixels(tmp_path / "b.png") == pixels(tmp_path / "a.png-1.png")


def test_a_image_gets_the_size_of_the_image(
    ran: Cli, family: Callable[[str], Path], tmp_path: Path
) -> None:
    lumina = family("lumina-mgpt")
    colours(90, 90).save(tmp_path / "a.png")
    stretched = scaled(colours(90, 90), 64, 64)
    words = ("-p", CAPTION, "--from", "a.png", "--keep-tokens", 5, "--fit", "stretch", "-W", 64)
    ran("generate", *words, "-o", "b.png", "--save-codes", "b.json", model=lumina)
    assert codes(tmp_path / "b.json")[0][:5] == expected(lumina, stretched)[:5]


@pytest.mark.parametrize("method", ["eagle", "sjd", "lantern"])
def test_every_method_keeps_the_image(
    ran: Cli, encode: Encode, bundle: Path, tmp_path: Path, method: str
) -> None:
    colours(64, 48).save(tmp_path / "a.png")
    (own,) = encode("a.png")
    words = ("-p", CAPTION, "--from", "a.png", "--keep-tokens", 7, "--method", method)
    if method == "lantern":
        words = (*words, "--relax-k", 7)
    ran("generate", *words, "-o", "b.png", "--save-codes", "b.json", model=bundle)
    assert codes(tmp_path / "b.json")[0][:7] == own[:7]


def test_an_encoder_and_a_decoder_alone(
    ran: Cli, refused: Refused, bundle: Path, tmp_path: Path
) -> None:
    """A bundle that names no sizes takes whole tokens of any image."""
    copy = tmp_path / "bundle"
    copy.mkdir()
    for role in ("image_encoder", "image_decoder"):
        (copy / f"{role}.pt").write_bytes((bundle / f"{role}.pt").read_bytes())
    (copy / "manifest.json").write_text((bundle / "manifest.json").read_text())
    kept = {
        "schema_version", "name", "family", "exporter", "licence", "source", "files", "modules", "decoder",
    }  # fmt: skip

    def strip(manifest: dict[str, Any]) -> None:
        for part in ("modules", "files"):
            names = [name for name in manifest[part] if not name.startswith("image_")]
            for name in names:
                del manifest[part][name]
        for key in set(manifest) - kept:
            del manifest[key]

    edit_manifest(copy, strip)
    colours(71, 40).save(tmp_path / "a.png")
    ran("encode", "a.png", "-o", "a.json", model=copy)
    (image,) = json.loads((tmp_path / "a.json").read_text())["images"]
    assert (image["rows"], image["columns"]) == (2, 4)
    ran("decode", "a.json", "-o", "b.png", model=copy)
    assert "multiples of 16" in refused(3, "encode", "a.png", "-W", 50, "-o", "b.json", model=copy)
    assert "expected at most" in refused(
        3, "encode", "a.png", "-W", 4096, "-H", 4096, "-o", "b.json", model=copy
    )
