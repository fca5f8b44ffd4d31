"""`serve`: requests share slots, leave them, wait and get the pixels of `generate`."""

from __future__ import annotations

import json
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.serve.client import (
    DEMO,
    GENERATIONS,
    PROMPT,
    Answer,
    Server,
    Start,
    crowd,
    error_of,
    leave,
)
from tests.e2e.support import SIDE, Cli, damaged


@pytest.mark.parametrize(
    "method",
    [
        {"method": "ar"},
        {"method": "eagle", "tree": "chain-2"},
        {"method": "eagle-2"},
        {"method": "sjd", "tree": "chain-3"},
        {"method": "ngram"},
        {"method": "lantern++", "lambda": 2, "relax_k": 3},
        {"method": "ar", "cfg_scale": 1, "temperature": 0},
    ],
)
def test_images_are_those_of_generate(
    server: Server, generated: Callable[..., bytes], method: dict[str, Any]
) -> None:
    flags = [
        word for key, value in method.items() for word in ("--" + key.replace("_", "-"), value)
    ]
    answer = server.generate(seed=7, n=2, **method)
    assert answer.images == [generated("-s", 7, *flags), generated("-s", 8, *flags)]
    assert [entry["seed"] for entry in answer.json["data"]] == [7, 8]
    assert answer.json["size"] == f"{SIDE}x{SIDE}"


def test_images_are_the_same_whoever_is_beside_them(
    start: Start, generated: Callable[..., bytes]
) -> None:
    """Requests of several methods come at any time, and some go again."""
    server = start("-t", 2, "--batch-size", 3)
    kinds: list[dict[str, Any]] = [
        {"method": "sjd"},
        {"method": "eagle", "tree": "chain-2"},
        {"method": "eagle", "tree": "chain-2", "cfg_scale": 1},
        {"method": "ar", "temperature": 0},
    ]
    expected = {}
    for number, kind in enumerate(kinds):
        flags = [w for key, value in kind.items() for w in ("--" + key.replace("_", "-"), value)]
        for seed in (1, 2):
            expected[number, seed] = generated("-s", seed, *flags)

    def ask(client: int, step: int) -> bool:
        number, seed = (client + step) % len(kinds), 1 + (client * step) % 2
        if (client + 3 * step) % 5 == 0:
            leave(server, {"prompt": PROMPT, "n": 2, **kinds[number]})
        answer = server.generate(seed=seed, **kinds[number])
        return answer.images == [expected[number, seed]]

    crowd(server, ask)


@pytest.mark.parametrize("method", ["ar", "sjd", "ngram", "zipar"])
def test_an_image_of_no_numbers_fails_alone(
    start: Start, cli: Cli, class_bundle: Path, tmp_path: Path, method: str
) -> None:
    """Of a bundle that knows eight classes of nine."""
    bundle = damaged(
        class_bundle, tmp_path / "bundle", "target.pt", lambda name: name == "classes", slice(5, 6)
    )
    words = ("--class", 3, "-s", 7, "--method", method, "-t", 1, "-o", "one.png")
    assert cli("generate", *words, model=bundle).returncode == 0
    expected = (tmp_path / "one.png").read_bytes()
    server = start("-t", 1, "--batch-size", 3, model=bundle)

    def ask(client: int, step: int) -> bool:
        if client % 2 == 0:
            error = error_of(server.post(GENERATIONS, {"class": 5, "method": method}), 500)
            return "NaN" in error["message"]
        answer = server.post(GENERATIONS, {"class": 3, "seed": 7, "method": method})
        return answer.images == [expected]

    crowd(server, ask, generated=3 * 8)


def test_requests_share_slots(start: Start) -> None:
    """A request joins those in work: nobody waits for the end of another's image."""
    server = start("-t", 1, "--batch-size", 8, model=DEMO)
    answers: list[Answer] = []
    first = threading.Thread(
        target=lambda: answers.append(server.generate(method="ar", seed=1, n=7))
    )
    first.start()
    server.until(lambda: server.metric("images_in_work") == 7)
    second = threading.Thread(target=lambda: answers.append(server.generate(method="ar", seed=2)))
    second.start()
    server.until(lambda: server.metric("images_in_work") == 8)
    assert server.metric("images_total") == 0
    progress = server.get("/sdapi/v1/progress").json
    assert 0 < progress["progress"] < 1 and progress["state"]["job_count"] == 8
    first.join()
    second.join()
    assert [answer.status for answer in answers] == [200, 200]


@pytest.mark.parametrize("threads", [1, 2])
def test_the_time_before_a_request_is_not_its_own(start: Start, threads: int) -> None:
    """The engine and the threads of the server are idle between two requests."""
    server = start("-t", threads, "--batch-size", 1)
    pause = 2.0
    server.generate(method="sjd", seed=1)  # loads
    loaded = server.metric("image_seconds_sum")
    walls = 0.0
    for method in ("sjd", "sjd", "ar"):
        time.sleep(pause)
        began = time.monotonic()
        (entry,) = server.generate(method=method, seed=2).json["data"]
        wall = time.monotonic() - began
        assert 0 < entry["seconds"] <= wall
        walls += wall
    assert server.metric("image_seconds_sum") - loaded <= walls
    time.sleep(pause)
    assert server.get("/nothing").status == 404
    text = server.get("/metrics").body.decode()
    (other,) = re.findall(r'request_seconds_sum\{path="other"\} (\S+)', text)
    assert float(other) < pause


def test_who_leaves_frees_the_slot_at_once(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    body = {"prompt": PROMPT, "method": "ar", "n": 10}
    text = json.dumps(body).encode()
    connection = server.connect()
    connection.request("POST", GENERATIONS, text, {"Content-Type": "application/json"})
    server.until(lambda: server.metric("images_in_work") == 1)
    assert server.metric("queue_images") == 9
    connection.close()
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.metric("queue_images") == 0
    assert server.metric("images_total") < 10


def test_a_full_queue_asks_to_try_later(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, "--queue", 2, model=DEMO)
    connection = server.connect()
    body = json.dumps({"prompt": PROMPT, "method": "ar", "n": 3})
    connection.request("POST", GENERATIONS, body, {"Content-Type": "application/json"})
    server.until(lambda: server.metric("queue_images") == 2)
    answer = server.generate()
    assert error_of(answer, 429)["code"] == "queue_full"
    assert int(answer.headers["Retry-After"]) >= 1
    connection.close()
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.generate(method="sjd").status == 200


def test_the_deadline_ends_what_takes_too_long(start: Start) -> None:
    server = start("-t", 1, "--deadline", 5, model=DEMO)
    answer = server.generate(method="ar", deadline=0.05, n=4)
    assert error_of(answer, 504)["code"] == "deadline_exceeded"
    server.until(lambda: server.metric("images_in_work") == 0)


def test_sigterm_generates_what_was_asked_for(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(server.generate(method="sjd", n=6)))
    asking.start()
    server.until(lambda: server.metric("queue_images") == 5)
    server.process.send_signal(signal.SIGTERM)
    server.until(lambda: server.get("/health").status == 503)
    assert error_of(server.generate(), 503)["code"] == "shutting_down"
    asking.join()
    assert len(answers[0].images) == 6
    assert server.process.wait(30) == 0


def test_many_may_knock_at_once(server: Server) -> None:
    answers: list[int] = []
    barrier = threading.Barrier(100)

    def ask() -> None:
        barrier.wait()
        answers.append(server.get("/health").status)

    clients = [threading.Thread(target=ask) for _ in range(100)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    assert answers == [200] * 100
