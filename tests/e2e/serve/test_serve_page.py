"""The page of `serve`, used in a browser."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.families import simplear
from tests.e2e.serve.client import DEMO, PROMPT, Server, Start

HOSTILE = "<img src=x onerror=\"document.title='taken'\"> & 'it' 🏮"
READY = "document.querySelector('#method').options.length > 0"
DONE = "!document.querySelector('#draw').disabled"
# Pixels of a canvas that are not its ground.
PAINTED = (
    "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 == 3 && v > 0)"
    ".length)(document.querySelectorAll('{}')[{}])"
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (apt-get install chromium)")
    browser = Browser(tmp_path_factory.mktemp("profile"))
    for domain in ("Runtime", "Log", "Network"):
        browser.call(f"{domain}.enable")
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start("-t", 1, "--method", "sjd", model=DEMO)


def visit(browser: Browser, server: Server) -> None:
    browser.events.clear()
    browser.show()
    browser.open(f"http://{server.host}:{server.port}/")


def fill(browser: Browser, selector: str, text: str) -> None:
    """Types into an empty field."""
    browser.value(f"document.querySelector({json.dumps(selector)}).value = ''")
    browser.click(selector)
    browser.write(text)


LEGEND_HIDDEN = "document.querySelector('#legend').hidden"


def draw(browser: Browser) -> None:
    browser.click("#draw")
    browser.wait(DONE)


def words(browser: Browser, selector: str) -> str:
    return str(browser.value(f"document.querySelector({json.dumps(selector)}).textContent"))


def test_type_draw_and_see_the_picture(browser: Browser, server: Server, tmp_path: Path) -> None:
    visit(browser, server)
    browser.wait(READY)
    assert browser.value("document.querySelector('#method').value") == "sjd"
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#seed", "7")
    draw(browser)
    assert words(browser, "#message") == "seed 7"
    caption = words(browser, "figcaption")
    assert caption.startswith("sjd 256 tokens,") and " a pass" in caption
    assert browser.value(PAINTED.format(".picture canvas", 0)) == 256 * 256
    assert browser.value(PAINTED.format(".passes", 0)) == 16 * 16
    data = browser.value("document.querySelector('canvas').toDataURL('image/png')")
    shown = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")
    (expected,) = server.draw(prompt=PROMPT, seed=7, method="sjd").pictures
    assert shown.tobytes() == Image.open(io.BytesIO(expected)).convert("RGB").tobytes()
    browser.click("#colours")
    assert browser.value("document.querySelector('.passes').hidden")
    browser.screenshot(tmp_path / "page.png")


def test_only_tokens_in_raster_order_are_coloured(
    browser: Browser, server: Server, start: Start, mar: Path
) -> None:
    choose = "(s => { s.value = '%s'; })(document.querySelector('#method'))"
    visit(browser, server)
    browser.wait(READY)
    assert browser.value(LEGEND_HIDDEN)
    draw(browser)
    assert not browser.value(LEGEND_HIDDEN)
    browser.value(choose % "zipar")
    fill(browser, "#seed", "7")
    draw(browser)
    assert browser.value(LEGEND_HIDDEN)
    assert browser.value(PAINTED.format(".picture canvas", 0)) == 256 * 256
    assert browser.value(PAINTED.format(".passes", 0)) == 0

    visit(browser, start("-t", 1, model=mar))
    browser.wait(READY)
    fill(browser, "#prompt", "3")
    fill(browser, "#seed", "7")
    draw(browser)
    assert words(browser, "#message") == "seed 7"
    assert browser.value(PAINTED.format(".picture canvas", 0)) == 32 * 32
    assert browser.value(PAINTED.format(".passes", 0)) == 0


def test_beside_ar_with_both_clocks(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    fill(browser, "#seed", "9")
    browser.click("#compare")
    draw(browser)
    assert browser.value("document.querySelectorAll('figure').length") == 2
    assert "of the time of ar" in words(browser, "#message")
    # Both run once more by themselves, slowly: at some time both are under way.
    browser.wait(
        "[...document.querySelectorAll('.clock')].every(c => parseFloat(c.textContent) > 0)"
    )
    browser.wait(f"{PAINTED.format('.picture canvas', 0)} == 65536")
    browser.click("#again")
    browser.wait(
        "(([a, b]) => a > 0 && b > 0 && a < 65536 && b < 65536)([0, 2].map(i =>"
        + PAINTED.format(".picture canvas", "i")
        + "))"
    )
    browser.wait("[0, 2].every(i => " + PAINTED.format(".picture canvas", "i") + " == 65536)")
    assert browser.value("document.querySelectorAll('#history button').length") == 1


def test_history_shows_pictures_again(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    for seed in ("1", "2"):
        fill(browser, "#seed", seed)
        draw(browser)
    assert words(browser, "#message") == "seed 2"
    browser.click("#history button:nth-child(2)")
    assert words(browser, "#message") == "seed 1"


def test_what_a_server_refuses_is_said(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    fill(browser, "#temperature", "-1")
    browser.value("document.querySelector('#form').noValidate = true")
    draw(browser)
    assert "temperature" in words(browser, "#message")
    assert browser.value("document.querySelector('#message').className") == "bad"


def test_a_prompt_is_text(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    fill(browser, "#prompt", HOSTILE)
    draw(browser)
    browser.wait("document.querySelectorAll('#history button').length == 1")
    assert browser.value("document.title") == "lamplighter"
    assert words(browser, "#history span") == HOSTILE


def test_drawing_can_be_stopped(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    before = server.metric("pictures_total")
    browser.click("#draw")
    browser.click("#stop")
    browser.wait(DONE)
    assert words(browser, "#message") in ("stopped",) or server.metric("pictures_total") > before
    server.until(lambda: server.metric("pictures_in_work") == 0)


def test_it_asks_for_the_key(browser: Browser, start: Start) -> None:
    server = start("-t", 1, model=DEMO, env={"LAMPLIGHTER_API_KEY": "secret"})
    visit(browser, server)
    browser.wait("!document.querySelector('#key-label').hidden")
    fill(browser, "#key", "secret")
    browser.value("document.querySelector('#key').dispatchEvent(new Event('change'))")
    browser.wait(READY)
    draw(browser)
    assert words(browser, "#message").startswith("seed ")


def test_negative_prompts_where_the_model_has_them(
    browser: Browser, start: Start, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hidden = "document.querySelector('#negative-label').hidden"
    bundle = simplear(tmp_path_factory.mktemp("simplear"))
    server = start("-t", 1, "-m", bundle, model=DEMO)
    visit(browser, server)
    browser.wait(READY)
    assert browser.value(hidden)
    demo, steered = (model["id"] for model in server.get("/v1/models").json["data"])
    choose = "(s => { s.value = '%s'; s.dispatchEvent(new Event('change')); })(document.querySelector('#model'))"
    browser.value(choose % steered)
    assert not browser.value(hidden)
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#negative_prompt", "fog")
    fill(browser, "#seed", "5")
    draw(browser)
    data = browser.value("document.querySelector('canvas').toDataURL('image/png')")
    shown = Image.open(io.BytesIO(base64.b64decode(data.partition(",")[2]))).convert("RGB")
    method = browser.value("document.querySelector('#method').value")
    asked = {"model": steered, "prompt": PROMPT, "method": method, "seed": 5}
    (expected,) = server.draw(**asked, negative_prompt="fog").pictures
    assert shown.tobytes() == Image.open(io.BytesIO(expected)).convert("RGB").tobytes()
    browser.value(choose % demo)
    assert browser.value(hidden)
    draw(browser)  # what is left in the field is not sent
    assert words(browser, "#message") == "seed 5"


def test_it_asks_no_other_place(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.wait(READY)
    draw(browser)
    addresses = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    own = f"http://{server.host}:{server.port}/"
    assert addresses and all(a.startswith((own, "data:", "blob:")) for a in addresses)
    failures = [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    assert not failures, failures
