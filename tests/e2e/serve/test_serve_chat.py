"""Questions about images: /v1/chat/completions."""

from __future__ import annotations

import base64
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.families import anole
from tests.e2e.serve.client import Answer, Server, Start, error_of, leave, warnings_of
from tests.e2e.serve.edit_requests import colours, png
from tests.e2e.support import Cli

CHAT = "/v1/chat/completions"
QUESTION = "What is in the image?"


@pytest.fixture(scope="module")
def speaker_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 64 x 64 pixels, 4 x 4 codes; 512 positions for a text."""
    return anole(tmp_path_factory.mktemp("anole"), "--text")


@pytest.fixture(scope="module")
def speaker(start: Start, speaker_bundle: Path) -> Server:
    return start("-t", 1, "--max-body", 200000, "--queue", 4, model=speaker_bundle)


def body(image: bytes | None = None, question: str = QUESTION, **fields: Any) -> dict[str, Any]:
    file = base64.b64encode(png(colours(64, 64)) if image is None else image).decode()
    parts = [
        {"type": "text", "text": question},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{file}"}},
    ]
    return {"messages": [{"role": "user", "content": parts}], "seed": 7, "max_tokens": 30, **fields}


def text_of(answer: Answer) -> str:
    assert answer.status == 200, answer.body
    (choice,) = answer.json["choices"]
    assert choice["message"]["role"] == "assistant"
    return str(choice["message"]["content"])


def test_the_text_of_the_program(
    speaker: Server, cli: Cli, speaker_bundle: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.png").write_bytes(png(colours(64, 64)))
    for words, fields in (
        ((), {}),
        (("--method", "sjd", "--tree", "chain-3"), {"method": "sjd", "tree": "chain-3"}),
        (("--temperature", 0, "--top-k", 5), {"temperature": 0, "top_k": 5}),
    ):
        ran = cli(
            "describe", "a.png", "-p", QUESTION, "--seed", 7, "--max-tokens", 30, "-t", 1, "--json", *words,
            model=speaker_bundle,
        )  # fmt: skip
        reported = json.loads(ran.stdout)
        answer = speaker.post(CHAT, body(**fields))
        assert text_of(answer) == reported["text"]
        assert answer.json["choices"][0]["finish_reason"] == reported["finish_reason"]
        usage = answer.json["usage"]
        assert usage["prompt_tokens"] == reported["prompt_tokens"]
        assert usage["completion_tokens"] == reported["tokens"]
        assert answer.json["object"] == "chat.completion" and answer.json["seed"] == 7


def test_a_stream_has_the_same_text(speaker: Server) -> None:
    whole = speaker.post(CHAT, body())
    streamed = speaker.post(CHAT, body(stream=True, stream_options={"include_usage": True}))
    assert streamed.status == 200 and streamed.headers["Content-Type"] == "text/event-stream"
    lines = streamed.body.decode().strip().split("\n\n")
    assert lines[-1] == "data: [DONE]"
    events = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert {event["object"] for event in events} == {"chat.completion.chunk"}
    deltas = [event["choices"][0] for event in events[:-1]]
    assert "".join(one["delta"].get("content", "") for one in deltas) == text_of(whole)
    assert deltas[0]["delta"]["role"] == "assistant"
    assert [one["finish_reason"] for one in deltas] == [None] * (len(deltas) - 1) + [
        whole.json["choices"][0]["finish_reason"]
    ]
    assert events[-1]["usage"] == whole.json["usage"] and events[-1]["choices"] == []


def test_what_is_not_used_is_said(speaker: Server) -> None:
    answer = speaker.post(CHAT, body(png(colours(80, 60)), presence_penalty=1))
    said = warnings_of(answer)
    assert "image: got 80x60 pixels, it was cropped to 64x64" in said
    assert "not used: presence_penalty" in said and answer.json["unused"] == ["presence_penalty"]


def test_images_and_texts_wait_for_each_other(speaker: Server) -> None:
    """Whatever comes first, answers are right."""
    alone = text_of(speaker.post(CHAT, body()))
    image = speaker.generate(prompt="a boat", seed=3).images
    wrong: list[str] = []

    def ask(chat: bool) -> None:
        for _ in range(4):
            if chat and text_of(speaker.post(CHAT, body())) != alone:
                wrong.append("text")
            if not chat and speaker.generate(prompt="a boat", seed=3).images != image:
                wrong.append("image")

    threads = [threading.Thread(target=ask, args=(number % 2 == 0,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_clients_that_leave(speaker: Server) -> None:
    for _ in range(3):
        leave(speaker, body(max_tokens=400), CHAT)
    assert text_of(speaker.post(CHAT, body())) and speaker.get("/health").status == 200


def with_part(part: dict[str, Any]) -> dict[str, Any]:
    wanted = body()
    wanted["messages"][0]["content"].append(part)
    return wanted


def with_messages(messages: Any) -> dict[str, Any]:
    return {**body(), "messages": messages}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({}, "messages is missing"),
        (with_messages([]), "got 0 messages, expected one of role user"),
        (with_messages([{"role": "user", "content": "hello"}]), "a list of parts, one of them an image"),
        (with_messages([{"role": "system", "content": []}]), "role"),
        (with_messages([{"role": "user", "content": [{"type": "text", "text": "a"}]}]), "got no image"),
        (with_part({"type": "image_url", "image_url": {"url": "data:,AAAA"}}), "got a second image"),
        (with_part({"type": "audio"}), "type"),
        (with_part({"type": "text", "text": "a" * 9000}), "expected at most 8192"),
        (body(b"hello"), "image: got no image"),
        (body(png(colours(64, 64))[:60]), "cut off"),
        (body(method="eagle"), "method: got 'eagle', expected for texts ar"),
        (body(method="eagle", stream=True), "method: got 'eagle', expected for texts ar"),
        (body(max_tokens=0), "max_tokens"),
        (body(max_tokens=5000), "max_tokens: got 5000, expected 1 to "),
        (body(temperature=-1), "temperature: got -1"),
        (body(n=2), "n: got 2"),
        (body(temprature=1), "temprature"),
        (body(neighbours="/etc/passwd"), "neighbours"),
        (body(tree="/etc/passwd"), "tree"),
    ],
)  # fmt: skip
def test_refused(speaker: Server, wanted: dict[str, Any], words: str) -> None:
    assert words in error_of(speaker.post(CHAT, wanted), 400)["message"]


def test_nothing_is_fetched(speaker: Server) -> None:
    for url in ("http://127.0.0.1:1/a.png", "file:///etc/passwd", "/etc/passwd"):
        parts = [{"type": "image_url", "image_url": {"url": url}}]
        answer = speaker.post(CHAT, with_messages([{"role": "user", "content": parts}]))
        assert "this server fetches nothing" in error_of(answer, 400)["message"]


def test_bundles_that_describe_nothing(reader: Server) -> None:
    """They say so at once, not what else a request lacks."""
    hello = with_messages(
        [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}]
    )
    for asked in (body(), hello, {}):
        assert "describes no images" in error_of(reader.post(CHAT, asked), 501)["message"]


def test_described(speaker: Server) -> None:
    api = speaker.get("/openapi.json").json
    assert (
        "Chat"
        in api["paths"][CHAT]["post"]["requestBody"]["content"]["application/json"]["schema"][
            "$ref"
        ]
    )
    fields = api["components"]["schemas"]["Chat"]["properties"]
    assert {"messages", "max_tokens", "temperature", "stream", "method", "tree"} <= set(fields)
