"""A server under test, and what it answers."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import re
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GENERATIONS = "/v1/images/generations"
TXT2IMG = "/sdapi/v1/txt2img"
PROMPT = "a house"
DEMO = Path(__file__).resolve().parents[3] / "models" / "demo" / "bundle"


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)

    @property
    def images(self) -> list[bytes]:
        """The PNG files of an answer of OpenAI's API."""
        assert self.status == 200, self.body
        return [base64.b64decode(entry["b64_json"]) for entry in self.json["data"]]


@dataclass
class Server:
    """A server under test."""

    process: subprocess.Popen[str]
    host: str
    port: int

    def connect(self) -> http.client.HTTPConnection:
        """A connection of its own."""
        return http.client.HTTPConnection(self.host, self.port, timeout=120)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request on a connection of its own."""
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return Answer(answer.status, dict(answer.getheaders()), answer.read())

    def get(self, path: str, **headers: str) -> Answer:
        """GET."""
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        """POST of JSON."""
        text = body if isinstance(body, (bytes, str)) else json.dumps(body)
        return self.ask("POST", path, text, {"Content-Type": "application/json", **headers})

    def generate(self, **fields: object) -> Answer:
        """An image by OpenAI's API."""
        return self.post(GENERATIONS, {"prompt": PROMPT, **fields})

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        text = self.get("/metrics").body.decode()
        values = re.findall(rf"^lamplighter_{name}\{{.*\}} (\S+)$", text, re.MULTILINE)
        return sum(map(float, values))

    def until(self, is_so: Callable[[], bool]) -> None:
        """Waits until something is so."""
        end = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < end
            time.sleep(0.02)


Start = Callable[..., Server]


def log_of(server: Server) -> str:
    """What a server printed for people."""
    return Path(server.process.args[-1]).read_text()  # type: ignore[index]


def error_of(answer: Answer, status: int) -> dict[str, Any]:
    """The error of an answer, which has OpenAI's form."""
    assert answer.status == status, answer.body
    error = answer.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    return error  # type: ignore[no-any-return]


def warnings_of(answer: Answer) -> str:
    """The warnings in an answer's JSON, which its headers have, too."""
    body = json.loads(answer.json["info"]) if "info" in answer.json else answer.json
    text = "; ".join(body.get("warnings", []))
    assert bool(text) == ("X-Lamplighter-Warning" in answer.headers)
    return text


def leave(server: Server, body: dict[str, Any], path: str = GENERATIONS) -> None:
    """Asks and goes away."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        time.sleep(0.01)


def crowd(server: Server, ask: Callable[[int, int], bool], generated: int = 6 * 8) -> None:
    """Six clients at once, each with eight requests one after another; every answer must be right.

    ask: makes the request of a client at a step, and says whether the answer is right.
    generated: images that come of it at least.
    """
    wrong: list[tuple[int, int]] = []

    def client(number: int) -> None:
        for step in range(8):
            if not ask(number, step):
                wrong.append((number, step))

    threads = [threading.Thread(target=client, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert server.metric("images_total") >= generated
    server.until(lambda: server.metric("images_in_work") == 0)
