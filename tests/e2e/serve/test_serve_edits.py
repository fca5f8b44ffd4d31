"""Images that are given: the upper rows of tokens stay, what a mask marks below them is generated anew."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.e2e.serve.client import Answer, Server, Start, error_of
from tests.e2e.support import Cli, pixels, texts

EDITS, IMG2IMG = "/v1/images/edits", "/sdapi/v1/img2img"
CAPTION = "a red boat"
BOUNDARY = "----a form's boundary"


def colours(width: int, height: int, seed: int = 0) -> Image.Image:
    """Soft random colours."""
    random = np.random.default_rng(seed)
    coarse = random.integers(0, 256, (height // 8 + 2, width // 8 + 2, 3), dtype=np.uint8)
    return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)


def png(image: Image.Image, kind: str = "PNG") -> bytes:
    file = io.BytesIO()
    image.save(file, kind)
    return file.getvalue()


def clear_below(line: int, width: int = 64, height: int = 48) -> Image.Image:
    """A mask of OpenAI's form."""
    alpha = np.full((height, width), 255, dtype=np.uint8)
    alpha[line:] = 0
    mask = Image.new("RGBA", (width, height))
    mask.putalpha(Image.fromarray(alpha))
    return mask


def white_below(line: int, width: int = 64, height: int = 48) -> Image.Image:
    """A mask of the web UI's form."""
    grey = np.zeros((height, width), dtype=np.uint8)
    grey[line:] = 255
    return Image.fromarray(grey)


IMAGE = png(colours(64, 48))


def form(fields: dict[str, object]) -> bytes:
    """A body of the type multipart/form-data; bytes are files."""
    parts = []
    for name, value in fields.items():
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"'
        if isinstance(value, bytes):
            head += f'; filename="{name}.png"\r\nContent-Type: image/png'
        content = value if isinstance(value, bytes) else str(value).encode()
        parts.append(head.encode() + b"\r\n\r\n" + content + b"\r\n")
    return b"".join(parts) + f"--{BOUNDARY}--\r\n".encode()


def send(server: Server, body: bytes, **headers: str) -> Answer:
    kind = f'multipart/form-data; boundary="{BOUNDARY}"'
    return server.ask("POST", EDITS, body, {"Content-Type": kind, **headers})


def edit(server: Server, **fields: object) -> Answer:
    known: dict[str, object] = {"image": IMAGE, "prompt": CAPTION, "seed": 7}
    return send(server, form({k: v for k, v in (known | fields).items() if v is not None}))


def img2img(server: Server, **fields: object) -> Answer:
    known: dict[str, object] = {"init_images": [IMAGE], "prompt": CAPTION, "seed": 7}
    body = {
        key: [base64.b64encode(one).decode() for one in value]
        if key == "init_images" and isinstance(value, list)
        else base64.b64encode(value).decode()
        if isinstance(value, bytes)
        else value
        for key, value in (known | fields).items()
    }
    return server.post(IMG2IMG, body)


def settings(file: bytes) -> dict[str, Any]:
    """What a PNG file says of itself."""
    with Image.open(io.BytesIO(file)) as image:
        return json.loads(image.text["lamplighter"])  # type: ignore[attr-defined,no-any-return]


@pytest.fixture(scope="module")
def bundle(family: Callable[[str], Path]) -> Path:
    """Images of 64 x 48 pixels, 3 x 4 codes of 48."""
    return family("chameleon")


@pytest.fixture(scope="module")
def reader(start: Start, bundle: Path) -> Server:
    return start("-t", 1, "--max-body", 100000, model=bundle)


