"""The gallery of a run, opened in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.conftest import Runner
from tests.e2e.browser import CHROMIUM, Browser

PINK = (216, 27, 96)
HOSTILE = (
    "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)> \"it's\" 🏮"
)
Page = Callable[[list[dict[str, Any]]], Path]


def record(index: int, caption: str, **fields: Any) -> dict[str, Any]:
    """A line of a manifest: 3 x 4 tokens."""
    return {
        "index": index, "repeat": 0, "caption": caption, "seed": 42 + index, "configuration": 0,
        "status": "ok", "file": "images/one.png", "sha256": "0" * 64, "bytes": 100, "width": 64,
        "height": 48, "rows": 3, "columns": 4, "method": "eagle", "tokens": 12, "target_passes": 5,
        "committed": [4, 1, 2, 4], "batch": 1,
        "ms": {"text": 1, "prefill": 2, "decode": 90, "image": 7}, **fields,
    }  # fmt: skip


def failure(index: int, caption: str, error: str) -> dict[str, Any]:
    return {
        "index": index, "repeat": 0, "caption": caption, "seed": 42 + index, "configuration": 0,
        "status": "failed", "error": error,
    }  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture
def page(tmp_path: Path, build_dir: Path, run_program: Runner) -> Page:
    """Builds the gallery of a manifest; all images are the same pink one."""

    def make(records: list[dict[str, Any]]) -> Path:
        (tmp_path / "images").mkdir()
        Image.new("RGB", (64, 48), PINK).save(tmp_path / "images" / "one.png")
        manifest = "".join(json.dumps(record) + "\n" for record in records)
        made = run_program(
            build_dir / "make_gallery", "set.json", "demo", len(records) + 1, input=manifest
        )
        assert made.returncode == 0, made.stderr
        (tmp_path / "index.html").write_text(made.stdout)
        return tmp_path / "index.html"

    return make


def text(browser: Browser, selector: str) -> str:
    return browser.value(f"document.querySelector({json.dumps(selector)}).innerText")


def count(browser: Browser, selector: str) -> int:
    return browser.value(f"document.querySelectorAll({json.dumps(selector)}).length")


def centre(
    browser: Browser, shot: Path, selector: str, x: float = 0.5, y: float = 0.5
) -> tuple[int, ...]:
    """The colour at a position of an element in a screenshot; the position is relative to its sides."""
    left, top = browser.value(
        f"(b => [b.x + b.width * {x}, b.y + b.height * {y}])"
        f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
    )
    with Image.open(shot) as image:
        return image.convert("RGB").getpixel((round(left), round(top)))  # type: ignore[return-value]


def filter_by(browser: Browser, words: str) -> None:
    browser.value("find('filter').select()")
    browser.write(words)


def test_thumbnails_and_filter(browser: Browser, page: Page, tmp_path: Path) -> None:
    records = [record(i, f"a boat, number {i}") for i in range(30)]
    records[7].update(caption=HOSTILE, image_id=139_000, id="seven")
    records += [failure(30, "a <b>cat</b>", "too <i>long</i>")]
    browser.show()
    browser.open(page(records))
    assert browser.value("document.title") == text(browser, "h1") == "set.json"
    for fact in ("demo", "eagle", "30 of 32 images", "compression 2.40×", "mean 100 ms"):
        assert fact in text(browser, "#facts")
    assert count(browser, "#cards img") == count(browser, "#cards img[loading=lazy]") == 30
    assert text(browser, "#shown") == "30 images"
    card = text(browser, "#cards li:nth-child(3)")
    assert "a boat, number 2" in card and "seed 44" in card and "2.40×" in card
    assert text(browser, "#cards li:nth-child(8) .caption") == HOSTILE
    assert count(browser, "script") == 2
    assert text(browser, "#failures summary") == "1 failed"
    browser.click("#failures summary")
    assert "a <b>cat</b>" in text(browser, "#failures li")
    assert text(browser, "#failures .error") == "too <i>long</i>"

    browser.value("document.querySelector('#cards img').decode()")
    shot = browser.screenshot(tmp_path / "cards.png")
    assert centre(browser, shot, "#cards img") == PINK
    with Image.open(shot) as image:
        pixels = numpy.asarray(image.convert("RGB"))
    assert (pixels == PINK).all(axis=2).mean() > 0.1
    browser.show(dark=True)
    assert max(centre(browser, browser.screenshot(tmp_path / "dark.png"), "body", 0.002)) < 64

    for words, found in (
        ("NUMBER 2", 11),
        ("51", 1),
        ("139000", 1),
        ("even", 1),
        ("</SCRIPT>", 1),
        ("cat", 0),
    ):
        filter_by(browser, words)
        assert (words, count(browser, "#cards img")) == (words, found)
        assert text(browser, "#shown") == f"{found} of 30"
    assert text(browser, "#failures summary") == "1 failed"


def test_image_with_its_map(browser: Browser, page: Page, tmp_path: Path) -> None:
    browser.show()
    browser.open(
        page(
            [
                record(0, "first"),
                record(1, "second", committed=[1] * 11),
                record(2, HOSTILE),
            ]
        )
    )
    assert not browser.value("find('view').open")
    browser.click("#cards li:nth-child(1) button")
    assert browser.value("find('view').open")
    assert text(browser, "#view-caption") == "first"
    assert "12 tokens in 5 target passes" in text(browser, "#view-facts")
    assert text(browser, "#legend ol").split() == ["1", "2", "3", "4"]
    browser.value("find('large').decode()")
    shot = browser.screenshot(tmp_path / "image.png")
    assert centre(browser, shot, "#large") == PINK
    # The prefill commits 1, the cycles 4, 1, 2 and 4.
    colours = [
        [centre(browser, shot, "#map", (column + 0.5) / 4, (row + 0.5) / 3) for column in range(4)]
        for row in range(3)
    ]
    legend = [centre(browser, shot, f"#legend li:nth-child({i})", 0.1) for i in range(1, 5)]
    one, two, _, four = legend
    assert colours == [[one, four, four, four], [four, one, two, two], [four, four, four, four]]
    assert len({*legend}) == 4 and one == (68, 1, 84) and four == (253, 231, 37)

    browser.press("ArrowRight")
    assert text(browser, "#view-caption") == "second"
    assert centre(browser, browser.screenshot(tmp_path / "second.png"), "#map", 0.4, 0.1) == one
    browser.press("ArrowRight")
    browser.press("ArrowRight")
    assert text(browser, "#view-caption") == HOSTILE and text(browser, "#position") == "3 of 3"
    browser.press("ArrowLeft")
    assert text(browser, "#view-caption") == "second"
    browser.press("Escape")
    browser.wait("!find('view').open")
    browser.wait("document.activeElement.dataset.at === '1'")


def test_phone(browser: Browser, page: Page) -> None:
    browser.show(width=390, height=800)
    browser.open(page([record(i, "long" * 60) for i in range(5)]))
    assert browser.value("document.documentElement.scrollWidth") <= 390
    browser.click("#cards button")
    assert browser.value("find('view').scrollWidth") <= 390
    # The map is below the image.
    top, bottom = browser.value("[map, large].map(e => e.getBoundingClientRect().y)")
    assert top > bottom


def test_5000_images(browser: Browser, page: Page) -> None:
    """Cards are added on scrolling; the last one is reachable."""
    browser.show()
    browser.open(page([record(i, f"a boat, number {i}") for i in range(5000)]))
    assert text(browser, "#shown") == "5,000 images"
    assert 0 < count(browser, "#cards img") < 1000
    while count(browser, "#cards img") < 5000:
        before = count(browser, "#cards img")
        browser.value("scrollTo(0, document.body.scrollHeight)")
        browser.wait(f"document.querySelectorAll('#cards img').length > {before}")
    browser.wait("[...document.querySelectorAll('#cards img')].pop().naturalWidth === 64")
    filter_by(browser, "number 4999")
    assert count(browser, "#cards img") == 1
