"""`serve`: images while they are generated."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.e2e.serve.client import (
    DEMO,
    PROMPT,
    Start,
    leave,
)


def events_of(body: bytes) -> list[tuple[str, Any]]:
    """Names and data of server-sent events."""
    events = []
    for block in body.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@pytest.mark.parametrize("method", ["sjd", "zipar"])
def test_a_stream_tells_of_rows_and_images(start: Start, method: str) -> None:
    server = start("-t", 1, model=DEMO)
    answer = server.generate(seed=7, n=2, stream=True, method=method)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    events = events_of(answer.body)
    assert all(name == data["type"] for name, data in events)
    whole = server.generate(seed=7, n=2, method=method).images
    for index in (0, 1):
        mine = [data for _, data in events if data["index"] == index]
        rows = [data["rows"] for data in mine if data["type"].endswith("progress")]
        assert rows == sorted(set(rows)) and rows[-1] == 16
        in_order = [data["in_order"] for data in mine if data["type"].endswith("progress")]
        assert in_order[-1] == (method == "sjd")  # the other one generates rows side by side
        committed = [n for data in mine for n in data.get("committed", [])]
        assert 1 + sum(committed) == 256  # the first token comes with the prompt
        assert mine[-1]["type"] == "image_generation.completed"
        assert base64.b64decode(mine[-1]["b64_json"]) == whole[index]
        assert mine[-1]["usage"]["output_tokens"] == 256


@pytest.mark.parametrize("method", ["ar", "zipar"])  # of which one generates rows side by side
def test_a_stream_shows_what_is_there(start: Start, method: str) -> None:
    server = start("-t", 1, model=DEMO)
    events = events_of(server.generate(seed=7, stream=True, partial_images=3, method=method).body)
    partial = [data for name, data in events if name.endswith("partial_image")]
    assert 1 <= len(partial) <= 3  # an image that is complete overtakes them
    numbers = [data["partial_image_index"] for data in partial]
    assert numbers == sorted(set(numbers)) and numbers[-1] <= 2
    assert all(base64.b64decode(data["b64_json"])[:4] == b"\x89PNG" for data in partial)


def test_a_stream_that_fails_says_so(start: Start) -> None:
    server = start("-t", 1, model=DEMO)
    events = events_of(server.generate(method="ar", stream=True, deadline=0.02).body)
    assert events[-1][0] == "error"
    assert events[-1][1]["error"]["code"] == "deadline_exceeded"
    leave(server, {"prompt": PROMPT, "method": "ar", "stream": True})
    server.until(lambda: server.metric("images_in_work") == 0)
    assert server.metric("images_total") == 0
