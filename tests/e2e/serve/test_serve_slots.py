"""`serve`: requests share slots, leave them, wait and get the pixels of `generate`."""

from __future__ import annotations

import json
import signal
import threading
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
def test_pictures_are_those_of_generate(
    server: Server, drawn: Callable[..., bytes], method: dict[str, Any]
) -> None:
    flags = [
        word for key, value in method.items() for word in ("--" + key.replace("_", "-"), value)
    ]
    answer = server.draw(seed=7, n=2, **method)
    assert answer.pictures == [drawn("-s", 7, *flags), drawn("-s", 8, *flags)]
    assert [entry["seed"] for entry in answer.json["data"]] == [7, 8]
    assert answer.json["size"] == f"{SIDE}x{SIDE}"


def test_pictures_are_the_same_whoever_is_beside_them(
    start: Start, drawn: Callable[..., bytes]
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
            expected[number, seed] = drawn("-s", seed, *flags)

    def ask(client: int, step: int) -> bool:
        number, seed = (client + step) % len(kinds), 1 + (client * step) % 2
        if (client + 3 * step) % 5 == 0:
            leave(server, {"prompt": PROMPT, "n": 2, **kinds[number]})
        answer = server.draw(seed=seed, **kinds[number])
        return answer.pictures == [expected[number, seed]]

    crowd(server, ask)


@pytest.mark.parametrize("method", ["ar", "sjd", "ngram", "zipar"])
def test_a_picture_of_no_numbers_fails_alone(
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
        return answer.pictures == [expected]

    crowd(server, ask, drawn=3 * 8)


def test_requests_share_slots(start: Start) -> None:
    """A request joins those in work: nobody waits for the end of another's picture."""
    server = start("-t", 1, "--batch-size", 8, model=DEMO)
    answers: list[Answer] = []
    first = threading.Thread(target=lambda: answers.append(server.draw(method="ar", seed=1, n=7)))
    first.start()
    server.until(lambda: server.metric("pictures_in_work") == 7)
    second = threading.Thread(target=lambda: answers.append(server.draw(method="ar", seed=2)))
    second.start()
    server.until(lambda: server.metric("pictures_in_work") == 8)
    assert server.metric("pictures_total") == 0
    progress = server.get("/sdapi/v1/progress").json
    assert 0 < progress["progress"] < 1 and progress["state"]["job_count"] == 8
    first.join()
    second.join()
    assert [answer.status for answer in answers] == [200, 200]


def test_who_leaves_frees_the_slot_at_once(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    body = {"prompt": PROMPT, "method": "ar", "n": 10}
    text = json.dumps(body).encode()
    connection = server.connect()
    connection.request("POST", GENERATIONS, text, {"Content-Type": "application/json"})
    server.until(lambda: server.metric("pictures_in_work") == 1)
    assert server.metric("queue_pictures") == 9
    connection.close()
    server.until(lambda: server.metric("pictures_in_work") == 0)
    assert server.metric("queue_pictures") == 0
    assert server.metric("pictures_total") < 10


def test_a_full_queue_asks_to_try_later(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, "--queue", 2, model=DEMO)
    connection = server.connect()
    body = json.dumps({"prompt": PROMPT, "method": "ar", "n": 3})
    connection.request("POST", GENERATIONS, body, {"Content-Type": "application/json"})
    server.until(lambda: server.metric("queue_pictures") == 2)
    answer = server.draw()
    assert error_of(answer, 429)["code"] == "queue_full"
    assert int(answer.headers["Retry-After"]) >= 1
    connection.close()
    server.until(lambda: server.metric("pictures_in_work") == 0)
    assert server.draw(method="sjd").status == 200


def test_the_deadline_ends_what_takes_too_long(start: Start) -> None:
    server = start("-t", 1, "--deadline", 5, model=DEMO)
    answer = server.draw(method="ar", deadline=0.05, n=4)
    assert error_of(answer, 504)["code"] == "deadline_exceeded"
    server.until(lambda: server.metric("pictures_in_work") == 0)


def test_sigterm_draws_what_was_asked_for(start: Start) -> None:
    server = start("-t", 1, "--batch-size", 1, model=DEMO)
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(server.draw(method="sjd", n=6)))
    asking.start()
    server.until(lambda: server.metric("queue_pictures") == 5)
    server.process.send_signal(signal.SIGTERM)
    server.until(lambda: server.get("/health").status == 503)
    assert error_of(server.draw(), 503)["code"] == "shutting_down"
    asking.join()
    assert len(answers[0].pictures) == 6
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
