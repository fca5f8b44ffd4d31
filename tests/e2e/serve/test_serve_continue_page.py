"""An image that the page of `serve` continues, in a browser."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.e2e.browser import Browser
from tests.e2e.serve.client import DEMO, Server, Start, error_of
from tests.e2e.serve.page_actions import (
    DONE,
    PAINTED,
    READY,
    choose,
    choose_file,
    count,
    drop_file,
    file_of,
    fill,
    generate,
    set_value,
    value,
    visit,
    words,
)
from tests.e2e.serve.test_serve_edits import CAPTION, IMAGE, colours, edit, png, settings

GIVEN = "!document.querySelector('#given').hidden"
SHOWN = "document.querySelector('#source').toDataURL().split(',')[1]"
HAS_BUTTON = "document.querySelector('.continue').offsetParent !== null"


@pytest.fixture(scope="module")
def reader(start: Start, family: Callable[[str], Path]) -> Server:
    """Images of 64 x 48 pixels, 3 x 4 codes."""
    return start("-t", 1, "--method", "sjd", "--max-body", 100000, model=family("chameleon"))


@pytest.fixture
def given(tmp_path: Path) -> Callable[[bytes, str], Path]:
    def write(content: bytes, name: str = "boat.png") -> Path:
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return write


Given = Callable[..., Path]


def shown(browser: Browser) -> bytes:
    """The image to continue, as a PNG file."""
    return base64.b64decode(browser.value(SHOWN))


def begin(browser: Browser, server: Server, file: Path, seed: int = 7) -> None:
    visit(browser, server)
    fill(browser, "#prompt", CAPTION)
    fill(browser, "#seed", str(seed))
    choose_file(browser, "#image", file)
    browser.wait(GIVEN)


def keep(browser: Browser, rows: int) -> None:
    set_value(browser, "#keep_rows", str(rows))
    browser.value("document.querySelector('#keep_rows').dispatchEvent(new Event('input'))")


@pytest.mark.parametrize("rows", [1, 2])
def test_what_lies_below_the_line_is_generated_anew(
    browser: Browser, reader: Server, given: Given, rows: int
) -> None:
    begin(browser, reader, given(IMAGE))
    keep(browser, rows)
    assert words(browser, "#kept") == f"{rows} of 3, {(33, 67)[rows - 1]}% of the image"
    assert words(browser, "#fitted") == "boat.png"
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    got = file_of(browser)
    assert got == edit(reader, keep_rows=rows, method="sjd").images[0]
    assert settings(got)["kept_tokens"] == 4 * rows
    # Tokens that are kept come from no pass.
    assert browser.value(PAINTED.format(".passes", 0)) == 4 * (3 - rows)
    assert count(browser, "#notes li") == 0


def test_several_images_and_a_race(browser: Browser, reader: Server, given: Given) -> None:
    begin(browser, reader, given(IMAGE))
    keep(browser, 1)
    set_value(browser, "#count", "2")
    generate(browser)
    answer = edit(reader, keep_rows=1, method="sjd", n=2)
    assert [file_of(browser, 0), file_of(browser, 1)] == answer.images
    browser.click("#compare")
    generate(browser)
    assert count(browser, "figure") == 2
    assert file_of(browser) == edit(reader, keep_rows=1, method="ar").images[0]


def test_fields_are_sent_as_they_are(browser: Browser, reader: Server, given: Given) -> None:
    """A form keeps the ends of lines, seeds above 2^53 and lists of numbers."""
    begin(browser, reader, given(IMAGE), seed=2**64 - 1)
    keep(browser, 1)
    prompt = 'a red\nboat, "quoted" 🏮'
    set_value(browser, "#prompt", prompt)
    choose(browser, "#method", "lantern++")
    set_value(browser, "#lambda", "3, 2")
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    assert settings(file_of(browser))["prompt"] == prompt
    asked = {"prompt": prompt, "seed": 2**64 - 1, "method": "lantern++", "lambda": "[3, 2]"}
    assert file_of(browser) == edit(reader, keep_rows=1, **asked).images[0]
    assert "lambda" in error_of(edit(reader, keep_rows=1, **{**asked, "lambda": "[]"}), 400)["message"]  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [("JPEG", "sea.jpg"), ("WEBP", "sea.webp")])
def test_images_of_other_sizes_and_formats(
    browser: Browser, reader: Server, given: Given, kind: str, name: str
) -> None:
    """The browser fits the middle of the image to the model's size."""
    image = colours(96, 48).resize((1200, 600), Image.Resampling.BICUBIC)
    begin(browser, reader, given(png(image, kind), name))
    assert words(browser, "#fitted") == f"{name}, fitted to 64x48"
    want = image.crop((200, 0, 1000, 600)).resize((64, 48), Image.Resampling.BOX)
    got = Image.open(io.BytesIO(shown(browser)))
    assert got.size == (64, 48)
    difference = np.abs(np.asarray(got.convert("RGB"), float) - np.asarray(want, float))
    assert difference.mean() < 4
    generate(browser)
    want = edit(reader, image=shown(browser), keep_rows=value(browser, "#keep_rows"), method="sjd")
    assert file_of(browser) == want.images[0]


def test_clear_pixels_are_white(browser: Browser, reader: Server, given: Given) -> None:
    begin(browser, reader, given(png(Image.new("RGBA", (64, 48), (0, 0, 0, 0)))))
    assert Image.open(io.BytesIO(shown(browser))).getcolors() == [(64 * 48, (255, 255, 255, 255))]


