"""Images in: `encode`, and `generate --from` with an image."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.e2e.support import Cli, Refused, damaged, edit_manifest, pixels, texts

CAPTION = "a red boat"


def colours(width: int, height: int, seed: int = 0) -> Image.Image:
    """Soft random colours."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def scaled(image: Image.Image, width: int, height: int) -> Image.Image:
    """Rows first: Pillow itself takes columns first for some sizes."""
    rows = image.resize((width, image.height), Image.Resampling.LANCZOS)
    return rows.resize((width, height), Image.Resampling.LANCZOS)


def codes(path: Path) -> list[list[int]]:
    return [image["codes"] for image in json.loads(path.read_text())["images"]]


def expected(bundle: Path, image: Image.Image) -> list[int]:
    """The codes by the bundle's module itself."""
    module = torch.jit.load(str(bundle / "image_encoder.pt"))
    module.prepare(torch.empty(0))
    values = torch.from_numpy(np.array(image.convert("RGB"))).float() / 255 * 2 - 1
    with torch.inference_mode():
        found = module.nearest(module.latents(values.permute(2, 0, 1)[None].contiguous()))
    return found.flatten().tolist()  # type: ignore[no-any-return]


@pytest.fixture
def bundle(family: Callable[[str], Path]) -> Path:
    """Images of 64 x 48 pixels, 3 x 4 codes of 48."""
    return family("chameleon")


@pytest.fixture
def encode(ran: Cli, bundle: Path, tmp_path: Path) -> Callable[..., list[list[int]]]:
    def run(*words: object, model: Path = bundle) -> list[list[int]]:
        result = ran("encode", *words, "-o", "codes.json", "--overwrite", model=model)
        assert result.stdout == "codes.json\n" and result.stderr == ""
        return codes(tmp_path / "codes.json")

    return run


Encode = Callable[..., list[list[int]]]


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


def file_bytes(image: Image.Image, format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


PNG, JPEG = file_bytes(colours(64, 48)), file_bytes(colours(64, 48), "JPEG")
WEBP = file_bytes(colours(64, 48), "WebP", lossless=True)


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
    if content[:4] not in (b"", b"hell"):  # others are read as codes
        line = ("generate", "-p", "a", "--from", "a.png", "--keep-rows", 1, "-o", "x.png")
        assert words in refused(3, *line, model=bundle)


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
