"""`serve` under attack: memory stays bounded, other clients are answered, and the server ends when it is asked to."""

from __future__ import annotations

import base64
import contextlib
import json
import signal
import socket
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.serve.attacks import ATTACKS, HEAD, connect, connections
from tests.e2e.serve.client import (
    DEMO,
    GENERATIONS,
    PROMPT,
    TXT2IMG,
    Server,
    Start,
)
from tests.e2e.serve.watch import Health, Memory, raise_descriptors, resident, status_of
from tests.e2e.support import Cli

IMG2IMG = "/sdapi/v1/img2img"
GROWTH = 200  # megabytes: what the limits of all connections together allow, and what the allocator keeps
PROMPTLY = 20  # seconds, for /health; the client runs beside the attack, and others on the machine
FAREWELL = 9  # seconds: five for answers, and some for a slow machine


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_memory_is_bounded_and_others_are_answered(
    open_server: Server, attack: Callable[[Server], bytes]
) -> None:
    if not raise_descriptors(2048):
        pytest.skip("too few descriptors")
    with Memory(open_server) as memory, Health(open_server) as health:
        answer = attack(open_server)
    assert answer.startswith(ATTACKS[attack])
    assert memory.most - memory.before < GROWTH
    assert 0 < health.slowest < PROMPTLY
    assert open_server.get("/health").status == 200


def test_a_stranger_without_the_key_is_refused_before_the_body(start: Start) -> None:
    server = start("-t", 1, env={"LAMPLIGHTER_API_KEY": "secret"})
    with contextlib.closing(connect(server)) as connection:
        connection.sendall(f"{HEAD}Content-Length: 1000000\r\n\r\n".encode())
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_idle_connections_cost_no_threads(open_server: Server) -> None:
    if not raise_descriptors(2048):
        pytest.skip("too few descriptors")
    threads, memory = status_of(open_server, "Threads"), resident(open_server)
    with connections(open_server, 1500):
        assert open_server.get("/health").status == 200
        assert status_of(open_server, "Threads") <= threads + 2
        assert resident(open_server) - memory < 20


