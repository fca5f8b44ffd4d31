"""Load test of the server with normal, disconnecting and malformed clients.

    .venv/bin/python scripts/serve_load.py -m models/demo/bundle --clients 64 --minutes 10 --methods sjd,ar
    .venv/bin/python scripts/serve_load.py -m models/demo/bundle --batch-sizes 1,2,4,8 --minutes 1 --methods sjd --calm

starts `lamplighter serve`, compares every image with the one of `generate`, and prints responses, latencies and the
server's memory as a Markdown table, for every method and batch size. The exit code is 1 if a response was wrong.
`--calm`: all clients are normal.
"""

from __future__ import annotations

import argparse
import base64
import collections
import http.client
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GENERATIONS = "/v1/images/generations"
CAPTIONS = (
    "a red boat on the sea at dawn",
    "a white lighthouse at dusk",
    "a tent in the snow at night",
)
SEEDS = range(8)
NORMAL, DISCONNECTING = 0.8, 0.1  # shares of requests; the rest is malformed
# Malformed requests: body, headers, expected status.
MALFORMED: tuple[tuple[bytes, dict[str, str], int], ...] = (
    (b"{", {}, 400),
    (b'{"prompt": 3}', {}, 400),
    (b'{"prompt": "a", "n": -1}', {}, 400),
    (b'{"prompt": "a", "method": "magic"}', {}, 400),
    (b'{"prompt": "a", "size": "3x"}', {}, 400),
    (b'{"prompt": "a", "heigth": 256}', {}, 400),
    (b'{"prompt": "' + b"a" * 2_000_000 + b'"}', {}, 413),
    (b"prompt=a", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    (b"\xff\xfe\x00", {}, 400),
)


@dataclass
class Seen:
    """Observations of all clients of a run; guarded by `lock`."""

    latencies: list[float] = field(default_factory=list)
    counts: collections.Counter[str] = field(default_factory=collections.Counter)
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)  # seconds, MB
    lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, what: str) -> None:
        with self.lock:
            self.counts[what] += 1

    def complain(self, what: str) -> None:
        with self.lock:
            self.wrong.append(what)


class Server:
    """`lamplighter serve` on a port of its own."""

    def __init__(self, binary: Path, bundle: Path, arguments: list[str]) -> None:
        command = [str(binary), "serve", "-q", "-m", str(bundle), "--port", "0", *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        address = self.process.stdout.readline().strip().removeprefix("http://")
        if not address:
            raise SystemExit(f"{' '.join(command)}: ended before it listened")
        self.host, _, port = address.rpartition(":")
        self.port = int(port)

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=600)

    def memory(self) -> float:
        """Resident megabytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1000

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=120)


def expected_images(binary: Path, bundle: Path, method: str) -> dict[tuple[str, int], bytes]:
    """Image files of `generate` by caption and seed."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps({"prompt": c, "seed": s}) for c in CAPTIONS for s in SEEDS]
        prompts = Path(folder) / "prompts.jsonl"
        prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
        command = [binary, "generate", "-q", "-m", bundle, "--prompt-file", prompts, "-t", "1"]
        command += ["--method", method, "-o", f"{folder}/"]
        subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL)
        files = sorted(Path(folder).glob("*.png"))
        keys = [(caption, seed) for caption in CAPTIONS for seed in SEEDS]
        return {key: file.read_bytes() for key, file in zip(keys, files, strict=True)}


