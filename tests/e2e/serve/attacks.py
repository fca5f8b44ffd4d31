"""Attacks on a server, and its memory under each of them.

    .venv/bin/python -m tests.e2e.serve.attacks --build build

prints a Markdown table: resident megabytes before an attack, at most during it, and ten seconds after it; and the
longest time in which another client got an answer of /health.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import gzip
import json
import socket
import struct
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.e2e.serve.client import DEMO, GENERATIONS, PROMPT, TXT2IMG, Server
from tests.e2e.serve.watch import Health, Memory, raise_descriptors, resident

HEAD = f"POST {GENERATIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PIECE = 1 << 16


def connect(server: Server, buffer: int | None = None) -> socket.socket:
    """A connection; `buffer`: bytes that the client's side holds of an answer."""
    made = socket.socket(socket.AF_INET)
    if buffer:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    made.settimeout(30)
    made.connect((server.host, server.port))
    return made


@contextlib.contextmanager
def connections(
    server: Server, count: int, buffer: int | None = None
) -> Iterator[list[socket.socket]]:
    """Many connections at once."""
    made = [connect(server, buffer) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.close()


def pour(connection: socket.socket, head: bytes, unit: bytes, megabytes: int) -> bytes:
    """Sends a unit over and over until that much is sent or the server refuses it. Returns its answer."""
    piece = unit * (PIECE // len(unit))
    with contextlib.suppress(OSError):
        connection.sendall(head)
        for _ in range(megabytes * 1_000_000 // len(piece)):
            connection.sendall(piece)
    with contextlib.suppress(OSError):
        return connection.recv(PIECE)
    return b""


def pour_once(server: Server, head: str, unit: bytes, megabytes: int = 100) -> bytes:
    with contextlib.closing(connect(server)) as connection:
        return pour(connection, head.encode(), unit, megabytes)


def endless_address(server: Server) -> bytes:
    return pour_once(server, "GET /", b"a")


def endless_header(server: Server) -> bytes:
    return pour_once(server, f"{HEAD}X: ", b"a")


def many_headers(server: Server) -> bytes:
    return pour_once(server, HEAD, b"a: b\r\n", 60)


def many_empty_lines(server: Server) -> bytes:
    return pour_once(server, "", b"\r\n", 60)


def endless_body(server: Server) -> bytes:
    return pour_once(
        server, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", b"400\r\n" + b" " * 1024 + b"\r\n"
    )


def endless_chunk_line(server: Server) -> bytes:
    return pour_once(server, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n1;", b"a")


def endless_extensions(server: Server) -> bytes:
    """A byte of a body in each chunk, and two hundred bytes beside it."""
    unit = b"1;a=" + b"b" * 200 + b"\r\n \r\n"
    return pour_once(server, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n", unit)


def endless_trailers(server: Server) -> bytes:
    return pour_once(server, f"{HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n", 60)


def packed_body(server: Server) -> bytes:
    # In pieces: one call would hold up the other threads of this process, whose waiting is measured.
    packer = zlib.compressobj(1, wbits=31)
    packed = b"".join(packer.compress(b" " * 1_000_000) for _ in range(500)) + packer.flush()
    head = f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    with contextlib.closing(connect(server)) as connection, contextlib.suppress(OSError):
        connection.sendall(head.encode() + packed)
        return connection.recv(PIECE)
    return b""


def many_ranges(server: Server) -> bytes:
    """Twenty at once ask for all of an answer many hundred times."""
    ranges = "bytes=" + ",".join(["0-"] * 2600)
    request = f"GET / HTTP/1.1\r\nHost: localhost\r\nRange: {ranges}\r\n\r\n"
    with connections(server, 20) as made:
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(request.encode())
        answers = b""
        for one in made:
            with contextlib.suppress(OSError):
                answers = one.recv(12)
        time.sleep(2)
        return answers


def bodies_that_never_end(server: Server) -> bytes:
    """Three hundred clients each send all of a large body but its last byte."""
    part = f"{HEAD}Content-Length: 1000000\r\n\r\n".encode() + b" " * 999_999
    with connections(server, 300) as made:
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(part)
        time.sleep(1)
    return b""


def heads_that_never_end(server: Server) -> bytes:
    """A thousand clients each send as many headers as they may, and no more."""
    part = HEAD.encode() + b"".join(b"h%d: %s\r\n" % (i, b"a" * 300) for i in range(90))
    with connections(server, 1000) as made:
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(part)
        time.sleep(1)
    return b""


def answers_that_nobody_reads(server: Server) -> bytes:
    """Images and pages that are asked for over and over."""
    answer = server.generate(response_format="url", seed=1)
    path = answer.json["data"][0]["url"].split(str(server.port), 1)[1]
    lines = "".join(f"GET {p} HTTP/1.1\r\nHost: localhost\r\n\r\n" for p in (path, "/") * 50)
    with connections(server, 300, buffer=2048) as made:
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(lines.encode())
        time.sleep(3)
    return b""


def idle_connections(server: Server) -> bytes:
    """1,500, while another client is answered."""
    with connections(server, 1500):
        started = time.monotonic()
        for _ in range(20):
            assert server.get("/health").status == 200
        assert time.monotonic() - started < 10
        return b"HTTP/1.1 200"


def deep_json(server: Server) -> bytes:
    answer = server.post(GENERATIONS, b"[" * 900_000)
    return f"HTTP/1.1 {answer.status}".encode()


def requests_at_once(server: Server, path: str, body: bytes, count: int) -> int:
    """Many clients send a request, and read nothing. Returns the status that another client gets meanwhile."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    text = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def send(one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.sendall(text)

    with connections(server, count, buffer=4096) as made:
        threads = [threading.Thread(target=send, args=(one,)) for one in made]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        status = server.get("/health").status
        time.sleep(5)
        return status


def many_values(server: Server) -> bytes:
    """A megabyte of JSON would take twenty in memory, in each of forty requests."""
    values = b",".join([b'{"":0}'] * 140_000)
    body = b'{"prompt": "a house", "alwayson_scripts": [' + values + b"]}"
    return f"HTTP/1.1 {requests_at_once(server, TXT2IMG, body, 40)}".encode()


def packed_bodies(server: Server) -> bytes:
    """A kilobyte each, which unpacks to a megabyte."""
    packed = gzip.compress(b'{"prompt": "' + b" " * 1_040_000 + b'"}', 9)
    head = f"{HEAD}Content-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    with connections(server, 600, buffer=4096) as made:
        for one in made:
            with contextlib.suppress(OSError):
                one.sendall(head.encode() + packed)
        status = server.get("/health").status
        time.sleep(3)
        return f"HTTP/1.1 {status}".encode()


def large_requests_in_work(server: Server) -> bytes:
    """They fill the queue with a megabyte each; others are still answered."""
    body = b'{"prompt": "a house", "styles": ["' + b"x" * 1_000_000 + b'"]}'
    return f"HTTP/1.1 {requests_at_once(server, TXT2IMG, body, 80)}".encode()


def packed_texts(server: Server) -> bytes:
    """Images of a few kilobytes whose texts unpack to 16 MB."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + content))
        return struct.pack(">I", len(content)) + kind + content + check

    texts = b"".join(
        chunk(b"zTXt", b"k%d\0\0" % i + zlib.compress(b"a" * 1_600_000, 9)) for i in range(10)
    )
    png = b"\x89PNG\r\n\x1a\n" + texts + chunk(b"IEND", b"")
    body = json.dumps({"image": base64.b64encode(png).decode()}).encode()
    return f"HTTP/1.1 {requests_at_once(server, '/sdapi/v1/png-info', body, 40)}".encode()


# Each with the start of the answer, where one is certain.
ATTACKS: dict[Callable[[Server], bytes], bytes] = {
    endless_address: b"HTTP/1.1 414",
    endless_header: b"HTTP/1.1 431",
    many_headers: b"HTTP/1.1 431",
    many_empty_lines: b"HTTP/1.1 400",
    endless_body: b"HTTP/1.1 413",
    endless_chunk_line: b"HTTP/1.1 400",
    endless_extensions: b"HTTP/1.1 431",
    endless_trailers: b"HTTP/1.1 431",
    packed_body: b"HTTP/1.1 413",
    deep_json: b"HTTP/1.1 400",
    many_ranges: b"HTTP/1.1 200",
    bodies_that_never_end: b"",
    heads_that_never_end: b"",
    answers_that_nobody_reads: b"",
    idle_connections: b"HTTP/1.1 200",
    many_values: b"HTTP/1.1 200",
    large_requests_in_work: b"HTTP/1.1 200",
    packed_bodies: b"HTTP/1.1 200",
    packed_texts: b"HTTP/1.1 200",
}


def start_server(build: Path, *arguments: str) -> Server:
    command = [str(build / "lamplighter"), "serve", "-q", "-m", str(DEMO), "--port", "0", "-t", "1"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    host, port = process.stdout.readline().strip().removeprefix("http://").rsplit(":", 1)
    return Server(process, host, int(port))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=Path("build"))
    options = parser.parse_args()
    raise_descriptors(4096)
    print("| attack | MB before | most | after | answer | /health s |")
    print("|---|---|---|---|---|---|", flush=True)
    for attack in ATTACKS:
        server = start_server(options.build)
        answer = b""
        server.post(GENERATIONS, json.dumps({"prompt": PROMPT, "seed": 1}))
        with Memory(server) as memory, Health(server) as health:
            try:
                answer = attack(server)
            except (OSError, AssertionError) as error:
                answer = repr(error)[:60].encode()
        time.sleep(10)
        after = resident(server) if server.process.poll() is None else float("nan")
        line = answer.split(b"\r\n")[0].decode(errors="replace")
        print(
            f"| {attack.__name__} | {memory.before:.0f} | {memory.most:.0f} | {after:.0f} | {line} "
            f"| {health.slowest:.2f} |",
            flush=True,
        )
        server.process.kill()
        server.process.wait()


if __name__ == "__main__":
    main()
