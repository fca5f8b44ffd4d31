"""Images that are given: the upper rows of tokens stay, what a mask marks below them is generated anew."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.serve.client import DEMO, Server, Start, error_of
from tests.e2e.serve.edit_requests import (
    CAPTION,
    EDITS,
    Continue,
    clear_below,
    colours,
    edit,
    img2img,
    png,
    settings,
    white_below,
)
from tests.e2e.support import pixels, texts


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


def test_an_image_may_be_its_own_mask(reader: Server) -> None:
    """As in OpenAI's API: without a mask, what is clear in the image is generated anew."""
    for box in ((0, 32, 64, 48), (16, 16, 48, 32)):
        clear = colours(64, 48).convert("RGBA")
        clear.paste((0, 0, 0, 0), box)
        white, mask = Image.new("RGBA", (64, 48), "white"), Image.new("RGBA", (64, 48), "white")
        white.alpha_composite(clear)
        mask.paste((0, 0, 0, 0), box)
        own = edit(reader, image=png(clear), n=2)
        assert own.images == edit(reader, image=png(white), mask=png(mask), n=2).images
        assert len(own.images) == 2 and any(
            line.startswith("mask: ") for line in own.json["warnings"]
        )
    candidates = edit(reader, image=png(clear), candidates=3)
    assert candidates.json["data"][0]["candidates"] == 3
    rows = edit(reader, image=png(clear), keep_rows=1)
    assert rows.images == edit(reader, image=png(white), keep_rows=1).images


def test_images_and_masks_of_other_formats(reader: Server) -> None:
    """JPEG and WebP: the pixels count, whatever the file."""
    white = Image.new("RGB", (64, 48), "white")
    clear = clear_below(32)
    plain = edit(reader, image=png(white), mask=png(clear))
    assert plain.status == 200, plain.body
    for kind in ("JPEG", "WebP"):
        answer = edit(reader, image=png(white, kind), mask=png(clear, "WebP"))
        assert answer.status == 200, answer.body
        assert answer.images == plain.images
        webui = img2img(reader, init_images=[png(white, kind)], mask=png(white_below(32), kind))
        assert webui.status == 200, webui.body
        assert webui.json["images"] == [base64.b64encode(one).decode() for one in plain.images]


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
    assert bad.status == 400 and "expected a lower part of the image" in bad.json["detail"]


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


def test_strict_servers_take_images_as_they_are(start: Start, encoder_bundle: Path) -> None:
    server = start("-t", 1, "--strict", model=encoder_bundle)
    assert edit(server, keep_rows=1).status == 200
    error = error_of(edit(server, keep_rows=1, image=png(colours(65, 48))), 400)
    assert error["message"] == "image: got 65x48 pixels, expected 64x48"


def test_the_demo_reads_its_own_images(start: Start) -> None:
    """What is kept, away from what is new, looks as it did."""
    server = start("-t", 1, model=DEMO)
    (image,) = server.generate(prompt=CAPTION, seed=3).images
    rows = edit(server, image=image, keep_rows=8).images
    region = edit(server, image=image, region="64,176,128,64", candidates=2).images
    assert settings(region[0])["region"] == [64, 176, 128, 64]
    before, *after = (
        np.asarray(Image.open(io.BytesIO(one)).convert("RGB")).astype(float)[:96]
        for one in (image, *rows, *region)
    )
    assert all(np.abs(one - before).mean() < 4 for one in after) and len(after) == 2


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
