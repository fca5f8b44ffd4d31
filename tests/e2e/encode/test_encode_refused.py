"""Images, flags and bundles that `encode` and `generate --from` refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.encode.images import (
    CAPTION,
    JPEG,
    PNG,
    WEBP,
    codes,
    colours,
    expected,
    file_bytes,
)
from tests.e2e.support import Cli, Refused, damaged


def resized_jpeg(width: int, height: int) -> bytes:
    """The file above with other sides in its frame header."""
    at = JPEG.index(b"\xff\xc0") + 5
    return JPEG[:at] + height.to_bytes(2, "big") + width.to_bytes(2, "big") + JPEG[at + 4 :]


BAD = {
    "JPEG that is cut off": (JPEG[:-40], "damaged JPEG image: Premature end of JPEG file"),
    "JPEG of 12 bits": (JPEG.replace(b"\xff\xc0\0\x11\x08", b"\xff\xc0\0\x11\x0c"), "damaged JPEG image: "),
    "JPEG of CMYK": (
        file_bytes(colours(64, 48).convert("CMYK"), "JPEG"),
        "got a JPEG image with CMYK colours, expected grey or RGB; convert it to RGB",
    ),
    "JPEG too small for its sides": (resized_jpeg(8000, 8000), "damaged JPEG image: it is too small"),
    "JPEG too large": (resized_jpeg(9000, 9000), "got 9000x9000 pixels, expected at most 67108864"),
    "head of a WebP": (b"RIFF\x24\0\0\0WEBPVP8 ", "damaged WebP image: it is cut off"),
    "WebP that is cut off": (WEBP[:-40], "damaged WebP image: it is cut off"),
    "WebP with a damaged head": (WEBP[:20] + b"\0" + WEBP[21:], "damaged WebP image: its packed data"),
    "animated WebP": (
        file_bytes(colours(64, 48), "WebP", save_all=True, append_images=[colours(64, 48, 1)]),
        "got an animated WebP image, expected one image; save one of its frames",
    ),
    "WebP too large": (file_bytes(Image.new("1", (8200, 8200)), "WebP"), "got 8200x8200 pixels"),
    "GIF": (file_bytes(colours(64, 48), "GIF"), "in the format GIF"),
    "BMP": (file_bytes(colours(64, 48), "BMP"), "in the format BMP"),
    "text": (b"hello", "got no image"),
    "empty": (b"", "got an empty file"),
    "signature": (PNG[:8], "it is cut off"),
    "half": (PNG[: len(PNG) // 2], "cut off"),
    "without its end": (PNG[:-12], "it is cut off"),
    "damaged": (PNG[:-40] + bytes([PNG[-40] ^ 1]) + PNG[-39:], "the checksum of a chunk is wrong"),
    "declared": (PNG[:16] + b"\0\0\x40\0\0\0\x40\0" + PNG[24:], "damaged PNG image: it is too small"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_images_that_are_none(refused: Refused, bundle: Path, tmp_path: Path, kind: str) -> None:
    content, words = BAD[kind]
    (tmp_path / "good.png").write_bytes(PNG)
    (tmp_path / "a.png").write_bytes(content)
    message = refused(3, "encode", "good.png", "a.png", "-o", "x.json", model=bundle)
    assert message.startswith("lamplighter: error: a.png: ") and words in message
    line = ("generate", "-p", "a", "--from", "a.png", "--keep-rows", 1, "-o", "x.png")
    if content[:4] == b"hell":
        words = (
            "got neither an image nor codes, expected a PNG, JPEG or WebP image, or the tokens of"
        )
    assert words in refused(3, *line, model=bundle)


@pytest.mark.parametrize("name", ["a.png", "b.JPG", "c.webp", "d.jpeg"])
def test_codes_do_not_replace_images(
    refused: Refused, bundle: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    expected = f"got '{name}', expected a name that ends with .json or .safetensors"
    line = ("encode", "a.png", "-o", name, "--overwrite")
    assert f"--output: {expected}" in refused(2, *line, model=bundle)
    line = ("generate", "-p", "a", "-o", "x.png", "--save-codes", name)
    assert f"--save-codes: {expected}" in refused(2, *line, model=bundle)
    assert (tmp_path / "a.png").read_bytes() == PNG


def test_files_that_are_too_much(ran: Cli, refused: Refused, bundle: Path, tmp_path: Path) -> None:
    assert "it is a device" in refused(3, "encode", "/dev/zero", model=bundle)
    assert "none.png" in refused(3, "encode", "none.png", model=bundle)
    Image.new("1", (8200, 8200)).save(tmp_path / "large.png")
    assert "got 8200x8200 pixels" in refused(3, "encode", "large.png", model=bundle)
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "there.json").write_text("{}")
    assert "there.json" in refused(7, "encode", "a.png", "-o", "there.json", model=bundle)
    ran("encode", "-", "-o", "piped.json", model=bundle, input=PNG, text=False)
    assert codes(tmp_path / "piped.json") == [expected(bundle, colours(64, 48))]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("encode", "a.png", "--fit", "squeeze"), 2, "fit: got 'squeeze', expected crop, pad or stretch"),
        (("encode", "a.png", "-W", 100), 2, "size: got width 100, this bundle generates 64x48"),
        (("encode", "a.png", "-W", 0), 2, "width: got 0, expected 1 or more"),
        (("generate", "-p", "a", "--from", "a.png"), 2, "--keep-rows N, --keep-tokens N or --region"),
        (("generate", "-p", "a", "--from", "a.png", "--keep-rows", 4), 2, "--keep-rows: got 4, expected 1..3"),
        (("generate", "-p", "a", "--from", "a.png", "--keep-rows", 3), 2, "one is left to generate"),
        (("generate", "-p", "a", "--from", "a.png", "--keep-rows", 1, "--from-index", 1), 2, "expected 0..0"),
        (("generate", "-p", "a", "--fit", "pad"), 2, "--from"),
    ],
)  # fmt: skip
def test_flags_that_do_not_fit(
    refused: Refused, bundle: Path, tmp_path: Path, arguments: tuple[object, ...], code: int, words: str
) -> None:  # fmt: skip
    (tmp_path / "a.png").write_bytes(PNG)
    assert words in refused(code, *arguments, model=bundle)


@pytest.mark.parametrize("fit", ["pad", "crop"])
def test_fit_is_for_images(refused: Refused, bundle: Path, tmp_path: Path, fit: str) -> None:
    image = {"rows": 3, "columns": 4, "codes": [1] * 12}
    file = {"format": "lamplighter codes", "schema": 1, "images": [image]}
    (tmp_path / "codes.json").write_text(json.dumps(file))
    line = ("generate", "-p", "a", "--from", "codes.json", "--keep-rows", 1, "--fit", fit)
    assert "expected an image as --from" in refused(2, *line, model=bundle)


def test_bundles_without_an_encoder(refused: Refused, tiny_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    words = "cannot read images: it lacks image_encoder; export it again"
    assert words in refused(4, "encode", "a.png", model=tiny_bundle)
    line = ("generate", "-p", "a", "--from", "a.png", "--keep-rows", 1)
    assert words in refused(4, *line, model=tiny_bundle)


def test_nan_in_the_weights_is_named(refused: Refused, bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG)
    broken = damaged(bundle, tmp_path / "bundle", "image_encoder.pt", lambda name: "bias" in name)
    message = refused(4, "encode", "a.png", model=broken)
    assert "image_encoder: got latents that are NaN or infinite" in message


def test_outputs_are_checked_before_images_are_encoded(
    refused: Refused, bundle: Path, tmp_path: Path
) -> None:
    """A file that exists is named, not the weights of the encoder, which cannot be used."""
    (tmp_path / "a.png").write_bytes(PNG)
    (tmp_path / "there.png").write_bytes(PNG)
    broken = damaged(bundle, tmp_path / "bundle", "image_encoder.pt", lambda name: "bias" in name)
    line = ("generate", "-p", CAPTION, "--from", "a.png", "--keep-rows", 1)
    assert "there.png" in refused(7, *line, "-o", "there.png", model=broken)
    assert "image_encoder" in refused(4, *line, "-o", "new.png", model=broken)
    assert not (tmp_path / "new.png").exists()
