"""A rectangle of an image that the page of `serve` generates anew, in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.browser import Browser
from tests.e2e.serve.client import Server, Start
from tests.e2e.serve.edit_requests import IMAGE, colours, edit, png, settings
from tests.e2e.serve.page_actions import (
    DONE,
    GIVEN,
    PAINTED,
    READY,
    Given,
    begin,
    choose,
    count,
    file_of,
    generate,
    set_value,
    value,
    words,
)

# Whether tokens per pass can be shown.
SWITCH = (
    "[...document.querySelectorAll('figure button')].find(b => b.textContent == 'Tokens per pass')"
    ".offsetParent !== null"
)
SIDES = ("left", "top", "width", "height")


def rectangle(browser: Browser) -> list[int]:
    """X, Y, width, height as the number fields have them."""
    return [int(value(browser, f"#region-{side}")) for side in SIDES]


def overlay(browser: Browser) -> list[int]:
    """The same of what lies over the image, in 64 x 48 pixels."""
    return list(
        browser.value(
            "(([a, b]) => [(b.x - a.x) / a.width * 64, (b.y - a.y) / a.height * 48, b.width / a.width * 64,"
            " b.height / a.height * 48].map(Math.round))"
            "(['#frame', '#box'].map(id => document.querySelector(id).getBoundingClientRect()))"
        )
    )


def change(browser: Browser, server: Server, file: Path) -> None:
    begin(browser, server, file)
    browser.click("#part-region")
    assert words(browser, "#message") == "the rectangle is generated anew"


def place(browser: Browser, *sides: int) -> None:
    for name, side in zip(SIDES, sides):
        set_value(browser, f"#region-{name}", str(side))
    browser.value("document.querySelector('#region-height').dispatchEvent(new Event('change'))")


@pytest.mark.parametrize(("behind", "tokens"), [("keep", 2), ("redraw", 7)])
def test_the_rectangle_is_generated_anew(
    browser: Browser, page_reader: Server, given: Given, behind: str, tokens: int
) -> None:
    change(browser, page_reader, given(IMAGE))
    assert rectangle(browser) == overlay(browser) == [16, 16, 32, 16]
    choose(browser, "#behind", behind)
    generate(browser)
    assert words(browser, "#message").startswith("done in "), words(browser, "#message")
    got = file_of(browser)
    assert got == edit(page_reader, region="16,16,32,16", behind=behind, method="sjd").images[0]
    assert settings(got)["region"] == [16, 16, 32, 16] and settings(got)["behind"] == behind
    notes = words(browser, "#notes")
    assert (
        notes
        == "region: the model sees what lies above and to the left of a token, not what comes later"
    )
    # What is shaded, and the tokens of passes, are those that are generated.
    assert browser.value(SWITCH)
    assert browser.value(PAINTED.format(".passes", 0)) == tokens
    corners = (
        browser.value("getComputedStyle(document.querySelector('#anew')).clipPath").count(",") + 1
    )
    assert corners == (4 if behind == "keep" else 6)


def test_candidates(browser: Browser, page_reader: Server, given: Given) -> None:
    change(browser, page_reader, given(IMAGE))
    set_value(browser, "#candidates", "4")
    generate(browser)
    answer = edit(page_reader, region="16,16,32,16", candidates=4, method="sjd")
    assert file_of(browser) == answer.images[0]
    picked = answer.json["data"][0]["picked"] + 1
    assert words(browser, "figcaption small").endswith(f", candidate {picked} of 4")
    # The passes of all are not the passes of the one that is shown.
    assert not browser.value(SWITCH) and browser.value(PAINTED.format(".passes", 0)) == 0
    # Nothing is kept behind the first new token: there is nothing to compare.
    off = "document.querySelector('#candidates').disabled"
    place(browser, 32, 32, 32, 16)
    assert browser.value(off) and "Nothing stays" in words(browser, "#candidates-hint")
    place(browser, 16, 16, 32, 16)
    choose(browser, "#behind", "redraw")
    assert browser.value(off)
    place(browser, 16, 16, 32, 32)  # the first token of the last row is kept
    assert not browser.value(off)
    generate(browser)
    asked = {"region": "16,16,32,32", "behind": "redraw", "candidates": 4, "method": "sjd"}
    assert file_of(browser) == edit(page_reader, **asked).images[0]
    set_value(browser, "#candidates", "11")
    browser.click("#generate")  # the browser refuses it
    assert not browser.value("document.querySelector('#candidates').validity.valid")
    browser.click("#part-below")
    generate(browser)
    assert file_of(browser) == edit(page_reader, keep_rows=2, method="sjd").images[0]


def test_mouse_and_finger_change_the_rectangle(
    browser: Browser, page_reader: Server, given: Given
) -> None:
    change(browser, page_reader, given(IMAGE))
    left, top, width, height = browser.value(
        "(b => [b.x, b.y, b.width, b.height])(document.querySelector('#frame').getBoundingClientRect())"
    )

    def at(x: float, y: float) -> dict[str, float]:
        return {"x": left + x / 64 * width, "y": top + y / 48 * height}

    def drag(*points: tuple[float, float]) -> None:
        kinds = ["mousePressed"] + ["mouseMoved"] * (len(points) - 1)
        for kind, point in [*zip(kinds, points), ("mouseReleased", points[-1])]:
            browser.call("Input.dispatchMouseEvent", type=kind, **at(*point), button="left", buttons=1,
                         clickCount=1)  # fmt: skip

    def touch(*points: tuple[float, float]) -> None:
        for index, point in enumerate(points):
            kind = "touchMove" if index else "touchStart"
            browser.call("Input.dispatchTouchEvent", type=kind, touchPoints=[at(*point)])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def is_at(*sides: int) -> bool:
        return rectangle(browser) == overlay(browser) == list(sides)

    drag((3, 3), (10, 10), (20, 20))  # a new one that grows to whole tokens
    assert is_at(0, 0, 32, 32)
    drag((60, 40), (20, 20))  # also upwards
    assert is_at(16, 16, 48, 32)
    drag((40, 30), (30, 12))  # moves it
    assert is_at(0, 0, 48, 32)
    drag((20, 20), (500, 500))  # not out of the image
    assert is_at(16, 16, 48, 32)
    drag((16, 16), (30, 30))  # a corner
    assert is_at(32, 32, 32, 16)
    drag((33, 47), (10, 1))  # past the edge across from it
    assert is_at(16, 0, 48, 32)
    drag((63, 1), (20, 8), (34, 15))
    assert is_at(16, 16, 16, 16)
    drag((60, 5))  # a click moves it there
    assert is_at(48, 0, 16, 16)
    drag((56, 8))  # a click inside changes nothing
    assert is_at(48, 0, 16, 16)

    touch((56, 8), (30, 8), (24, 24))
    assert is_at(16, 16, 16, 16)
    touch((32, 32), (40, 32), (60, 32))
    assert is_at(16, 16, 48, 16)
    touch((8, 40), (8, 38), (8, 20))  # elsewhere a finger scrolls
    assert is_at(16, 16, 48, 16)


def test_keys_change_the_rectangle(browser: Browser, page_reader: Server, given: Given) -> None:
    change(browser, page_reader, given(IMAGE))

    def press(side: str, *keys: str) -> list[int]:
        browser.value(f"document.querySelector('#region-{side}').focus()")
        for key in keys:
            browser.press(key)
        assert overlay(browser) == rectangle(browser)
        return rectangle(browser)

    assert press("left", "ArrowUp") == [32, 16, 32, 16]
    assert press("left", "ArrowUp") == [32, 16, 32, 16]  # at the edge
    assert press("top", "ArrowDown") == [32, 0, 32, 16]
    assert press("height", "ArrowUp", "ArrowUp") == [32, 0, 32, 48]
    assert press("width", "ArrowDown", "ArrowDown") == [32, 0, 16, 48]
    place(browser, 17, 3, 1, 20)
    assert rectangle(browser) == [16, 0, 16, 32]
    browser.value("document.querySelector('#part-region').focus()")
    browser.press("ArrowLeft")
    browser.wait("document.querySelector('#region').hidden")
    assert words(browser, "#message") == "what lies below the line is generated anew"
    assert browser.value("document.querySelector('#box').hidden")
    browser.press("ArrowRight")
    browser.wait("!document.querySelector('#region').hidden")
    assert rectangle(browser) == [16, 0, 16, 32]


def test_earlier_images_bring_their_rectangle(
    browser: Browser, page_reader: Server, given: Given
) -> None:
    change(browser, page_reader, given(IMAGE))
    place(browser, 0, 0, 16, 32)
    set_value(browser, "#candidates", "2")
    generate(browser)
    want = file_of(browser)
    browser.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    browser.click("figure button:not([aria-pressed])")
    browser.wait("document.querySelector('#message').textContent == 'the settings are copied'")
    copied = json.loads(browser.value("navigator.clipboard.readText()"))
    assert copied["region"] == "0,0,16,32" and copied["behind"] == "keep"
    assert edit(page_reader, **{**copied, "image": IMAGE}).images == [want]
    browser.open(f"http://{page_reader.host}:{page_reader.port}/")
    browser.wait(f"{READY} && document.querySelectorAll('#history button').length == 1")
    browser.click("#history button")
    browser.wait(f"{GIVEN} && document.querySelector('#message').textContent.startsWith('an earlier')")  # fmt: skip
    assert rectangle(browser) == [0, 0, 16, 32] and value(browser, "#candidates") == "2"
    generate(browser)
    assert file_of(browser) == want
    # The image that came of it is the next one to change.
    browser.click(".continue")
    browser.wait("document.activeElement.id == 'region-left'")
    assert rectangle(browser) == [16, 16, 32, 16] and value(browser, "#candidates") == "1"
    generate(browser)
    asked = {"image": want, "region": "16,16,32,16", "method": "sjd"}
    assert file_of(browser) == edit(page_reader, **asked).images[0]


def test_a_race_keeps_what_lies_around(browser: Browser, page_reader: Server, given: Given) -> None:
    change(browser, page_reader, given(IMAGE))
    browser.click("#compare")
    generate(browser)
    assert count(browser, "figure") == 2
    assert file_of(browser) == edit(page_reader, region="16,16,32,16", method="ar").images[0]
    browser.wait("[...document.querySelectorAll('figure img')].every(i => !i.hidden)")
    browser.click("#again")
    clear = PAINTED.replace("v > 0", "v === 0").format("figure .image canvas:not(.passes)", 1)
    browser.wait(f"{clear} === 2 * 16 * 16")  # all but the rectangle is there from the beginning
    browser.wait("[...document.querySelectorAll('figure img')].every(i => !i.hidden)")


def test_it_follows_the_size(
    browser: Browser, start: Start, family: Callable[[str], Path], given: Given
) -> None:
    server = start("-t", 1, "--method", "ar", model=family("lumina-mgpt"))
    begin(browser, server, given(png(colours(64, 64))))
    browser.click("#part-region")
    for size in ("64x64", "32x96", "32x64"):
        choose(browser, "#size", size)
        width, height = map(int, size.split("x"))
        left, top, wide, high = rectangle(browser)
        assert left + wide <= width and top + high <= height and min(wide, high) >= 16
        assert browser.value("document.querySelector('#region').checkValidity()")
    generate(browser)
    assert settings(file_of(browser))["region"] == rectangle(browser)
    # A rectangle of the whole image keeps nothing.
    place(browser, 0, 0, 32, 64)
    generate(browser)
    assert words(browser, "#message").endswith("nothing of it is kept")


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (360, False), (360, True)]
)
def test_it_fits_its_window(
    browser: Browser, page_reader: Server, given: Given, width: int, dark: bool
) -> None:
    change(browser, page_reader, given(png(colours(900, 500))))
    browser.show(width, 800, dark)
    generate(browser)
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
    unnamed = (
        "[...document.querySelectorAll('input, select, textarea, button, a, fieldset, [role]')].filter(e => "
        "!(e.labels?.length || e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || "
        "e.textContent.trim() || e.getAttribute('role') === 'status')).map(e => e.outerHTML)"
    )
    assert browser.value(unnamed) == []
    # A finger finds a corner.
    assert browser.value(
        "[...document.querySelectorAll('#box i')].every(i => i.getBoundingClientRect().width >= 24)"
    )
    assert not [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    browser.wait(DONE)