@pytest.fixture
def continued(cli: Cli, bundle: Path, tmp_path: Path) -> Callable[..., list[Path]]:
    """The images of `generate --from` with the same caption and seed."""

    def run(*words: object, image: bytes = IMAGE, count: int = 1) -> list[Path]:
        (tmp_path / "from.png").write_bytes(image)
        result = cli(
            "generate", "-p", CAPTION, "--seed", 7, "-t", 1, "--from", "from.png", *words,
            "--variations", count, "-o", "one-%d.png", "--overwrite", model=bundle,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return [tmp_path / f"one-{index}.png" for index in range(count)]

    return run


Continue = Callable[..., list[Path]]


@pytest.mark.parametrize(("line", "rows"), [(16, 1), (31, 1), (32, 2), (40, 2), (47, 2)])
def test_what_lies_below_a_line_is_generated_anew(
    reader: Server, continued: Continue, tmp_path: Path, line: int, rows: int
) -> None:
    """As `generate --from` does it; this part grows upwards to whole rows of tokens."""
    answer = edit(reader, mask=png(clear_below(line)), n=2, method="sjd")
    want = continued("--keep-rows", rows, "--method", "sjd", count=2)
    for file, path in zip(answer.images, want):
        (tmp_path / "got.png").write_bytes(file)
        assert pixels(tmp_path / "got.png") == pixels(path)
        assert settings(file) == json.loads(texts(path)["lamplighter"])
        assert settings(file)["kept_tokens"] == 4 * rows
    assert len(answer.images) == 2
    assert f"the upper {16 * rows} of 48 pixel rows are kept" in "".join(answer.json["warnings"])
    webui = img2img(reader, mask=png(white_below(line)), n_iter=2, method="sjd")
    assert webui.status == 200, webui.body
    assert [base64.b64decode(one) for one in webui.json["images"]] == answer.images
    assert "init_images" not in webui.json["parameters"]


def test_masks_of_the_web_ui(reader: Server) -> None:
    """Inverted, with clear pixels, and in grey."""
    plain = img2img(reader, mask=png(white_below(32)))
    inverted = Image.fromarray(255 - np.array(white_below(32)))
    soft = Image.fromarray((np.array(white_below(32)) // 255 * 40 + 100).astype(np.uint8))
    clear = Image.merge("RGBA", [Image.new("L", (64, 48))] * 3 + [white_below(32)])
    answers = [
        img2img(reader, mask=png(inverted), inpainting_mask_invert=1),
        img2img(reader, mask=png(soft)),
        img2img(reader, mask=png(clear)),
        img2img(reader, keep_rows=2),
        img2img(reader, keep_tokens=8, width=64, height=48),
    ]
    assert plain.status == 200, plain.body
    for answer in answers:
        assert answer.status == 200, answer.body
        assert answer.json["images"] == plain.json["images"]
    named = img2img(reader, mask=png(white_below(32)), denoising_strength=0.75, mask_blur=4)
    assert json.loads(named.json["info"])["unused"] == ["denoising_strength", "mask_blur"]


def test_borders_within_a_row_of_tokens(reader: Server) -> None:
    """A ragged border keeps what lies whole above all marked pixels."""
    slanted = np.zeros((48, 64), dtype=np.uint8)
    for x in range(64):
        slanted[33 + x // 5 :, x] = 255
    good = img2img(reader, mask=png(Image.fromarray(slanted)))
    assert good.status == 200 and good.json == img2img(reader, mask=png(white_below(32))).json
    slanted[20, 3] = 255
    bad = img2img(reader, mask=png(Image.fromarray(slanted)))
    assert bad.status == 400 and "below a line to be white" in bad.json["detail"]


def test_images_of_other_sizes(reader: Server, continued: Continue, tmp_path: Path) -> None:
    """They are cropped, padded or stretched, and the mask with them; the answer says so."""
    image = png(colours(100, 96))
    for fit in ("crop", "pad", "stretch"):
        answer = edit(reader, image=image, mask=png(clear_below(64, 100, 96)), fit=fit)
        warnings = "".join(answer.json["warnings"])
        assert "image: got 100x96 pixels" in warnings and "to 64x48" in warnings
        (path,) = continued("--keep-rows", 2, "--fit", fit, image=image)
        (tmp_path / "got.png").write_bytes(answer.images[0])
        assert pixels(tmp_path / "got.png") == pixels(path)
    # Of 61 rows 6 are cut off above: row 35 lies at 16.2, row 34 at 15.6.
    cut = edit(reader, image=image, mask=png(clear_below(35, 100, 96)), fit="crop")
    assert "mask: the upper 16 of 48" in "".join(cut.json["warnings"])
    none = error_of(edit(reader, image=image, mask=png(clear_below(34, 100, 96))), 400)
    assert "keeps no whole row of tokens" in none["message"]
    modes = [
        img2img(reader, init_images=[image], keep_rows=1, resize_mode=mode) for mode in (0, 1, 2)
    ]
    assert len({answer.json["images"][0] for answer in modes}) == 3
    assert "it was stretched to 64x48" in json.loads(modes[0].json["info"])["warnings"][0]


def test_streams_of_edits(reader: Server) -> None:
    answer = edit(reader, keep_rows=1, stream="true", partial_images=1)
    text = answer.body.decode()
    assert answer.status == 200 and "event: image_edit.completed" in text
    data = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
    assert all(one["type"].startswith("image_edit.") for one in data)
    progress = [one for one in data if one["type"] == "image_edit.progress"]
    assert progress[-1]["rows"] == 3 and all(one["in_order"] for one in progress)
    whole = edit(reader, keep_rows=1)
    assert data[-1]["b64_json"] == whole.json["data"][0]["b64_json"]
    url = edit(reader, keep_rows=1, response_format="url").json["data"][0]["url"]
    path = url[url.index("/v1") :]
    assert reader.get(path).body == whole.images[0]


UPSIDE_DOWN = Image.fromarray(255 - np.array(white_below(24)))
PART = white_below(48)
PART.paste(255, (10, 10, 30, 30))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mask": None}, "mask: got none, expected a PNG file that is"),
        ({"mask": png(PART)}, "below a line to be white"),
        ({"mask": png(UPSIDE_DOWN)}, "below a line to be white"),
        ({"mask": png(white_below(48))}, "marks nothing to generate anew"),
        ({"mask": png(white_below(0))}, "keeps no whole row of tokens"),
        ({"mask": png(white_below(15))}, "which has 16 of 48 pixels"),
        ({"mask": png(white_below(32, 32, 48))}, "mask: got 32x48 pixels, expected 64x48"),
        ({"mask": png(white_below(32)), "keep_rows": 1}, "expected one of them"),
        ({"keep_rows": 0}, "keep_rows"),
        ({"keep_rows": 3}, "one is left to generate"),
        ({"keep_rows": 4}, "keep_rows: got 4, expected 1..3"),
        ({"keep_rows": 1, "keep_tokens": 3}, "expected one of them"),
        ({"keep_rows": 1, "init_images": []}, "init_images: expected a list of one"),
        ({"keep_rows": 1, "init_images": [IMAGE, IMAGE]}, "init_images: expected a list of one"),
        ({"keep_rows": 1, "init_images": "text"}, "init_images: expected a list of one"),
        ({"keep_rows": 1, "init_images": [b"hello"]}, "image: got no image"),
        ({"keep_rows": 1, "init_images": [png(colours(64, 48), "JPEG")]}, "convert it to PNG"),
        ({"keep_rows": 1, "init_images": [IMAGE[:-30]]}, "damaged PNG image"),
        ({"mask": IMAGE[:-30]}, "mask: damaged PNG image"),
        ({"mask": "!"}, "mask: expected a PNG file in base64"),
        ({"keep_rows": 1, "init_images": [png(Image.new("1", (5000, 5000)))]}, "expected at most 16777216"),
    ],
)  # fmt: skip
def test_what_is_refused(reader: Server, fields: dict[str, Any], words: str) -> None:
    given = {key: value for key, value in fields.items() if value is not None}
    answer = img2img(reader, **given)
    assert answer.status == 400, answer.body
    assert words in answer.json["detail"] and "\n" not in answer.json["detail"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "mask: got none, expected a PNG file that is transparent below a line, or keep_rows"),
        ({"mask": IMAGE}, "mask: marks nothing to generate anew, expected transparent pixels"),
        ({"image": None, "keep_rows": 1}, "image: got none"),
        ({"image": b"", "keep_rows": 1}, "image: got an empty file"),
        ({"image[]": IMAGE, "keep_rows": 1}, "got several, expected one"),
        ({"keep_rows": "two"}, "keep_rows"),
        ({"keep_rows": 1, "fit": "squeeze"}, "fit: got 'squeeze'"),
        ({"keep_rows": 1, "sede": 3}, "did you mean seed"),
        ({"keep_rows": 1, "prompt": None}, "prompt"),
        ({"keep_rows": 1, "n": 100}, "n: got 100"),
    ],
)
def test_forms_that_are_refused(reader: Server, fields: dict[str, object], words: str) -> None:
    assert words in error_of(edit(reader, **fields), 400)["message"]