class Client(threading.Thread):
    """Generates, disconnects or sends malformed requests until the time is up."""

    def __init__(
        self, number: int, server: Server, method: str, images: dict[tuple[str, int], bytes],
        until: float, calm: bool, seen: Seen,
    ) -> None:  # fmt: skip
        super().__init__()
        self.random = random.Random(number)
        self.server, self.method, self.images = server, method, images
        self.until, self.calm, self.seen = until, calm, seen

    def run(self) -> None:
        while time.monotonic() < self.until:
            kind = 0.0 if self.calm else self.random.random()
            act = self.generate
            if kind > NORMAL:
                act = self.disconnect if kind <= NORMAL + DISCONNECTING else self.send_malformed
            try:
                act()
            except (OSError, http.client.HTTPException) as error:
                self.seen.complain(f"{act.__name__}: {type(error).__name__}: {error}")

    def generate(self) -> None:
        caption, seed = self.random.choice(CAPTIONS), self.random.choice(SEEDS)
        body = json.dumps({"prompt": caption, "seed": seed, "method": self.method})
        start, connection = time.monotonic(), self.server.connect()
        connection.request("POST", GENERATIONS, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        connection.close()
        if response.status == 429:
            self.seen.count("waited for a full queue")
            time.sleep(min(1.0, float(response.headers["Retry-After"])))
            return
        if response.status != 200:
            self.seen.complain(f"image: got {response.status} {content[:200]!r}, expected 200")
            return
        with self.seen.lock:
            self.seen.latencies.append(time.monotonic() - start)
        image = base64.b64decode(json.loads(content)["data"][0]["b64_json"])
        if image != self.images[caption, seed]:
            self.seen.complain(f"wrong image for {caption!r}, seed {seed}")

    def disconnect(self) -> None:
        """Disconnects after a while, before the end of the request or of the response."""
        stream = self.random.random() < 0.5
        body = json.dumps({"prompt": CAPTIONS[0], "method": self.method, "stream": stream}).encode()
        head = (
            f"POST {GENERATIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        data = f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
        if self.random.random() < 0.2:
            data = data[: self.random.randrange(len(data))]
        with socket.create_connection((self.server.host, self.server.port)) as connection:
            connection.sendall(data)
            time.sleep(self.random.random())
        self.seen.count("disconnected")

    def send_malformed(self) -> None:
        body, headers, status = self.random.choice(MALFORMED)
        connection = self.server.connect()
        try:
            connection.request(
                "POST", GENERATIONS, body, {"Content-Type": "application/json", **headers}
            )
            got = connection.getresponse().status
        except (BrokenPipeError, ConnectionResetError):
            got = 413  # the server closes the connection when a body is too long
        finally:
            connection.close()
        self.seen.count(f"refused with {status}")
        if got != status:
            self.seen.complain(f"{body[:40]!r}: got {got}, expected {status}")


def load(options: argparse.Namespace, method: str, batch: int) -> Seen:
    binary = options.build / "lamplighter"
    images = expected_images(binary, options.model, method)
    server = Server(binary, options.model, ["--batch-size", str(batch), "-t", str(options.threads)])
    seen, start = Seen(), time.monotonic()
    until = start + 60 * options.minutes
    parts = (server, method, images, until, options.calm, seen)
    clients = [Client(number, *parts) for number in range(options.clients)]
    for client in clients:
        client.start()
    while time.monotonic() < until:
        time.sleep(min(5.0, max(0.1, until - time.monotonic())))
        seen.memory.append((time.monotonic() - start, server.memory()))
    for client in clients:
        client.join()
    if code := server.end():
        seen.complain(f"the server ended with {code}")
    return seen


def row(method: str, batch: int, minutes: float, seen: Seen) -> str:
    times = sorted(seen.latencies)
    quantiles = statistics.quantiles(times, n=100) if len(times) > 1 else [float("nan")] * 99
    memory = [value for _, value in seen.memory]
    quarter = memory[len(memory) // 4] if memory else float("nan")
    cells = [
        method, str(batch), str(len(times)), f"{len(times) / (60 * minutes):.2f}",
        f"{quantiles[49]:.2f}", f"{quantiles[98]:.2f}", f"{quarter:.0f}, {memory[-1]:.0f}",
        str(len(seen.wrong)),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-m", "--model", type=Path, default=ROOT / "models" / "demo" / "bundle")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--methods", default="sjd")
    parser.add_argument("--batch-sizes", default="8")
    parser.add_argument("--threads", type=int, default=1, help="threads of the server")
    parser.add_argument("--calm", action="store_true", help="all clients are normal")
    options = parser.parse_args()
    print(
        "| method | batch size | images | images/s | p50 s | p99 s | MB after 1/4, at the end | wrong |"
    )
    print("|---|---|---|---|---|---|---|---|", flush=True)
    wrong: list[str] = []
    for method in options.methods.split(","):
        for batch in map(int, options.batch_sizes.split(",")):
            seen = load(options, method, batch)
            print(row(method, batch, options.minutes, seen), flush=True)
            for what, count in sorted(seen.counts.items()):
                print(f"{method}, {batch}: {count} times {what}", file=sys.stderr)
            wrong += seen.wrong
    for line in sorted(set(wrong))[:20]:
        print(f"error: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
