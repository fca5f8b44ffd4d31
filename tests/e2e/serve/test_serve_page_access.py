"""The page of `serve` for every window, for keys and for programs that read it aloud."""

from __future__ import annotations

import pytest

from tests.e2e.browser import Browser
from tests.e2e.serve.client import DEMO, Server, Start
from tests.e2e.serve.page_actions import (
    DONE,
    choose,
    generate,
    set_value,
    visit,
)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start("-t", 1, "--method", "sjd", model=DEMO)


def test_every_field_has_a_label_and_every_image_words(browser: Browser, server: Server) -> None:
    visit(browser, server)
    generate(browser)
    unnamed = (
        "[...document.querySelectorAll('input, select, textarea, button, a, [role=img]')].filter(e => "
        "!(e.labels?.length || e.getAttribute('aria-label') || e.textContent.trim())).map(e => e.outerHTML)"
    )
    assert browser.value(unnamed) == []
    assert browser.value("[...document.images].every(i => i.hasAttribute('alt'))")


def test_keys_keep_their_place(browser: Browser, server: Server) -> None:
    """Buttons that wait, lists that are made anew and what is hidden do not lose the focus."""

    def press(selector: str) -> None:
        browser.value(f"document.querySelector('{selector}').focus()")
        browser.press("Enter")

    def has_focus(selector: str) -> bool:
        return bool(browser.value(f"document.activeElement.matches('{selector}')"))

    visit(browser, server)
    press("#generate")
    assert has_focus("#generate")
    browser.wait(DONE)
    assert has_focus("#generate")
    choose(browser, "#method", "ar")
    set_value(browser, "#count", "4")
    browser.click("#generate")
    press("#stop")
    browser.wait(DONE)
    assert has_focus("#stop")
    press("#stop")  # nothing is generated
    set_value(browser, "#count", "1")
    browser.click("#generate")
    browser.value("document.querySelector('#history li:last-child button').focus()")
    number = browser.value("document.activeElement.dataset.id")
    browser.wait(DONE)
    assert number and has_focus(f'#history [data-id="{number}"]')
    press("#forget")
    browser.wait("document.querySelector('#past').hidden")
    assert has_focus("#prompt")


@pytest.mark.parametrize(
    ("width", "dark"), [(1280, False), (1280, True), (360, False), (360, True)]
)
def test_it_fits_its_window(browser: Browser, server: Server, width: int, dark: bool) -> None:
    visit(browser, server)
    browser.show(width, 800, dark)
    generate(browser)
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")


def test_it_asks_no_other_place(browser: Browser, server: Server) -> None:
    visit(browser, server)
    generate(browser)
    addresses = [
        event["params"]["request"]["url"]
        for event in browser.events
        if event.get("method") == "Network.requestWillBeSent"
    ]
    own = f"http://{server.host}:{server.port}/"
    assert addresses and all(a.startswith((own, "data:", "blob:")) for a in addresses)
    failures = [e for e in browser.events if e.get("method") == "Log.entryAdded"]
    assert not failures, failures