def test_an_image_of_a_few_pixels_takes_little_room(
    start: Start, family: Callable[[str], Path]
) -> None:
    """Its file is a third of a megabyte, and unpacks to three hundred."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(1_000_000)) for _ in range(300)) + packer.flush()
    head = struct.pack(">IIBBBBB", 64, 48, 8, 2, 0, 0, 0)
    image = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")
    server = start("-t", 1, model=family("chameleon"))
    body = {"prompt": PROMPT, "init_images": [base64.b64encode(image).decode()], "keep_rows": 1}
    assert server.post(IMG2IMG, {**body, "init_images": ["x"]}).status == 400
    with Memory(server) as memory:
        answer = server.post(IMG2IMG, body)
    assert answer.status == 400 and "more data than its pixels need" in answer.json["detail"]
    assert memory.most - memory.before < 60


def answers_to(server: Server, text: bytes) -> bytes:
    """All that a server sends on a connection that the client ends."""
    with contextlib.closing(connect(server)) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def statuses(answers: bytes) -> list[int]:
    return [int(part[:3]) for part in answers.split(b"HTTP/1.1 ")[1:]]


GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_requests_in_a_row_are_answered_in_order(open_server: Server) -> None:
    text = json.dumps({"prompt": 7}).encode()
    post = f"{HEAD}Content-Length: {len(text)}\r\n\r\n".encode() + text
    assert statuses(answers_to(open_server, GET + post + GET * 3)) == [200, 400, 200, 200, 200]
    chunks = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()
    chunks += b"%x\r\n%s\r\n0\r\n\r\n" % (len(text), text)
    assert statuses(answers_to(open_server, chunks + GET)) == [400, 200]


@pytest.mark.parametrize(
    "headers",
    [
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: -5",
        "Content-Length: 0x5",
        "Content-Length: 5 5",
        "Content-Length:",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding\t: chunked",
        "X: a\r\n Transfer-Encoding: chunked",
        "X: a\rTransfer-Encoding: chunked",
        "Content-Length: 5\x00",
        "Host: localhost",
    ],
)
def test_requests_that_two_servers_would_read_differently(
    open_server: Server, headers: str
) -> None:
    """One answer, and the connection ends: what follows is no request."""
    request = f"{HEAD}{headers}\r\n\r\n0\r\n\r\n".encode() + GET
    answers = answers_to(open_server, request)
    assert len(statuses(answers)) == 1 and statuses(answers)[0] in (400, 501), answers


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /health HTTP/2.0", 505),
        ("GET /health HTTP/1.2", 505),
        ("GET /health SMTP", 400),
        ("GET /health", 400),
        ("GET health HTTP/1.1", 400),
        ("GET /%zz HTTP/1.1", 400),
        ("GET /a b HTTP/1.1", 400),
        ("G(T /health HTTP/1.1", 400),
        ("GET /%00 HTTP/1.1", 404),
        ("GET http://localhost/health HTTP/1.1", 200),
        ("GET http://evil.example/health HTTP/1.1", 403),
        ("GET HTTP://evil.example?/health HTTP/1.1", 403),
        ("DELETE /health HTTP/1.1", 405),
        ("HEAD /health HTTP/1.1", 200),
    ],
)
def test_request_lines(open_server: Server, request_line: str, status: int) -> None:
    answer = answers_to(open_server, f"{request_line}\r\nHost: localhost\r\n\r\n".encode())
    assert statuses(answer) == [status]
    assert (request_line.startswith("HEAD") and answer.endswith(b"\r\n\r\n")) or b"{" in answer


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [("DELETE", "/health", "GET, HEAD"), ("GET", GENERATIONS, "POST"), ("PUT", TXT2IMG, "POST")],
)
def test_other_methods_are_named(open_server: Server, method: str, path: str, allowed: str) -> None:
    answer = open_server.ask(method, path)
    assert answer.status == 405 and answer.headers["Allow"] == allowed
    assert f"expected {allowed}".encode() in answer.body


def test_a_second_server_does_not_share_the_port(open_server: Server, cli: Cli) -> None:
    result = cli("serve", "--port", open_server.port)
    assert result.returncode == 2
    assert "another program uses the port" in result.stderr and result.stderr.count("\n") == 1


def drip(server: Server, text: bytes, stop: threading.Event) -> None:
    """Sends a byte a second."""
    with contextlib.suppress(OSError), contextlib.closing(connect(server)) as connection:
        for i in range(len(text)):
            connection.sendall(text[i : i + 1])
            if stop.wait(1):
                return


def ends_in_time(server: Server) -> None:
    started = time.monotonic()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0
    assert time.monotonic() - started < FAREWELL


def test_slow_senders_do_not_keep_the_server(start: Start) -> None:
    server = start("-t", 1)
    stop = threading.Event()
    texts = [GET, f"{HEAD}Content-Length: 50\r\n\r\n".encode() + b" " * 50]
    threads = [threading.Thread(target=drip, args=(server, text, stop)) for text in texts * 20]
    for thread in threads:
        thread.start()
    with connections(server, 20):
        time.sleep(2)
        ends_in_time(server)
    stop.set()
    for thread in threads:
        thread.join()


def test_slow_readers_do_not_keep_the_server(start: Start) -> None:
    server = start("-t", 1)
    body = json.dumps({"prompt": PROMPT, "n": 4, "stream": True}).encode()
    request = f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body
    with connections(server, 8, buffer=1024) as made:
        for one in made:
            one.sendall(request)
        server.until(lambda: server.metric("images_total") >= 8)
        ends_in_time(server)


def test_a_request_that_takes_too_long_is_ended(open_server: Server) -> None:
    with contextlib.closing(connect(open_server)) as connection:
        connection.sendall(b"GET /health HT")
        started = time.monotonic()
        assert connection.recv(12) == b"HTTP/1.1 408"
        assert 5 < time.monotonic() - started < 20


def test_a_log_that_nobody_reads_stops_nothing(lamplighter: Path) -> None:
    """A full pipe takes no more lines: they are dropped and counted."""
    command = [str(lamplighter), "serve", "-m", str(DEMO), "--port", "0", "-t", "1", "-v"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    try:
        host, port = process.stdout.readline().strip().removeprefix("http://").rsplit(":", 1)
        server = Server(process, host, int(port))
        assert len(statuses(answers_to(server, GET * 6000))) == 6000
        threading.Timer(2, process.send_signal, (signal.SIGTERM,)).start()
        log = process.stderr.read()
        assert "lines were dropped" in log and "GET /health 200" in log and "stopping" in log
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def test_memory_is_flat(open_server: Server) -> None:
    """Three thousand requests leave nothing."""
    connection = open_server.connect()

    def ask(count: int) -> None:
        for number in range(count):
            path = ("/health", "/v1/models", "/nothing", "/metrics")[number % 4]
            connection.request("GET", path)
            connection.getresponse().read()

    ask(500)
    before = resident(open_server)
    ask(3000)
    assert resident(open_server) - before < 5
    connection.close()


def test_a_client_may_ask_before_it_sends(open_server: Server) -> None:
    """curl does with bodies above a megabyte."""
    body = json.dumps({"prompt": PROMPT, "seed": 1}).encode()
    with contextlib.closing(connect(open_server)) as connection:
        head = f"{HEAD}Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(body)
        assert connection.recv(12) == b"HTTP/1.1 200"
