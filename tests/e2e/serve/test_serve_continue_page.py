"""An image that the page of `serve` continues below a line, in a browser."""

from __future__ import annotations

import json

import pytest

from tests.e2e.browser import Browser
from tests.e2e.serve.client import Server, error_of
from tests.e2e.serve.edit_requests import IMAGE, colours, edit, png, settings
from tests.e2e.serve.page_actions import (
    DONE,
    PAINTED,
    Given,
    begin,
    choose,
    count,
    file_of,
    generate,
    keep,
    set_value,
    value,
    words,
)


@pytest.mark.parametrize("rows", [1, 2])
def test_what_lies_below_the_line_is_generated_anew(
    browser: Browser, page_reader: Server, given: Given, rows: int
) -> None:
    begin(browser, page_reader, given(IMAGE))
    keep(browser, rows)
    assert words(browser, "#kept") == f"{rows} of 3, {(33, 67)[rows - 1]}% of the image"
    assert words(browser, "#fitted") == "boat.png"
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    got = file_of(browser)
    assert got == edit(page_reader, keep_rows=rows, method="sjd").images[0]
    assert settings(got)["kept_tokens"] == 4 * rows
    # Tokens that are kept come from no pass.
    assert browser.value(PAINTED.format(".passes", 0)) == 4 * (3 - rows)
    assert count(browser, "#notes li") == 0


def test_several_images_and_a_race(browser: Browser, page_reader: Server, given: Given) -> None:
    begin(browser, page_reader, given(IMAGE))
    keep(browser, 1)
    set_value(browser, "#count", "2")
    generate(browser)
    answer = edit(page_reader, keep_rows=1, method="sjd", n=2)
    assert [file_of(browser, 0), file_of(browser, 1)] == answer.images
    browser.click("#compare")
    generate(browser)
    assert count(browser, "figure") == 2
    assert file_of(browser) == edit(page_reader, keep_rows=1, method="ar").images[0]


def test_fields_are_sent_as_they_are(browser: Browser, page_reader: Server, given: Given) -> None:
    """A form keeps the ends of lines, seeds above 2^53 and lists of numbers."""
    begin(browser, page_reader, given(IMAGE), seed=2**64 - 1)
    keep(browser, 1)
    prompt = 'a red\nboat, "quoted" 🏮'
    set_value(browser, "#prompt", prompt)
    choose(browser, "#method", "lantern++")
    set_value(browser, "#lambda", "3, 2")
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    assert settings(file_of(browser))["prompt"] == prompt
    asked = {"prompt": prompt, "seed": 2**64 - 1, "method": "lantern++", "lambda": "[3, 2]"}
    assert file_of(browser) == edit(page_reader, keep_rows=1, **asked).images[0]
    assert "lambda" in error_of(edit(page_reader, keep_rows=1, **{**asked, "lambda": "[]"}), 400)["message"]  # fmt: skip


def test_the_line_follows_mouse_finger_and_keys(
    browser: Browser, page_reader: Server, given: Given
) -> None:
    begin(browser, page_reader, given(IMAGE))
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


def test_settings_name_the_image(browser: Browser, page_reader: Server, given: Given) -> None:
    begin(browser, page_reader, given(IMAGE))
    keep(browser, 1)
    generate(browser)
    browser.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.click("figure button:not([aria-pressed])")
    browser.wait("document.querySelector('#message').textContent == 'the settings are copied'")
    copied = json.loads(browser.value("navigator.clipboard.readText()"))
    assert copied["image"] == "boat.png" and copied["keep_rows"] == 1 and "image_name" not in copied
    assert edit(page_reader, **{**copied, "image": IMAGE}).images == [file_of(browser)]


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (360, False), (360, True)]
)
def test_it_fits_its_window(
    browser: Browser, page_reader: Server, given: Given, width: int, dark: bool
) -> None:
    begin(browser, page_reader, given(png(colours(900, 500)), "a-name-that-is-long" * 9 + ".png"))
    browser.show(width, 800, dark)
    generate(browser)
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
    unnamed = (
        "[...document.querySelectorAll('input, select, textarea, button, a, [role=img]')].filter(e => "
        "!(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert browser.value(unnamed) == []
    own = f"http://{page_reader.host}:{page_reader.port}/"
    sent = [e["params"] for e in browser.events if e.get("method") == "Network.requestWillBeSent"]
    assert all(one["request"]["url"].startswith((own, "data:", "blob:")) for one in sent)
    assert not [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    browser.wait(DONE)
