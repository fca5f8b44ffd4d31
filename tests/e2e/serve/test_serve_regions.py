"""Rectangles of an image that are given: they are generated anew, as `generate --from --region` does it."""

from __future__ import annotations

import base64
import io
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.serve.client import Server, Start, error_of, warnings_of
from tests.e2e.serve.edit_requests import (
    Continue,
    colours,
    edit,
    img2img,
    png,
    settings,
)
from tests.e2e.support import texts

SIGHT = "region: the model sees what lies above and to the left of a token, not what comes later"
PART = "16,16,32,16"  # tokens 1 and 2 of the middle one of three rows


def clear_in(box: tuple[int, int, int, int], width: int = 64, height: int = 48) -> bytes:
    """A mask of OpenAI's form."""
    mask = Image.new("RGBA", (width, height), (0, 0, 0, 255))
    mask.paste((0, 0, 0, 0), box)
    return png(mask)


def white_in(box: tuple[int, int, int, int], width: int = 64, height: int = 48) -> bytes:
    """A mask of the web UI's form."""
    mask = Image.new("L", (width, height))
    mask.paste(255, box)
    return png(mask)


def same(file: bytes, path: Path) -> bool:
    """Whether a file shows and says the same as one of `generate`."""
    got, want = (np.asarray(Image.open(one).convert("RGB")) for one in (io.BytesIO(file), path))
    return bool((got == want).all()) and settings(file) == json.loads(texts(path)["lamplighter"])


@pytest.mark.parametrize("method", ["ar", "sjd", "ngram"])
@pytest.mark.parametrize("behind", ["keep", "redraw"])
def test_regions_are_those_of_the_command_line(
    reader: Server, continued: Continue, behind: str, method: str
) -> None:
    """By a field or by a mask, in both forms; this mask grows to whole tokens."""
    words = ("--region", PART, "--behind", behind, "--method", method)
    paths = continued(*words, count=2)
    box = (20, 17, 48, 31)
    answers = [
        edit(reader, region=PART, behind=behind, method=method, n=2),
        edit(reader, region="[16, 16, 32, 16]", behind=behind, method=method, n=2),
        edit(reader, mask=clear_in(box), behind=behind, method=method, n=2),
    ]
    for answer in answers:
        assert all(same(file, path) for file, path in zip(answer.images, paths))
        assert SIGHT in warnings_of(answer)
        for entry in answer.json["data"]:
            assert entry["region"] == [16, 16, 32, 16] and entry["behind"] == behind
            assert entry["seen"] == "above and left" and "candidates" not in entry
            assert entry["kept_tokens"] == (10 if behind == "keep" else 5)
            assert entry["tokens"] + entry["kept_tokens"] == 12
    assert "mask: generated anew is region 16,16,32,16 of 64x48 pixels, 2x1 tokens" in "".join(
        answers[2].json["warnings"]
    )
    inverted = Image.eval(Image.open(io.BytesIO(white_in(box))), lambda value: 255 - value)
    webui = [
        img2img(reader, mask=white_in(box), behind=behind, method=method, n_iter=2),
        img2img(reader, mask=png(inverted), inpainting_mask_invert=1, behind=behind, method=method, n_iter=2),
        img2img(reader, region=[16, 16, 32, 16], behind=behind, method=method, n_iter=2),
        img2img(reader, region=PART, behind=behind, method=method, n_iter=2),
    ]  # fmt: skip
    for answer in webui:
        assert answer.status == 200, answer.body
        assert [base64.b64decode(one) for one in answer.json["images"]] == answers[0].images
        info = json.loads(answer.json["info"])
        assert SIGHT in info["warnings"] and info["unused"] == []
        assert info["extra_generation_params"]["seen"] == "above and left"
        assert 'Region: "16, 16, 32, 16"' in info["infotexts"][0]
        assert "Seen: above and left" in info["infotexts"][0]


def test_regions_grow_to_whole_tokens(reader: Server) -> None:
    plain, grown = edit(reader, region=PART), edit(reader, region="17,20,30,9")
    assert grown.images == plain.images
    assert "region: got 17,20,30,9, whole tokens are 16,16,32,16" in warnings_of(grown)
    assert "whole tokens" not in warnings_of(plain)


def test_candidates_are_those_of_the_command_line(reader: Server, continued: Continue) -> None:
    words = ("--region", PART, "--candidates", 5)
    for pick in ("best", "sample"):
        (path,) = continued(*words, "--pick", pick)
        answer = edit(reader, region=PART, candidates=5, pick=pick)
        assert same(answer.images[0], path)
        entry = answer.json["data"][0]
        assert entry["candidates"] == 5 and entry["pick"] == pick
        assert len(entry["log_probabilities"]) == 5 and entry["picked"] in range(5)
        webui = img2img(reader, mask=white_in((16, 16, 48, 32)), candidates=5, pick=pick)
        assert base64.b64decode(webui.json["images"][0]) == answer.images[0]
        extra = json.loads(webui.json["info"])["extra_generation_params"]
        assert extra["log_probabilities"] == entry["log_probabilities"]
    assert len(edit(reader, region=PART, candidates=5, n=2).images) == 2