def test_the_line_follows_mouse_finger_and_keys(
    browser: Browser, reader: Server, given: Given
) -> None:
    begin(browser, reader, given(IMAGE))
    left, top, width, height = browser.value(
        "(b => [b.x, b.y, b.width, b.height])(document.querySelector('#frame').getBoundingClientRect())"
    )

    def mouse(kind: str, part: float) -> None:
        browser.call("Input.dispatchMouseEvent", type=kind, x=left + width / 2, y=top + part * height,
                     button="left", buttons=1, clickCount=1)  # fmt: skip

    def touch(kind: str, *parts: float) -> None:
        points = [{"x": left + width / 3, "y": top + part * height} for part in parts]
        browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=points)

    assert value(browser, "#keep_rows") == "2"
    mouse("mousePressed", 0.66)
    mouse("mouseMoved", 0.3)
    assert value(browser, "#keep_rows") == "1"
    assert browser.value("document.querySelector('#line').style.top").startswith("33.3")
    mouse("mouseMoved", 3)  # below the image: one row is generated at least
    mouse("mouseReleased", 3)
    assert value(browser, "#keep_rows") == "2"
    mouse("mouseMoved", 0.1)  # the button is up
    assert value(browser, "#keep_rows") == "2"

    touch("touchStart", 0.66)
    touch("touchMove", 0.5)
    touch("touchMove", 0.3)
    touch("touchEnd")
    assert value(browser, "#keep_rows") == "1"

    browser.value("document.querySelector('#keep_rows').focus()")
    browser.press("ArrowRight")
    assert words(browser, "#kept") == "2 of 3, 67% of the image"
    text = "document.querySelector('#keep_rows').getAttribute('aria-valuetext')"
    assert browser.value(text) == "2 of 3, 67% of the image"
    browser.press("ArrowLeft")
    assert value(browser, "#keep_rows") == "1"


def test_a_file_is_dropped_on_the_page(browser: Browser, reader: Server, given: Given) -> None:
    visit(browser, reader)
    drop_file(browser, given(png(colours(64, 48), "JPEG"), "tent.jpg"))
    browser.wait(GIVEN)
    assert words(browser, "#fitted") == "tent.jpg"
    assert not browser.value("document.body.classList.contains('dropping')")
    browser.click("#remove")
    assert not browser.value(GIVEN) and browser.value("document.activeElement.id") == "image"
    fill(browser, "#prompt", CAPTION)
    fill(browser, "#seed", "7")
    generate(browser)
    assert file_of(browser) == reader.generate(prompt=CAPTION, seed=7, method="sjd").images[0]


def test_images_of_the_page_are_continued(browser: Browser, reader: Server) -> None:
    visit(browser, reader)
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
    want = edit(reader, image=first, prompt="a tent", seed=3, keep_rows=1, method="sjd").images[0]
    assert file_of(browser) == want

    # Earlier images bring the image and the line that they had, and are continued themselves.
    browser.open(f"http://{reader.host}:{reader.port}/")
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


def test_settings_name_the_image(browser: Browser, reader: Server, given: Given) -> None:
    begin(browser, reader, given(IMAGE))
    keep(browser, 1)
    generate(browser)
    browser.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.click("figure button:not([aria-pressed])")
    browser.wait("document.querySelector('#message').textContent == 'the settings are copied'")
    copied = json.loads(browser.value("navigator.clipboard.readText()"))
    assert copied["image"] == "boat.png" and copied["keep_rows"] == 1 and "image_name" not in copied
    assert edit(reader, **{**copied, "image": IMAGE}).images == [file_of(browser)]


def test_models_of_several_sizes(
    browser: Browser, start: Start, family: Callable[[str], Path], given: Given
) -> None:
    """The image and the line follow the size; a model without an image encoder gets no image."""
    server = start("-t", 1, "--method", "ar", "-m", DEMO, model=family("lumina-mgpt"))
    lumina, demo = (model["id"] for model in server.get("/v1/models").json["data"])
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
    choose(browser, "#model", demo)
    assert browser.value("document.querySelector('#continue').hidden")
    assert not browser.value(HAS_BUTTON)
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    assert "kept_tokens" not in settings(file_of(browser))
    choose(browser, "#model", lumina)
    assert browser.value(GIVEN) and not browser.value("document.querySelector('#continue').hidden")


def test_bundles_without_an_image_encoder(browser: Browser, start: Start, given: Given) -> None:
    server = start("-t", 1, model=DEMO)
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


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (360, False), (360, True)]
)
def test_it_fits_its_window(
    browser: Browser, reader: Server, given: Given, width: int, dark: bool
) -> None:
    begin(browser, reader, given(png(colours(900, 500)), "a-name-that-is-long" * 9 + ".png"))
    browser.show(width, 800, dark)
    generate(browser)
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
    unnamed = (
        "[...document.querySelectorAll('input, select, textarea, button, a, [role=img]')].filter(e => "
        "!(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert browser.value(unnamed) == []
    own = f"http://{reader.host}:{reader.port}/"
    sent = [e["params"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert all(one["request"]["url"].startswith((own, "data:", "blob:")) for one in sent)
    assert not [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    browser.wait(DONE)
