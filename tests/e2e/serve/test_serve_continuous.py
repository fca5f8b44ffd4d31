"""`serve` with a bundle of continuous tokens: requests share slots, leave them and get the pixels of `generate`."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import numpy
import pytest
from PIL import Image

from tests.e2e.continuous_bundle import write_continuous
from tests.e2e.serve.client import GENERATIONS, Answer, Start, crowd, error_of, leave
from tests.e2e.support import Cli

KINDS: list[dict[str, Any]] = [
    {"method": "ar", "steps": 6},
    {"method": "ar", "steps": 6, "cfg_scale": 1, "class": 4},
    {"method": "cspd", "gamma": 3},
    {"method": "cspd", "rule": "official", "steps": 12},
]


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every token takes 900 steps."""
    return write_continuous(tmp_path_factory.mktemp("slow"), 900)


def pixels(png: bytes) -> numpy.ndarray:
    return numpy.asarray(Image.open(io.BytesIO(png))).astype(int)


def test_images_are_the_same_whoever_is_beside_them(
    start: Start, cli: Cli, mar: Path, tmp_path: Path
) -> None:
    """Requests of several methods come at any time, and some go again."""
    server = start("-t", 2, "--batch-size", 3, model=mar)
    expected = []
    for kind in KINDS:
        flags = [w for key, value in kind.items() for w in ("--" + key.replace("_", "-"), value)]
        given = () if "class" in kind else ("--class", 3)
        words = ("-o", "one.png", "--overwrite", "-s", 7)
        result = cli("generate", *given, *flags, *words, model=mar)
        assert result.returncode == 0, result.stderr
        expected.append(pixels((tmp_path / "one.png").read_bytes()))

    def ask(client: int, step: int) -> bool:
        number = (client + step) % len(KINDS)
        body = {"class": 3, **KINDS[number]}
        if (client + 3 * step) % 5 == 0:
            leave(server, {"n": 2, **body})
        answer = server.post(GENERATIONS, {"seed": 7, **body})
        return bool(abs(pixels(answer.images[0]) - expected[number]).max() <= 1)

    crowd(server, ask)


def test_requests_share_slots(start: Start, slow: Path) -> None:
    """A request joins those in work: nobody waits for the end of another's image."""
    server = start("-t", 1, "--batch-size", 4, model=slow)
    answers: list[Answer] = []

    def ask(seed: int, count: int) -> threading.Thread:
        body = {"class": 1, "seed": seed, "n": count}
        thread = threading.Thread(target=lambda: answers.append(server.post(GENERATIONS, body)))
        thread.start()
        return thread

    first = ask(1, 3)
    server.until(lambda: server.metric("images_in_work") == 3)
    second = ask(9, 1)
    server.until(lambda: server.metric("images_in_work") == 4)
    assert server.metric("images_total") == 0
    server.until(lambda: 0 < server.get("/sdapi/v1/progress").json["progress"] < 1)
    first.join()
    second.join()
    assert [len(answer.images) for answer in answers] == [3, 1]


def test_who_leaves_frees_the_slot_at_once(start: Start, slow: Path) -> None:
    server = start("-t", 1, "--batch-size", 2, model=slow)
    connection = server.connect()
    text = json.dumps({"class": 1, "n": 8})
    connection.request("POST", GENERATIONS, text, {"Content-Type": "application/json"})
    server.until(lambda: server.metric("images_in_work") == 2)
    connection.close()
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.metric("queue_images") == 0
    assert server.metric("images_total") < 8
    assert len(server.post(GENERATIONS, {"class": 2, "steps": 1}).images) == 1


def test_errors_are_reported_at_once(start: Start, mar: Path) -> None:
    server = start("-t", 1, model=mar)
    for fields in ({"class": 99}, {"prompt": "a boat"}, {"class": 1, "method": "sjd"}, {"class": 1, "method": "cspd", "temperature": 0}):  # fmt: skip
        error = error_of(server.post(GENERATIONS, fields), 400)
        assert str(mar) not in error["message"]