def test_damaged_forms(reader: Server) -> None:
    good = form({"image": IMAGE, "prompt": CAPTION, "keep_rows": 1, "seed": 7})
    assert send(reader, good).images == edit(reader, keep_rows=1).images
    assert send(reader, b"preamble\r\n" + good + b"epilogue").status == 200
    boundary = BOUNDARY.encode()
    bodies = {
        "cut": good[: len(good) // 2],
        "without its end": good[:-6],
        "empty": b"",
        "another boundary": good.replace(boundary, b"----another"),
        "no name": good.replace(b'name="prompt"', b'title="prompt"'),
        "no empty line": b"--" + boundary + b"\r\nabc\r\n--" + boundary + b"--\r\n",
        "behind a boundary": good.replace(boundary + b"\r\n", boundary + b"x\r\n", 1),
        "twice": form({"image": IMAGE, "keep_rows": 1, "prompt": CAPTION})[: -len(boundary) - 6]
        + form({"prompt": CAPTION}),
        "bytes": form({"image": IMAGE, "keep_rows": 1}).replace(b"keep_rows", b"keep\xffrows"),
        "many": form({f"f{number}": 1 for number in range(200)}),
    }
    for name, body in bodies.items():
        assert error_of(send(reader, body), 400)["message"], name
    for kind in ("multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=" + "a" * 71):  # fmt: skip
        error_of(reader.ask("POST", EDITS, good, {"Content-Type": kind}), 400)
    assert reader.post(EDITS, {"prompt": CAPTION}).status == 415
    assert send(reader, good + b" " * 100000).status == 413
    assert send(reader, good, Origin="http://other.example").status == 403
    assert edit(reader, keep_rows=1).status == 200


def test_pages_of_other_sites_send_no_forms(start: Start, bundle: Path) -> None:
    """Also where a browser sends the key by itself."""
    server = start("-t", 1, "--api-key", "a key of the test", model=bundle)
    good = form({"image": IMAGE, "prompt": CAPTION, "keep_rows": 1})
    key = "Basic " + base64.b64encode(b"user:a key of the test").decode()
    assert send(server, good).status == 401
    assert send(server, good, Authorization=key).status == 200
    assert send(server, good, Authorization=key, Origin="http://other.example").status == 403


def test_strict_servers_take_images_as_they_are(start: Start, bundle: Path) -> None:
    server = start("-t", 1, "--strict", model=bundle)
    assert edit(server, keep_rows=1).status == 200
    error = error_of(edit(server, keep_rows=1, image=png(colours(65, 48))), 400)
    assert error["message"] == "image: got 65x48 pixels, expected 64x48"


def test_bundles_without_an_encoder(server: Server, reader: Server) -> None:
    for one, reads in ((server, False), (reader, True)):
        assert one.get("/v1/models").json["data"][0]["image_encoder"] is reads
    error = error_of(edit(server, keep_rows=1), 501)
    assert "has no image encoder" in error["message"]
    assert "has no image encoder" in img2img(server, keep_rows=1).json["detail"]


def test_the_description_has_both_routes(reader: Server) -> None:
    described = reader.get("/openapi.json").json
    content = described["paths"][EDITS]["post"]["requestBody"]["content"]
    assert content["multipart/form-data"]["schema"] == {"$ref": "#/components/schemas/Edits"}
    schemas = described["components"]["schemas"]
    assert {"image", "mask", "keep_rows", "prompt", "n"} <= schemas["Edits"]["properties"].keys()
    assert {"init_images", "mask", "resize_mode"} <= schemas["Img2Img"]["properties"].keys()
