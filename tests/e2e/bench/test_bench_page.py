"""The page of bench, opened in a browser."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.conftest import Runner
from tests.e2e.browser import Browser
from tests.e2e.support import Cli, Refused

HOSTILE = (
    "</script><script>document.title = 'taken'</script><img src=x onerror=alert(1)> \"it's\" 🏮"
)
FIGURES = (
    "latency",
    "ratio",
    "depth",
    "rank",
    "stages",
    "roofline",
    "throughput",
    "quality",
    "growth",
)
CHARTS = {"quality": 2, "growth": 7}  # one per metric; time and memory of three curves
Page = Callable[[dict[str, Any]], Path]


@pytest.fixture
def page(tmp_path: Path, build_dir: Path, run_program: Runner) -> Page:
    def make(content: dict[str, Any]) -> Path:
        empty = {
            "title": "demo",
            "heading": [],
            "tables": [],
            "remarks": [],
            "scores": None,
            "growth": None,
            "images": [],
        }
        made = run_program(build_dir / "make_bench_page", input=json.dumps({**empty, **content}))
        assert made.returncode == 0, made.stderr
        (tmp_path / "page.html").write_text(made.stdout)
        return tmp_path / "page.html"

    return make


def interval(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": 0.9 * mean, "high": 1.1 * mean, "count": 4}


def row(method: str, passes: float, ratio: float, nodes: int, batch: int = 1) -> dict[str, Any]:
    """A method in the format of --export-json."""
    depth = min(nodes - 1, 3)
    return {
        "method": method, "batch_size": batch, "mean_latency_ms": interval(200 * batch / ratio),
        "step_compression": interval(passes), "speedup": interval(ratio),
        "images_per_second": {"p50": 5 * ratio}, "lossless": "+" not in method,
        "reached_depth": [0.8, 0.6, 0.4][:depth], "reached_rank": [[0.5, 0.3], [0.6]][:depth],
        "stage_ms": {"draft": 0.1 * depth, "score": 1 + 0.1 * nodes, "verify": 0.1, "commit": 0.01},
        "pass": {"rows": 2 * nodes * batch, "score_ms": 1 + 0.1 * nodes, "weight_bytes": 1e7},
    }  # fmt: skip


def report(*names: str, batches: tuple[int, ...] = (1, 2)) -> dict[str, Any]:
    methods = [row("ar", 1, 1, 1, batch) for batch in batches]
    for i, name in enumerate(names):
        methods += [row(name, 2 + i, 1.5 + i, 4 * (i + 1), batch) for batch in batches]
    return {"version": "0.1.0", "model": "demo", "methods": methods, "environment": {"cpu": "AMD"}}


def open_page(browser: Browser, path: Path) -> None:
    """Opens a page and waits for its figures. Fails on errors and on network access."""
    browser.events.clear()
    browser.open(path)
    browser.wait("'drawn' in document.documentElement.dataset")
    problems = [
        e
        for e in browser.events
        if e.get("method")
        in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
    ]
    asked = [
        e["params"]["request"]["url"]
        for e in browser.events
        if e.get("method") == "Network.requestWillBeSent"
    ]
    assert problems == []
    assert [url for url in asked if not url.startswith("data:")] == [path.resolve().as_uri()]


def shown(browser: Browser) -> list[str]:
    return browser.value(
        "[...document.querySelectorAll('section')].filter(e => !e.hidden).map(e => e.id)"
    )


def count(browser: Browser, selector: str) -> int:
    return browser.value(f"document.querySelectorAll({json.dumps(selector)}).length")


def grown() -> dict[str, Any]:
    """The output of scripts/growth.py."""
    curves = {
        name: [
            {"method": m, axis: at, "S": s, "ms": 9.0 * (i + 1), "ms a pass": 1.0 + i, "MB": 300}
            for i, at in enumerate(values)
            for m, s in (("ar", 1), ("eagle", 2))
        ]
        for name, axis, values in (
            ("image", "grid", (16, 24, 32)),
            ("batch", "images", (1, 2, 4)),
            ("tree", "tree", ("chain-1", "chain-3")),
        )
    }
    return {"settings": {"size": "B"}, "curves": curves}


def full_page() -> dict[str, Any]:
    lossy = "lantern++:lambda=3"
    return {
        "heading": ["bundle demo on the CPU"], "remarks": ["eagle does not pay off"],
        "tables": [{"head": ["method", "S"], "rows": [["ar", "1.00"], ["eagle", "2.00"], [lossy, "3.00"]]}],
        "report": report("eagle", lossy),
        "scores": {"ar": {"fid": 20, "clip": 0.3}, "eagle": {"fid": 20.1}, lossy: {"fid": 25, "clip": 0.29}},
        "growth": grown(),
        "images": [
            {"caption": c, "method": m, "committed": [1, 3, 3, 3]}
            for c in ("a boat", HOSTILE) for m in ("ar", "eagle")
        ],
    }  # fmt: skip


def test_every_figure(browser: Browser, page: Page, tmp_path: Path) -> None:
    browser.show()
    open_page(browser, page(full_page()))
    assert shown(browser) == ["tables", *FIGURES, "images"]
    for figure in FIGURES:
        charts = CHARTS.get(figure, 1)
        assert count(browser, f"#{figure} svg") == count(browser, f"#{figure} .chart") == charts
    assert count(browser, "canvas") == 0
    assert count(browser, "#tables tbody tr") == 3
    # Three methods: two intervals and a dot each; the ideal line.
    assert count(browser, "#latency .mark-rule.role-mark line") == 6
    assert count(browser, "#latency .mark-symbol.role-mark path") == 3
    assert count(browser, "#ratio .mark-symbol.role-mark path") == 2
    assert count(browser, "#depth .mark-line.role-mark path") == 2
    assert count(browser, "#stages .mark-rect.role-mark path") == 12
    assert count(browser, "#roofline .mark-symbol.role-mark path") == 6
    assert count(browser, "#throughput .mark-line.role-mark path") == 3
    assert count(browser, "#growth .mark-line.role-mark path") == 14
    # All images and maps load.
    assert count(browser, "#images h3") == 2 and count(browser, "#images figure") == 4
    browser.wait("[...document.images].every(e => e.complete && e.naturalWidth > 0)")
    assert browser.value("document.querySelector('img.map').naturalWidth") == 2
    assert HOSTILE in browser.value("document.querySelectorAll('h3')[1].innerText")
    assert browser.value("document.title") == "demo"


def test_texts_are_data(browser: Browser, page: Page) -> None:
    browser.show()
    content = full_page()
    text = json.dumps(content).replace("eagle", json.dumps(HOSTILE)[1:-1])
    open_page(browser, page({**json.loads(text), "title": HOSTILE}))
    assert browser.value("document.title") == HOSTILE
    assert count(browser, "script") == 3 and count(browser, "body > img") == 0
    assert HOSTILE in browser.value("document.querySelector('#depth svg').textContent")


def test_sections_without_data_are_omitted(browser: Browser, page: Page) -> None:
    browser.show()
    chain = report("eagle", batches=(1,))
    for one in chain["methods"]:
        one["reached_rank"] = [ranks[:1] for ranks in one["reached_rank"]]
        one["stage_ms"] = {"draft": 0, "score": 0, "verify": 0, "commit": 0}
        one["pass"] = {"rows": 2, "score_ms": None}
        one["step_compression"].update(low=None, high=None)
    open_page(browser, page({"report": chain}))
    assert shown(browser) == ["tables", "latency", "ratio", "depth"]
    open_page(browser, page({"report": report(batches=(1,))}))
    assert shown(browser) == ["tables", "stages"]
    open_page(browser, page({"report": {"methods": []}}))
    assert shown(browser) == ["tables"]


@pytest.mark.parametrize("width", [1280, 600])
def test_it_fits_its_window(browser: Browser, page: Page, tmp_path: Path, width: int) -> None:
    browser.show(width=width)
    content = full_page()
    content["report"] = report(*(f"lantern++:k=10:lambda={i}:tree=chain-4" for i in range(8)))
    open_page(browser, page(content))
    assert browser.value("document.documentElement.scrollWidth") <= width
    outside = browser.value(
        "[...document.querySelectorAll('.chart')].filter(c => c.querySelector('svg')"
        ".getBoundingClientRect().right > c.getBoundingClientRect().right + 1).length"
    )
    assert outside == 0


def test_dark_and_printed(browser: Browser, page: Page, tmp_path: Path) -> None:
    path = page(full_page())
    ink = "getComputedStyle(document.querySelector('#depth svg text')).fill"
    for dark, limit in ((False, range(200, 256)), (True, range(60))):
        browser.show(dark=dark)
        open_page(browser, path)
        with Image.open(browser.screenshot(tmp_path / "shot.png")) as image:
            pixels = numpy.asarray(image.convert("L"))
        assert int(numpy.median(pixels)) in limit
        bright = [int(part) for part in browser.value(ink).strip("rgb()").split(",")][0] > 128
        assert bright == dark
    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    browser.call("Emulation.setEmulatedMedia", media="print", features=[scheme])
    assert [int(part) for part in browser.value(ink).strip("rgb()").split(",")][0] < 128
    browser.call("Emulation.setEmulatedMedia", media="")


def test_the_page_of_a_run(
    browser: Browser, ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "captions.txt").write_text(f"a red hill\n{HOSTILE}\n")
    (tmp_path / "scores.json").write_text('{"ar": {"fid": 20}, "eagle:tree=chain-2": {"fid": 21}}')
    (tmp_path / "growth.json").write_text(json.dumps(grown()))
    ran(
        "bench", "--methods", "eagle:tree=chain-2,lantern++:k=5:lambda=3:tree=chain-3", "--prompt-file",
        "captions.txt", "--export-html", "page.html", "--scores", "scores.json", "--growth", "growth.json",
        "--threads", 1, "-q",
        model=drafter_bundle,
    )  # fmt: skip
    browser.show()
    open_page(browser, tmp_path / "page.html")
    sections = shown(browser)
    assert [
        s
        for s in (
            "latency",
            "ratio",
            "depth",
            "stages",
            "roofline",
            "quality",
            "growth",
            "images",
        )
        if s not in sections
    ] == []
    assert count(browser, "#images figure") == 6
    assert count(browser, "#tables table:first-of-type tbody tr") >= 3
    assert HOSTILE in browser.value("document.querySelectorAll('h3')[1].innerText")


def test_what_is_refused(refused: Refused, cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"ar": 3}')
    assert "--export-html" in refused(2, "bench", "--scores", "bad.json", model=drafter_bundle)
    words = ("bench", "--export-html", "p.html", "--scores")
    assert "bad.json: ar" in refused(3, *words, "bad.json", model=drafter_bundle)
    assert "none.json" in refused(3, *words, "none.json", model=drafter_bundle)
    words = ("bench", "--export-html", "p.html", "--growth")
    assert "bad.json: curves" in refused(3, *words, "bad.json", model=drafter_bundle)
    assert "bad.json" in refused(7, "bench", "--export-html", "bad.json", model=drafter_bundle)
