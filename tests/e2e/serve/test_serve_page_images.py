"""Where the page of `serve` gets the image that it continues: files, drops, its own images; sizes and models."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.browser import Browser
from tests.e2e.serve.client import Server, Start
from tests.e2e.serve.edit_requests import CAPTION, IMAGE, colours, edit, png, settings
from tests.e2e.serve.page_actions import (
    GIVEN,
    HAS_BUTTON,
    READY,
    Given,
    begin,
    choose,
    choose_file,
    count,
    drop_file,
    file_of,
    fill,
    generate,
    keep,
    shown,
    value,
    visit,
    words,
)


@pytest.mark.parametrize(("kind", "name"), [("JPEG", "sea.jpg"), ("WEBP", "sea.webp")])
def test_images_of_other_sizes_and_formats(
    browser: Browser, page_reader: Server, given: Given, kind: str, name: str
) -> None:
    """The browser fits the middle of the image to the model's size."""
    image = colours(96, 48).resize((1200, 600), Image.Resampling.BICUBIC)
    begin(browser, page_reader, given(png(image, kind), name))
    assert words(browser, "#fitted") == f"{name}, fitted to 64x48"
    want = image.crop((200, 0, 1000, 600)).resize((64, 48), Image.Resampling.BOX)
    got = Image.open(io.BytesIO(shown(browser)))
    assert got.size == (64, 48)
    difference = np.abs(np.asarray(got.convert("RGB"), float) - np.asarray(want, float))
    assert difference.mean() < 4
    generate(browser)
    want = edit(
        page_reader, image=shown(browser), keep_rows=value(browser, "#keep_rows"), method="sjd"
    )
    assert file_of(browser) == want.images[0]


def test_clear_pixels_are_white(browser: Browser, page_reader: Server, given: Given) -> None:
    begin(browser, page_reader, given(png(Image.new("RGBA", (64, 48), (0, 0, 0, 0)))))
    assert Image.open(io.BytesIO(shown(browser))).getcolors() == [(64 * 48, (255, 255, 255, 255))]


def test_a_file_is_dropped_on_the_page(browser: Browser, page_reader: Server, given: Given) -> None:
    visit(browser, page_reader)
    drop_file(browser, given(png(colours(64, 48), "JPEG"), "tent.jpg"))
    browser.wait(GIVEN)
    assert words(browser, "#fitted") == "tent.jpg"
    assert not browser.value("document.body.classList.contains('dropping')")
    browser.click("#remove")
    assert not browser.value(GIVEN) and browser.value("document.activeElement.id") == "image"
    fill(browser, "#prompt", CAPTION)
    fill(browser, "#seed", "7")
    generate(browser)
    assert file_of(browser) == page_reader.generate(prompt=CAPTION, seed=7, method="sjd").images[0]


def test_images_of_the_page_are_continued(browser: Browser, page_reader: Server) -> None:
    visit(browser, page_reader)
    fill(browser, "#prompt", CAPTION)
    fill(browser, "#seed", "3")
    generate(browser)
    first = file_of(browser)
    browser.click(".continue")
    browser.wait(GIVEN)
    assert browser.value("document.activeElement.id") == "keep_rows"
    keep(browser, 1)
    fill(browser, "#prompt", "a tent")
    generate(browser)
    want = edit(
        page_reader, image=first, prompt="a tent", seed=3, keep_rows=1, method="sjd"
    ).images[0]
    assert file_of(browser) == want

    # Earlier images bring the image and the line that they had, and are continued themselves.
    browser.open(f"http://{page_reader.host}:{page_reader.port}/")
    browser.wait(f"{READY} && document.querySelectorAll('#history button').length == 2")
    assert not browser.value(GIVEN)
    browser.click("#history li:nth-child(1) button")
    browser.wait(
        f"{GIVEN} && document.querySelector('#message').textContent.startsWith('an earlier')"
    )
    assert value(browser, "#keep_rows") == "1" and words(browser, "#fitted") == CAPTION
    generate(browser)
    assert file_of(browser) == want
    browser.click("#history li:nth-child(3) button")  # this one continued none
    browser.wait(f"!({GIVEN})")
    browser.wait("document.querySelector('#seed').value == '3'")
    browser.wait(HAS_BUTTON)
    browser.click(".continue")
    browser.wait(GIVEN)
    assert shown(browser) and words(browser, "#fitted") == CAPTION


def test_models_of_several_sizes(
    browser: Browser, start: Start, family: Callable[[str], Path], bare_bundle: Path, given: Given
) -> None:
    """The image and the line follow the size; a model without an image encoder gets no image."""
    server = start("-t", 1, "--method", "ar", "-m", bare_bundle, model=family("lumina-mgpt"))
    lumina, bare = (model["id"] for model in server.get("/v1/models").json["data"])
    begin(browser, server, given(png(colours(64, 64))))
    for size, rows in (("32x96", 6), ("64x64", 4), ("32x64", 4)):
        choose(browser, "#size", size)
        assert browser.value(f"document.querySelector('#keep_rows').max == {rows - 1}")
        assert words(browser, "#kept") == f"{rows // 2} of {rows}, 50% of the image"
        fitted = "boat.png" + ("" if size == "64x64" else f", fitted to {size}")
        assert words(browser, "#fitted") == fitted
    generate(browser)
    assert Image.open(io.BytesIO(file_of(browser))).size == (32, 64)
    choose(browser, "#size", "64x64")
    browser.click(".continue")
    browser.wait("document.querySelector('#size').value == '32x64'")
    choose(browser, "#model", bare)
    assert browser.value("document.querySelector('#continue').hidden")
    assert not browser.value(HAS_BUTTON)
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    assert "kept_tokens" not in settings(file_of(browser))
    choose(browser, "#model", lumina)
    assert browser.value(GIVEN) and not browser.value("document.querySelector('#continue').hidden")


def test_bundles_without_an_image_encoder(
    browser: Browser, start: Start, bare_bundle: Path, given: Given
) -> None:
    server = start("-t", 1, model=bare_bundle)
    visit(browser, server)
    assert browser.value("document.querySelector('#continue').hidden")
    generate(browser)
    assert not browser.value(HAS_BUTTON)
    drop_file(browser, given(IMAGE))
    browser.wait("document.querySelector('#message').className == 'bad'")
    assert words(browser, "#message").endswith("its bundle has no image encoder")
    assert browser.value("location.protocol") == "http:"


def test_what_cannot_be_continued_is_said(
    browser: Browser, start: Start, family: Callable[[str], Path], given: Given
) -> None:
    server = start("-t", 1, "--max-body", 2000, model=family("chameleon"))
    visit(browser, server)
    choose_file(browser, "#image", given(b"no image", "notes.png"))
    browser.wait("document.querySelector('#message').className == 'bad'")
    assert words(browser, "#message").startswith("notes.png: this browser cannot read it")
    assert not browser.value(GIVEN)
    begin(browser, server, given(IMAGE))
    generate(browser)
    message = words(browser, "#message")
    assert message.startswith("the body is too large, expected at most 2000 bytes; a larger --max")
    assert browser.value("document.querySelector('#message').className") == "bad"
    assert count(browser, "figure") == 0
