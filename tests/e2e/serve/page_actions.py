"""What a person does on the page of `serve`, and sees there."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path

from tests.e2e.browser import Browser
from tests.e2e.serve.client import Server
from tests.e2e.serve.edit_requests import CAPTION

READY = "document.querySelector('#method').options.length > 0"
DONE = "document.querySelector('#generate').getAttribute('aria-disabled') != 'true'"
# Pixels of a canvas that are not its ground.
PAINTED = (
    "(c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.filter((v, i) => i % 4 == 3 && v > 0)"
    ".length)(document.querySelectorAll('{}')[{}])"
)
LEGEND_HIDDEN = "document.querySelector('#legend').hidden"
# The file of an image in the history, as base64: 0 is the oldest, -1 the newest.
FILE = (
    "new Promise((done, failed) => {{ const open = indexedDB.open('lamplighter'); open.onerror = failed;"
    " open.onsuccess = () => {{ const all = open.result.transaction('images').objectStore('images').getAll();"
    " all.onsuccess = () => {{ open.result.close(); const r = new FileReader(); r.onload = () => done(r.result.split(',')[1]);"
    " r.readAsDataURL(all.result.at({}).blob); }}; }}; }})"
)
GIVEN = "!document.querySelector('#given').hidden"
SHOWN = "document.querySelector('#source').toDataURL().split(',')[1]"
HAS_BUTTON = "document.querySelector('.continue').offsetParent !== null"
FORGET = "new Promise(done => { indexedDB.deleteDatabase('lamplighter').onsuccess = done; }).then(() => 0)"

Given = Callable[..., Path]


def visit(browser: Browser, server: Server) -> None:
    """Opens the page with an empty history."""
    browser.events.clear()
    browser.show()
    browser.open(f"http://{server.host}:{server.port}/")
    browser.wait(READY)
    browser.value(FORGET)
    browser.open(f"http://{server.host}:{server.port}/")
    browser.wait(READY)


def set_value(browser: Browser, selector: str, value: str) -> None:
    """Sets a field without keys, as a script does."""
    browser.value(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(value)}")


def fill(browser: Browser, selector: str, text: str) -> None:
    """Types into an empty field."""
    set_value(browser, selector, "")
    browser.click(selector)
    browser.write(text)


def choose(browser: Browser, selector: str, value: str) -> None:
    set_value(browser, selector, value)
    browser.value(f"document.querySelector('{selector}').dispatchEvent(new Event('change'))")


def choose_file(browser: Browser, selector: str, file: Path) -> None:
    found = browser.call("Runtime.evaluate", expression=f"document.querySelector('{selector}')")
    handle = found["result"]["objectId"]
    browser.call("DOM.setFileInputFiles", files=[str(file)], objectId=handle)


def drop_file(browser: Browser, file: Path) -> None:
    """Drags a file from another program to the middle of the page."""
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        browser.call("Input.dispatchDragEvent", type=kind, x=300, y=300, data=data)


def generate(browser: Browser) -> None:
    browser.click("#generate")
    browser.wait(DONE)


def words(browser: Browser, selector: str) -> str:
    return str(browser.value(f"document.querySelector({json.dumps(selector)}).textContent"))


def value(browser: Browser, selector: str) -> str:
    return str(browser.value(f"document.querySelector({json.dumps(selector)}).value"))


def count(browser: Browser, selector: str) -> int:
    return int(browser.value(f"document.querySelectorAll({json.dumps(selector)}).length"))


def file_of(browser: Browser, index: int = -1) -> bytes:
    """The file of an image, which its link downloads."""
    return base64.b64decode(browser.value(FILE.format(index)))


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
