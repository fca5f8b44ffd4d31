"""The page of `serve`, used in a browser."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from PIL import Image

from tests.e2e.browser import Browser
from tests.e2e.families import simplear
from tests.e2e.serve.client import DEMO, PROMPT, Server, Start
from tests.e2e.serve.page_actions import (
    DONE,
    LEGEND_HIDDEN,
    PAINTED,
    READY,
    choose,
    count,
    file_of,
    fill,
    generate,
    set_value,
    value,
    visit,
    words,
)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start("-t", 1, "--method", "sjd", model=DEMO)


def test_type_generate_and_see_the_image(browser: Browser, server: Server) -> None:
    visit(browser, server)
    assert value(browser, "#method") == "sjd"
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#seed", "7")
    generate(browser)
    assert words(browser, "#message").startswith("done in ")
    caption = words(browser, "figcaption")
    assert (
        caption.startswith("sjd256 tokens in ") and caption.split(" s")[0] and "seed 7" in caption
    )
    (expected,) = server.generate(prompt=PROMPT, seed=7, method="sjd").images
    assert file_of(browser) == expected, "with its settings"
    link = "document.querySelector('figure a')"
    assert browser.value(f"{link}.href == document.querySelector('figure img').src")
    assert browser.value(f"{link}.download") == "a-house-7.png"
    assert browser.value("document.querySelector('figure img').alt") == PROMPT
    assert browser.value("document.querySelector('figure canvas').hidden")


def test_colours_are_a_switch_that_is_off_at_rest(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.click("#colours")
    generate(browser)
    assert browser.value("document.querySelector('.passes').hidden")
    assert browser.value(LEGEND_HIDDEN)
    assert browser.value(PAINTED.format(".passes", 0)) == 16 * 16
    switch = "figure button[aria-pressed]"
    browser.click(switch)
    assert not browser.value("document.querySelector('.passes').hidden")
    assert not browser.value(LEGEND_HIDDEN) and "tokens per pass" in words(browser, "#legend")
    browser.click(switch)
    assert browser.value("document.querySelector('.passes').hidden")


def test_colours_grow_with_the_image_when_asked(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.click("#colours")
    choose(browser, "#method", "ar")
    browser.click("#generate")
    browser.wait("(p => p && !p.hidden)(document.querySelector('.passes'))")
    browser.wait(DONE)
    assert browser.value("document.querySelector('.passes').hidden")


def test_only_tokens_in_raster_order_are_coloured(
    browser: Browser, server: Server, start: Start, mar: Path
) -> None:
    visit(browser, server)
    choose(browser, "#method", "zipar")
    fill(browser, "#seed", "7")
    generate(browser)
    assert browser.value("document.querySelector('figure button[aria-pressed]').hidden")
    assert browser.value(PAINTED.format(".passes", 0)) == 0

    visit(browser, start("-t", 1, model=mar))
    assert words(browser, "#prompt-label") == "Class"
    fill(browser, "#prompt", "3")
    fill(browser, "#seed", "7")
    generate(browser)
    assert words(browser, "#message").startswith("done in ")
    assert Image.open(io.BytesIO(file_of(browser))).size == (32, 32)
    assert browser.value(PAINTED.format(".passes", 0)) == 0


def test_the_race_says_who_won(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#seed", "9")
    browser.click("#compare")
    generate(browser)
    assert count(browser, "figure") == 2
    message = words(browser, "#message")
    assert "won by" in message or "a tie" in message
    if "won by" in message:
        winner = message.split(" won by ")[0]
        assert words(browser, "figure.won figcaption b") == winner
        first, last = (float(t.split(" s")[0]) for t in message.split(": ")[1].split(" against "))
        ratio, half = float(message.split(", ")[-1].split()[0]), 0.005  # of the last digit shown
        assert (last - half) / (first + half) - half < ratio < (last + half) / (first - half) + half
    # Both run once more by themselves, slowly: at some time both are under way.
    browser.wait(
        "[...document.querySelectorAll('.clock')].every(c => parseFloat(c.textContent) > 0)"
    )
    browser.wait("[...document.querySelectorAll('figure img')].every(i => !i.hidden)")
    browser.click("#again")
    browser.wait("[...document.querySelectorAll('figure img')].every(i => i.hidden)")
    browser.wait("[...document.querySelectorAll('figure img')].every(i => !i.hidden)")
    assert count(browser, "#history button") == 2


def test_several_images_at_once(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#seed", "20")
    set_value(browser, "#count", "3")
    generate(browser)
    assert count(browser, "figure") == 3
    assert words(browser, "#message") == "3 images, generated side by side"
    expected = server.generate(prompt=PROMPT, seed=20, n=3, method="sjd").images
    assert [file_of(browser, i) for i in range(3)] == expected


def test_a_seed_of_minus_one_is_random(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#seed", "-1")
    generate(browser)
    assert words(browser, "#message").startswith("done in ")
    fill(browser, "#seed", "-2")
    browser.click("#generate")
    browser.wait("document.querySelector('#message').textContent.includes('the seed is -2')")


def test_history_survives_and_restores_the_form(browser: Browser, server: Server) -> None:
    visit(browser, server)
    for seed, method, prompt in (("1", "sjd", "a tent"), ("18446744073709551615", "ar", PROMPT)):
        choose(browser, "#method", method)
        fill(browser, "#prompt", prompt)
        fill(browser, "#seed", seed)
        fill(browser, "#temperature", "0.5")
        generate(browser)
    assert "seed 18446744073709551615" in words(browser, "figcaption")
    browser.open(f"http://{server.host}:{server.port}/")
    browser.wait(READY)
    browser.wait("document.querySelectorAll('#history button').length == 2")
    assert count(browser, "figure") == 0
    browser.click("#history li:nth-child(2) button")
    browser.wait("document.querySelectorAll('figure img').length == 1")
    browser.wait(f"document.querySelector('#prompt').value == {json.dumps('a tent')}")
    assert value(browser, "#seed") == "1" and value(browser, "#method") == "sjd"
    assert value(browser, "#temperature") == "0.5"
    asked = {"prompt": "a tent", "seed": 1, "method": "sjd", "temperature": 0.5}
    assert file_of(browser, 0) == server.generate(**asked).images[0]
    browser.click("#history li:nth-child(1) button")
    browser.wait("document.querySelector('#seed').value == '18446744073709551615'")
    browser.click("#forget")
    browser.wait("document.querySelector('#past').hidden")


def test_settings_are_copied(browser: Browser, server: Server) -> None:
    visit(browser, server)
    browser.call(
        "Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"]
    )
    fill(browser, "#seed", "18446744073709551615")
    generate(browser)
    browser.click("figure button:not([aria-pressed])")
    browser.wait("document.querySelector('#message').textContent == 'the settings are copied'")
    copied = json.loads(browser.value("navigator.clipboard.readText()"))
    assert copied["seed"] == "18446744073709551615" and copied["method"] == "sjd"
    copied.pop("n")
    assert server.generate(**copied).images == [file_of(browser)]


def test_methods_show_what_they_are(browser: Browser, server: Server) -> None:
    visit(browser, server)
    (model,) = server.get("/v1/models").json["data"]
    for method in model["methods"]:
        choose(browser, "#method", method)
        assert words(browser, "#meaning") == model["meanings"][method]
        for name in ("tree", "lambda"):
            hidden = browser.value(f"document.querySelector('#{name}-field').hidden")
            assert hidden == (name not in model["settings"][method]), (method, name)
    assert "tree" in model["settings"]["eagle"] and model["settings"]["ar"] == {}
    choose(browser, "#method", "eagle")
    set_value(browser, "#tree", "chain-3")
    set_value(browser, "#seed", "4")
    generate(browser)
    assert (
        file_of(browser)
        == server.generate(prompt=model["example"], seed=4, method="eagle", tree="chain-3").images[
            0
        ]
    )


def test_examples_when_nothing_is_written(browser: Browser, server: Server) -> None:
    visit(browser, server)
    (model,) = server.get("/v1/models").json["data"]
    assert count(browser, "#examples button") == len(model["examples"]) > 2
    browser.click("#examples button:nth-child(2)")
    assert value(browser, "#prompt") == model["examples"][1]
    assert browser.value("document.querySelector('#examples').hidden")


def test_notes_of_the_engine_are_shown(browser: Browser, server: Server) -> None:
    visit(browser, server)
    fill(browser, "#prompt", "a zebra")
    generate(browser)
    assert "does not know: zebra" in words(browser, "#notes")


def test_generating_can_be_stopped(browser: Browser, server: Server) -> None:
    visit(browser, server)
    before = server.metric("images_total")
    browser.click("#generate")
    browser.click("#stop")
    browser.wait(DONE)
    assert words(browser, "#message") in ("stopped",) or server.metric("images_total") > before
    server.until(lambda: server.metric("images_in_work") == 0)


def test_negative_prompts_where_the_model_has_them(
    browser: Browser, start: Start, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hidden = "document.querySelector('#negative-label').hidden"
    bundle = simplear(tmp_path_factory.mktemp("simplear"))
    server = start("-t", 1, "-m", bundle, model=DEMO)
    visit(browser, server)
    assert browser.value(hidden)
    demo, steered = (model["id"] for model in server.get("/v1/models").json["data"])
    choose(browser, "#model", steered)
    assert not browser.value(hidden)
    fill(browser, "#prompt", PROMPT)
    fill(browser, "#negative_prompt", "fog")
    fill(browser, "#seed", "5")
    generate(browser)
    asked = {"model": steered, "prompt": PROMPT, "method": value(browser, "#method"), "seed": 5}
    assert file_of(browser) == server.generate(**asked, negative_prompt="fog").images[0]
    choose(browser, "#model", demo)
    assert browser.value(hidden)
    generate(browser)  # what is left in the field is not sent
    assert words(browser, "#message").startswith("done in ")