def test_candidates_count_as_images_that_wait(start: Start, encoder_bundle: Path) -> None:
    server = start("-t", 1, "--queue", 3, "--batch-size", 1, model=encoder_bundle)
    assert edit(server, region=PART, candidates=4).status == 200
    message = error_of(edit(server, region=PART, candidates=5), 400)["message"]
    assert "got a request for 5 images, expected at most 4, the size of the queue" in message
    few = start("-t", 1, "--max-images", 2, model=encoder_bundle)
    assert edit(few, region=PART, candidates=2).status == 200
    assert "at most 2 in all" in error_of(edit(few, region=PART, candidates=3), 400)["message"]
    described = few.get("/openapi.json").json["components"]["schemas"]
    for schema in (described["Edits"], described["Img2Img"]):
        assert schema["properties"]["candidates"]["maximum"] == 2
        assert {"region", "behind", "pick"} <= schema["properties"].keys()


def test_rectangles_at_the_edges(reader: Server) -> None:
    """The upper part, a column, a corner; all that touches the same tokens is the same region."""
    for box, region in (
        ((0, 0, 64, 24), "0,0,64,32"),
        ((50, 0, 64, 48), "48,0,16,48"),
        ((63, 47, 64, 48), "48,32,16,16"),
        ((0, 0, 1, 1), "0,0,16,16"),
    ):
        answer = edit(reader, mask=clear_in(box))
        assert answer.images == edit(reader, region=region).images
        assert f"region {region} of 64x48" in warnings_of(answer)
    # A round shape that touches a square of tokens.
    y, x = np.mgrid[:48, :64]
    disc = ((x - 32) ** 2 + (y - 16) ** 2 < 13**2).astype(np.uint8) * 255
    answer = img2img(reader, mask=png(Image.fromarray(disc)))
    assert answer.json["images"] == img2img(reader, region=[16, 0, 32, 32]).json["images"]
    # A lower part with settings of a region is one.
    lower = edit(reader, mask=clear_in((0, 20, 64, 48)), behind="redraw")
    assert settings(lower.images[0])["region"] == [0, 16, 64, 32]
    assert "region" not in settings(edit(reader, mask=clear_in((0, 20, 64, 48))).images[0])


def test_masks_of_images_of_other_sizes(reader: Server, continued: Continue) -> None:
    """A mask is fitted with its image; a region counts in pixels of the generated image."""
    image = png(colours(128, 96))
    for fit in ("crop", "pad", "stretch"):
        (path,) = continued("--region", PART, "--fit", fit, image=image)
        by_mask = edit(reader, image=image, mask=clear_in((40, 35, 90, 60), 128, 96), fit=fit)
        by_field = edit(reader, image=image, region=PART, fit=fit)
        assert by_mask.images == by_field.images and same(by_field.images[0], path)
    # 64 x 96 pixels become 32 x 48 with 16 white columns at each side, which belong to the edges.
    narrow = png(colours(64, 96))
    answer = edit(reader, image=narrow, mask=clear_in((0, 40, 20, 60), 64, 96), fit="pad")
    assert "region 0,16,32,16" in warnings_of(answer)
    lower = edit(reader, image=narrow, mask=clear_in((0, 40, 64, 96), 64, 96), fit="pad")
    assert "mask: the upper 16 of 48 pixel rows are kept" in warnings_of(lower)
    # What is cropped away marks nothing.
    cropped = edit(reader, image=narrow, mask=clear_in((0, 0, 64, 20), 64, 96))
    assert "marks nothing to generate anew" in error_of(cropped, 400)["message"]


@pytest.mark.parametrize(("behind", "end"), [("keep", 48), ("redraw", 64)])
def test_streams_of_regions(reader: Server, behind: str, end: int) -> None:
    fields = {"region": "16,0,32,48", "behind": behind, "method": "ar"}
    answer = edit(reader, **fields, stream="true", partial_images=2)
    lines = answer.body.decode().splitlines()
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    assert all(one["type"].startswith("image_edit.") for one in data)
    progress = [one for one in data if one["type"] == "image_edit.progress"]
    assert progress[-1]["rows"] == 3 and all(one["in_order"] for one in progress)
    committed = [count for one in progress for count in one["committed"]]
    assert 1 + sum(committed) == 3 * (end - 16) // 16
    assert data[-1]["b64_json"] == edit(reader, **fields).json["data"][0]["b64_json"]
    assert data[-1]["seen"] == "above and left" and SIGHT in data[-1]["warnings"]
    # Around the region a partial image shows what is kept.
    for one in data:
        if one["type"] != "image_edit.partial_image":
            continue
        shown = np.asarray(Image.open(io.BytesIO(base64.b64decode(one["b64_json"]))).convert("RGB"))
        grey = (shown == 128).all(2)
        assert grey[47, end - 1] and not grey[0, 16:end].any()
        assert not grey[:, :16].any() and not grey[:, end:].any()


@pytest.mark.parametrize("candidates", [3, 5])  # five do not run at once
def test_streams_of_candidates(reader: Server, candidates: int) -> None:
    """Their tokens count as tokens of one image, in no order of the raster."""
    answer = edit(reader, region="16,0,32,32", candidates=candidates, method="ar", stream="true")
    lines = answer.body.decode().splitlines()
    data = [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    progress = [one for one in data if one["type"] == "image_edit.progress"]
    assert progress and not any(one["in_order"] for one in progress)
    assert (
        1 + sum(count for one in progress for count in one["committed"]) == data[-1]["tokens"] == 4
    )


def test_images_beside_regions(reader: Server) -> None:
    """A region with candidates and other images run side by side, and none changes another."""
    asked: list[dict[str, object]] = [
        {"region": PART, "candidates": 4, "seed": 3},
        {"keep_rows": 1, "seed": 4},
        {"region": "0,0,16,16", "seed": 5},
    ]
    alone = [edit(reader, **fields).images for fields in asked]
    with ThreadPoolExecutor() as clients:
        assert list(clients.map(lambda fields: edit(reader, **fields).images, asked)) == alone
