"""Requests with an image that are refused, and damaged ones."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.serve.client import Server, Start, error_of
from tests.e2e.serve.edit_requests import (
    BOUNDARY,
    CAPTION,
    EDITS,
    IMAGE,
    clear_below,
    colours,
    edit,
    form,
    img2img,
    png,
    send,
    white_below,
)

PART = white_below(48)  # touches three tokens of four
PART.paste(255, (10, 10, 14, 30))
PART.paste(255, (10, 20, 30, 30))
CROSS = white_below(48)
CROSS.paste(255, (0, 20, 64, 21))
CROSS.paste(255, (20, 0, 21, 48))
CLEAR = png(clear_below(32))
RECTANGLE = white_below(48)
RECTANGLE.paste(255, (16, 16, 32, 32))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mask": None}, "mask: got none, expected an image that is"),
        ({"mask": png(PART)}, "expected a lower part of the image, or a rectangle as region 0,0,32,32 around them"),
        ({"mask": png(PART)}, "a token has 16x16 pixels"),
        ({"mask": png(CROSS)}, "white pixels that touch tokens of another shape"),
        ({"mask": png(CROSS)}, "or a rectangle of some of its tokens"),
        ({"mask": png(white_below(32)), "region": [0, 0, 16, 16]}, "keep_tokens or region, expected one of them"),
        ({"keep_rows": 1, "region": [0, 0, 16, 16]}, "keep_rows: got both, expected one of them"),
        ({"mask": png(white_below(32)), "candidates": 2}, "no token is kept behind the first new one"),
        ({"keep_rows": 1, "candidates": 2}, "candidates: got it without a region, expected region or mask"),
        ({"keep_rows": 1, "behind": "redraw"}, "behind: got it without a region"),
        ({"keep_rows": 1, "pick": "best"}, "pick: got it without a region"),
        ({"region": "0,0,16"}, "body: region: got '0,0,16', expected X,Y,WIDTH,HEIGHT"),
        ({"region": [0, 0, 16]}, "region: got '0,0,16'"),
        ({"region": [0, 0, 16, 16, 16]}, "expected X,Y,WIDTH,HEIGHT"),
        ({"region": [0, 0, 16, 1e300]}, "expected X,Y,WIDTH,HEIGHT"),
        ({"region": [0, 0, 16, [[16]]]}, "expected X,Y,WIDTH,HEIGHT"),
        ({"region": ["0", 0, 16, 16]}, "expected X,Y,WIDTH,HEIGHT"),
        ({"region": 7}, "region: got '7'"),
        ({"region": {"x": 1}}, "expected X,Y,WIDTH,HEIGHT"),
        ({"region": [-1, 0, 16, 16]}, "region: got -1,0,16,16, expected X,Y,WIDTH,HEIGHT of a rectangle inside"),
        ({"region": [0, 0, 65, 16]}, "inside the 64x48 pixels of the image"),
        ({"region": [0, 0, 0, 16]}, "region: got 0,0,0,16"),
        ({"region": [2**31 - 1, 0, 2**31 - 1, 16]}, "inside the 64x48"),
        ({"region": [0, 0, 64, 48]}, "nothing of it is kept"),
        ({"region": [0, 0, 16, 16], "behind": "redraw"}, "nothing of it is kept"),
        ({"region": [0, 0, 16, 16], "behind": "else"}, "behind"),
        ({"region": [0, 0, 16, 16], "pick": "worst"}, "pick"),
        ({"region": [0, 0, 16, 16], "candidates": 0}, "candidates: got 0"),
        ({"region": [0, 0, 16, 16], "candidates": 257}, "candidates: got 257"),
        ({"region": [0, 0, 16, 16], "candidates": "two"}, "candidates"),
        ({"region": [0, 0, 16, 16], "candidates": 11}, "got 11 for 1 image, expected at most 10 in all"),
        ({"region": [0, 0, 16, 16], "candidates": 4, "n_iter": 3}, "got 4 for 3 images, expected at most 10"),
        ({"region": [0, 32, 64, 16], "candidates": 2}, "no token is kept behind the first new one"),
        ({"region": [0, 0, 16, 16], "method": "zipar"}, "image rows in parallel"),
        ({"mask": png(RECTANGLE), "keep_row": 1}, "unknown field keep_row; did you mean keep_rows?"),
        ({"mask": png(RECTANGLE), "keep_tokans": 1}, "did you mean keep_tokens?"),
        ({"mask": png(RECTANGLE), "candidate": 4}, "did you mean candidates?"),
        ({"mask": png(RECTANGLE), "behnid": "redraw"}, "did you mean behind?"),
        ({"keep_rows": 1, "regions": 4}, "did you mean region?"),
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
        ({"keep_rows": 1, "init_images": [png(colours(64, 48), "JPEG")[:-30]]}, "image: damaged JPEG image"),
        ({"keep_rows": 1, "init_images": [png(colours(64, 48).convert("CMYK"), "JPEG")]}, "convert it to RGB"),
        ({"keep_rows": 1, "init_images": [png(colours(64, 48), "GIF")]}, "convert it to PNG"),
        ({"mask": png(white_below(32), "WebP")[:-30]}, "mask: damaged WebP image: it is cut off"),
        ({"keep_rows": 1, "init_images": [IMAGE[:-30]]}, "damaged PNG image"),
        ({"mask": IMAGE[:-30]}, "mask: damaged PNG image"),
        ({"mask": "!"}, "mask: expected a PNG, JPEG or WebP file in base64"),
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
        ({}, "mask: got none, expected an image that is transparent below a line or in a rectangle, or keep"),
        ({"mask": IMAGE}, "mask: marks nothing to generate anew, expected transparent pixels"),
        ({"image": None, "keep_rows": 1}, "image: got none"),
        ({"image": b"", "keep_rows": 1}, "image: got an empty file"),
        ({"image[]": IMAGE, "keep_rows": 1}, "got several, expected one"),
        ({"keep_rows": "two"}, "keep_rows"),
        ({"keep_rows": 1, "fit": "squeeze"}, "fit: got 'squeeze'"),
        ({"keep_rows": 1, "sede": 3}, "did you mean seed"),
        ({"mask": CLEAR, "keep_row": 1}, "unknown field keep_row; did you mean keep_rows?"),
        ({"mask": CLEAR, "keeprows": 1}, "did you mean keep_rows?"),
        ({"mask": CLEAR, "keep-token": 1}, "did you mean keep_tokens?"),
        ({"masks": CLEAR, "keep_rows": 1}, "did you mean mask?"),
        ({"keep_rows": 1, "fits": "crop"}, "did you mean fit?"),
        ({"region": "0,0,16,16", "candidats": 4}, "did you mean candidates?"),
        ({"region": "0,0,16,16", "candidates": 4, "n": 3}, "got 4 for 3 images, expected at most 10 in all"),
        ({"region": "0,0,16", "prompt": CAPTION}, "expected X,Y,WIDTH,HEIGHT: four whole numbers"),
        ({"region": "[0, 0, 16]"}, "expected X,Y,WIDTH,HEIGHT: four whole numbers"),
        ({"region": 16}, "body: region: got '16'"),
        ({"region": "true"}, "body: region: got 'true'"),
        ({"region": "", "keep_rows": ""}, "mask: got none"),
        ({"image[0]": IMAGE, "keep_rows": 1}, "body: field image[0] has bytes that are not UTF-8"),
        ({"keep_rows": 1, "prompt": None}, "prompt"),
        ({"keep_rows": 1, "n": 100}, "n: got 100"),
    ],
)  # fmt: skip
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


def test_pages_of_other_sites_send_no_forms(start: Start, encoder_bundle: Path) -> None:
    """Also where a browser sends the key by itself."""
    server = start("-t", 1, "--api-key", "a key of the test", model=encoder_bundle)
    good = form({"image": IMAGE, "prompt": CAPTION, "keep_rows": 1})
    key = "Basic " + base64.b64encode(b"user:a key of the test").decode()
    assert send(server, good).status == 401
    assert send(server, good, Authorization=key).status == 200
    assert send(server, good, Authorization=key, Origin="http://other.example").status == 403


def test_strict_servers_refuse_slips_in_the_same_words(start: Start, encoder_bundle: Path) -> None:
    server = start("-t", 1, "--strict", model=encoder_bundle)
    error = error_of(edit(server, mask=CLEAR, keep_row=1), 400)
    assert error["message"] == "body: unknown field keep_row; did you mean keep_rows?"
    assert "did you mean keep_rows?" in img2img(server, mask=CLEAR, keeprows=1).json["detail"]
