"""What the page of `serve` says when something is refused, stops or is hostile."""

from __future__ import annotations

import re
import signal

import pytest

from tests.e2e.browser import Browser
from tests.e2e.serve.client import DEMO, Server, Start
from tests.e2e.serve.page_actions import (
    DONE,
    PAINTED,
    READY,
    count,
    fill,
    generate,
    set_value,
    visit,
    words,
)

HOSTILE = "<img src=x onerror=\"document.title='taken'\"> & 'it' 🏮"


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start("-t", 1, "--method", "sjd", model=DEMO)


def test_what_a_server_refuses_is_said(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#temperature", "-1")
    browser.value("document.querySelector('#form').noValidate = true")
    generate(browser)
    assert "temperature" in words(browser, "#message")
    assert browser.value("document.querySelector('#message').className") == "bad"
    assert browser.value("document.querySelector('#message').getAttribute('role')") == "alert"
    fill(browser, "#temperature", "1")
    for seed in ("18446744073709551616", "1.5", "x"):
        fill(browser, "#seed", seed)
        browser.click("#generate")
        assert f"the seed is {seed}" in words(browser, "#message")


def test_in_a_narrow_window_errors_come_into_view(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.show(360, 500)
    fill(browser, "#seed", str(2**64))
    assert browser.value("(e => e.scrollWidth <= e.clientWidth)(document.querySelector('#seed'))")
    browser.click("#generate")
    assert browser.value(
        "(b => b.top >= 0 && b.bottom <= innerHeight)(document.querySelector('#message').getBoundingClientRect())"
    )


def test_a_server_that_stops(browser: Browser, start: Start) -> None:
    server = start("-t", 1, "--method", "ar", model=DEMO)
    visit(browser, server)
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    generate(browser)
    assert words(browser, "#message") == "the server has stopped, or cannot be reached"
    assert count(browser, "figure") == 0, "no empty frame"
    assert not browser.value("document.querySelector('#empty').hidden")


def test_what_has_come_stays_when_the_server_stops(browser: Browser, start: Start) -> None:
    """Complete images and rows of others; no frame is empty."""
    server = start("-t", 1, "--method", "ar", "--batch-size", 1, model=DEMO)
    visit(browser, server)
    set_value(browser, "#count", "3")
    browser.click("#generate")
    browser.wait("document.querySelectorAll('figure img:not([hidden])').length >= 1")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    browser.wait(DONE)
    assert words(browser, "#message") == "the server has stopped before the image was complete"
    shown, complete = count(browser, "figure"), count(browser, "figure img:not([hidden])")
    assert 1 <= complete <= shown < 3
    assert count(browser, "#history button") == complete
    generate(browser)
    assert words(browser, "#message") == "the server has stopped, or cannot be reached"
    assert count(browser, "figure") == 0
    assert not browser.value("document.querySelector('#empty').hidden")


def test_incomplete_images_say_how_many_rows_they_show(browser: Browser, start: Start) -> None:
    """Tokens may have come for more rows than the last image had; where none are, the page shows through."""
    server = start("-t", 1, "--method", "ar", model=DEMO)
    visit(browser, server)
    set_value(browser, "#count", "3")
    browser.click("#generate")
    canvas = "figure canvas[role=img]"
    browser.wait(f"document.querySelector('{canvas}') && {PAINTED.format(canvas, 0)} > 0")
    server.process.send_signal(signal.SIGKILL)
    server.process.wait()
    browser.wait(DONE)
    said = re.fullmatch("incomplete: ([0-9]+) of 16 rows", words(browser, "figure small"))
    assert said and 1 <= int(said[1]) < 16
    assert browser.value(PAINTED.format(canvas, 0)) == int(said[1]) * 16 * 256


def test_a_prompt_is_text(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#prompt", HOSTILE)
    generate(browser)
    browser.wait("document.querySelectorAll('#history button').length == 1")
    assert browser.value("document.title") == "lamplighter"
    assert words(browser, "#history span") == HOSTILE


def test_it_asks_for_the_key(browser: Browser, start: Start) -> None:
    server = start("-t", 1, model=DEMO, env={"LAMPLIGHTER_API_KEY": "secret"})
    browser.show()
    browser.open(f"http://{server.host}:{server.port}/")
    browser.wait("!document.querySelector('#key-label').hidden")
    assert words(browser, "#message") == "the server asks for a key"
    fill(browser, "#key", "secret")
    browser.value("document.querySelector('#key').dispatchEvent(new Event('change'))")
    browser.wait(READY)
    generate(browser)
    assert words(browser, "#message").startswith("done in ")
