"""`serve`: pictures over HTTP, in the forms of OpenAI's API and of the web UI's."""

from __future__ import annotations

import base64
import contextlib
import gzip
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import SIDE, Cli

GENERATIONS = "/v1/images/generations"
TXT2IMG = "/sdapi/v1/txt2img"
PROMPT = "a house"


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
    def pictures(self) -> list[bytes]:
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

    def draw(self, **fields: object) -> Answer:
        """A picture by OpenAI's API."""
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


@pytest.fixture(scope="module")
def start(
    lamplighter: Path, drafter_bundle: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Start]:
    """Starts servers, which end with the module."""
    processes: list[subprocess.Popen[str]] = []

    def run(
        *arguments: object, model: Path = drafter_bundle, env: dict[str, str] | None = None
    ) -> Server:
        environment = {**os.environ, **(env or {})}
        environment.pop("LAMPLIGHTER_MODEL", None)
        command = [str(lamplighter), "serve", "-m", str(model), "--port", "0", *map(str, arguments)]
        log = tmp_path_factory.mktemp("serve") / "log"
        with log.open("w") as errors:
            process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
            )
        processes.append(process)
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line.startswith("http://"), log.read_text()
        host, port = line.removeprefix("http://").rsplit(":", 1)
        process.args = [*command, log]  # for tests of what is printed
        return Server(process, host.strip("[]"), int(port))

    yield run
    for process in processes:
        process.kill()
        process.wait()


def log_of(server: Server) -> str:
    """What a server printed for people."""
    return Path(server.process.args[-1]).read_text()  # type: ignore[index]


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    """One with small limits."""
    return start("-t", 1, "--queue", 40, "--max-pictures", 4, "--max-body", 20000, "-v")


@pytest.fixture
def drawn(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> Callable[..., bytes]:
    """The PNG file that `generate` writes."""

    def run(*arguments: object) -> bytes:
        result = cli(
            "generate", "-p", PROMPT, "-t", 1, "-o", "one.png", "--overwrite", *arguments,
            model=drafter_bundle,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        return (tmp_path / "one.png").read_bytes()

    return run


def error_of(answer: Answer, status: int) -> dict[str, Any]:
    """The error of an answer, which has OpenAI's form."""
    assert answer.status == status, answer.body
    error = answer.json["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert "\n" not in error["message"]
    return error  # type: ignore[no-any-return]


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
    wrong: list[object] = []

    def client(turn: int) -> None:
        for step in range(8):
            number, seed = (turn + step) % len(kinds), 1 + (turn * step) % 2
            if (turn + 3 * step) % 5 == 0:
                leave(server, {"prompt": PROMPT, "n": 2, **kinds[number]})
            answer = server.draw(seed=seed, **kinds[number])
            if answer.pictures != [expected[number, seed]]:
                wrong.append((number, seed))

    threads = [threading.Thread(target=client, args=(turn,)) for turn in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert server.metric("pictures_total") >= 6 * 8
    server.until(lambda: server.metric("pictures_in_work") == 0)


def leave(server: Server, body: dict[str, Any], path: str = GENERATIONS) -> None:
    """Asks and goes away."""
    text = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text)
        time.sleep(0.01)


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


DEMO = Path(__file__).resolve().parents[2] / "models" / "demo" / "bundle"


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


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"[" * 10_000,
        b'{"a":' * 3_000,
        b'{"prompt": "\xff\xfe"}',
        b'{"prompt": "a\\u0000"}',
        b'{"prompt": "a", "prompt": "b"}',
        b"\x00" * 100,
        {"prompt": ""},
        {"prompt": 7},
        {"prompt": ["a"]},
        {"prompt": "a", "n": 5},
        {"prompt": "a", "n": 10**30},
        {"prompt": "a", "n": -1},
        {"prompt": "a", "n": "2"},
        {"prompt": "a", "size": "64x64"},
        {"prompt": "a", "size": "99999999999x1"},
        {"prompt": "a", "seed": 1.5},
        {"prompt": "a", "temperature": 1e999},
        {"prompt": "a", "top_p": 0},
        {"prompt": "a", "tree": "/etc/passwd"},
        {"prompt": "a", "method": "eagle", "tree": "chain-100000"},
        {"prompt": "a", "method": "eagle", "tree_paths": [[9] * 500]},
        {"prompt": "a", "method": "eagle", "drafter": "../../x"},
        {"prompt": "a", "neighbours": "x.npy"},
        {"prompt": "a", "method": "none"},
        {"prompt": "a", "stream": "yes"},
        {"prompt": "a", "output": "/tmp/x.png"},
        {"prompt": "a" * 9000},
    ],
)
def test_hostile_bodies_are_refused(server: Server, body: Any) -> None:
    if isinstance(body, dict) and body.get("temperature") == float("inf"):
        body = b'{"prompt": "a", "temperature": 1e999}'
    assert error_of(server.post(GENERATIONS, body), 400)["type"] == "invalid_request_error"
    if not (isinstance(body, dict) and set(body) & {"n", "size", "stream", "output", "tree_paths"}):
        answer = server.post(TXT2IMG, body)
        assert answer.status == 400 and answer.json["detail"]
    assert server.get("/health").status == 200


def test_other_requests_that_are_wrong(server: Server) -> None:
    plain = server.ask("POST", GENERATIONS, '{"prompt": "a"}', {"Content-Type": "text/plain"})
    error_of(plain, 415)
    error_of(server.post(GENERATIONS, {"prompt": "a" * 30000}), 413)
    error_of(server.get("/nothing"), 404)
    error_of(server.get("/../../etc/passwd"), 404)
    error_of(server.get("/v1/images/results/" + "0" * 32 + ".png"), 404)
    error_of(server.get("/v1/images/results/..%2f..%2fx.png"), 404)
    assert error_of(server.draw(model="other"), 404)["code"] == "model_not_found"
    assert server.get(GENERATIONS).status in (404, 405)


def test_bodies_that_are_larger_than_they_look(server: Server) -> None:
    bomb = gzip.compress(b'{"prompt": "' + b"a" * 50_000_000)
    assert len(bomb) > 20_000
    bomb = gzip.compress(b'{"prompt": "' + b"a" * 10_000_000)
    assert len(bomb) < 20_000
    kind = {"Content-Type": "application/json"}
    error_of(server.ask("POST", GENERATIONS, bomb, {**kind, "Content-Encoding": "gzip"}), 413)
    parts = b'--x\r\nContent-Disposition: form-data; name="a"\r\n\r\nb\r\n--x--\r\n'
    form = {"Content-Type": "multipart/form-data; boundary=x"}
    error_of(server.ask("POST", GENERATIONS, parts, form), 415)
    with socket.create_connection((server.host, server.port), timeout=60) as endless:
        head = f"POST {GENERATIONS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        endless.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(30):
            endless.sendall(b"400\r\n" + b" " * 0x400 + b"\r\n")
        assert endless.recv(12) == b"HTTP/1.1 413"
    assert server.draw(seed=1).status == 200


def test_clients_that_are_slow_or_speak_no_http(server: Server) -> None:
    lines = [
        b"\x16\x03\x01\x02",
        b"GET",
        b"POST / HTTP/1.1\r\nContent-Length: 50\r\n\r\nx",
        b"\r\n" * 50,
    ]
    slow = [socket.create_connection((server.host, server.port)) for _ in range(20)]
    for number, connection in enumerate(slow):
        connection.sendall(lines[number % len(lines)])
    assert server.draw(seed=1).status == 200
    for connection in slow:
        connection.close()
    assert server.draw(seed=1).status == 200


def test_pictures_by_url_live_for_a_while(start: Start) -> None:
    server = start("-t", 1, "--url-lifetime", 1)
    entry = server.draw(response_format="url", seed=3).json["data"][0]
    assert "b64_json" not in entry and entry["expires_at"] >= int(time.time())
    path = entry["url"].split(str(server.port), 1)[1]
    picture = server.get(path)
    assert picture.headers["Content-Type"] == "image/png"
    assert [picture.body] == server.draw(seed=3).pictures
    server.until(lambda: server.get(path).status == 404)


def test_a_key_is_asked_for(start: Start, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    for server in (
        start("-t", 1, "--api-key", tmp_path / "key"),
        start("-t", 1, env={"LAMPLIGHTER_API_KEY": "secret"}),
    ):
        assert error_of(server.draw(), 401)["code"] == "invalid_api_key"
        wrong = server.post(GENERATIONS, {"prompt": PROMPT}, Authorization="Bearer secre")
        error_of(wrong, 401)
        error_of(server.get("/v1/models"), 401)
        error_of(server.get("/metrics"), 401)
        assert server.get("/health").status == 200
        right = server.post(GENERATIONS, {"prompt": PROMPT}, Authorization="Bearer secret")
        assert right.status == 200


def test_other_sites_and_logs_only_when_asked(start: Start, server: Server) -> None:
    assert server.draw(seed=1).status == 200
    assert "Access-Control-Allow-Origin" not in server.get("/v1/models").headers
    assert GENERATIONS in log_of(server) and PROMPT not in log_of(server)
    asked = start("-t", 1, "--cors", "https://example.org", "--log-prompts")
    assert asked.draw().status == 200
    assert PROMPT in log_of(asked)
    headers = asked.get("/v1/models").headers
    assert headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert asked.ask("OPTIONS", GENERATIONS).status == 204


def test_models_and_metrics(server: Server) -> None:
    (model,) = server.get("/v1/models").json["data"]
    assert model["object"] == "model" and model["sizes"] == [f"{SIDE}x{SIDE}"]
    assert server.draw(model=model["id"]).status == 200
    before = server.metric("pictures_total"), server.metric("tokens_total")
    server.draw(method="sjd", n=2)
    assert server.metric("pictures_total") == before[0] + 2
    assert server.metric("tokens_total") == before[1] + 2 * 16
    assert server.metric("queue_seconds_count") == before[0] + 2


def test_several_models(start: Start, cli: Cli) -> None:
    server = start("-t", 1, "-m", DEMO)
    first, second = (model["id"] for model in server.get("/v1/models").json["data"])
    assert server.draw(method="sjd").json["model"] == first
    answer = server.draw(method="sjd", model=second)
    assert answer.json["model"] == second and answer.json["size"] == "256x256"
    settings = {"override_settings": {"sd_model_checkpoint": second}}
    webui = server.post(TXT2IMG, {"prompt": PROMPT, "method": "sjd", **settings})
    assert json.loads(webui.json["info"])["sd_model_name"] == second
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    twice = cli("serve", "--port", 0, "-m", DEMO, "-m", DEMO)
    assert twice.returncode == 2 and twice.stderr.count("\n") == 1


def test_the_web_uis_form(server: Server, drawn: Callable[..., bytes]) -> None:
    answer = server.post(
        TXT2IMG,
        {
            "prompt": PROMPT, "negative_prompt": "", "seed": 5, "steps": 20, "width": SIDE,
            "height": SIDE, "batch_size": 2, "cfg_scale": 3, "sampler_name": "Euler a",
            "method": "sjd",
        },
    )  # fmt: skip
    assert answer.status == 200, answer.body
    pictures = [base64.b64decode(image) for image in answer.json["images"]]
    flags = ("--method", "sjd", "--cfg-scale", 3)
    assert pictures == [drawn("-s", 5, *flags), drawn("-s", 6, *flags)]
    info = json.loads(answer.json["info"])
    assert info["all_seeds"] == [5, 6] and info["infotexts"][0].startswith(PROMPT)
    assert server.get("/sdapi/v1/progress").json["progress"] == 0
    (model,) = server.get("/sdapi/v1/sd-models").json
    options = server.get("/sdapi/v1/options").json
    assert options["sd_model_checkpoint"] == model["title"]
    checkpoint = {"sd_model_checkpoint": model["title"]}
    assert server.post("/sdapi/v1/options", checkpoint).status == 200
    assert server.post("/sdapi/v1/options", {"sd_model_checkpoint": "x"}).status == 400
    random = [
        json.loads(server.post(TXT2IMG, {"prompt": PROMPT, "seed": -1}).json["info"])["seed"]
        for _ in range(2)
    ]
    assert random[0] != random[1]


def events_of(body: bytes) -> list[tuple[str, Any]]:
    """Names and data of server-sent events."""
    events = []
    for block in body.decode().strip().split("\n\n"):
        name, data = block.split("\n")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@pytest.mark.parametrize("method", ["sjd", "zipar"])
def test_a_stream_tells_of_rows_and_pictures(start: Start, method: str) -> None:
    server = start("-t", 1, model=DEMO)
    answer = server.draw(seed=7, n=2, stream=True, method=method)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/event-stream"
    events = events_of(answer.body)
    assert all(name == data["type"] for name, data in events)
    whole = server.draw(seed=7, n=2, method=method).pictures
    for index in (0, 1):
        mine = [data for _, data in events if data["index"] == index]
        rows = [data["rows"] for data in mine if data["type"].endswith("progress")]
        assert rows == sorted(set(rows)) and rows[-1] == 16
        committed = [n for data in mine for n in data.get("committed", [])]
        assert 1 + sum(committed) == 256  # the first token comes with the prompt
        assert mine[-1]["type"] == "image_generation.completed"
        assert base64.b64decode(mine[-1]["b64_json"]) == whole[index]
        assert mine[-1]["usage"]["output_tokens"] == 256


@pytest.mark.parametrize("method", ["ar", "zipar"])  # of which one draws rows side by side
def test_a_stream_shows_what_is_there(start: Start, method: str) -> None:
    server = start("-t", 1, model=DEMO)
    events = events_of(server.draw(seed=7, stream=True, partial_images=3, method=method).body)
    partial = [data for name, data in events if name.endswith("partial_image")]
    assert 1 <= len(partial) <= 3  # a picture that is complete overtakes them
    numbers = [data["partial_image_index"] for data in partial]
    assert numbers == sorted(set(numbers)) and numbers[-1] <= 2
    assert all(base64.b64decode(data["b64_json"])[:4] == b"\x89PNG" for data in partial)


def test_a_stream_that_fails_says_so(start: Start) -> None:
    server = start("-t", 1, model=DEMO)
    events = events_of(server.draw(method="ar", stream=True, deadline=0.02).body)
    assert events[-1][0] == "error"
    assert events[-1][1]["error"]["code"] == "deadline_exceeded"
    leave(server, {"prompt": PROMPT, "method": "ar", "stream": True})
    server.until(lambda: server.metric("pictures_in_work") == 0)
    assert server.metric("pictures_total") == 0


def test_flags_are_checked_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for code, *arguments in (
        (2, "--port", 70000),
        (2, "--queue", -1),
        (2, "--deadline", 0),
        (2, "--host", "203.0.113.7"),
        (3, "--api-key", "missing"),
        (3, "--api-key", "empty"),
        (2, "--method", "none"),
        (4, "-m", "missing"),
    ):
        result = cli("serve", *arguments)
        assert result.returncode == code, result.stderr
        assert result.stderr.startswith("lamplighter: error: ")
        assert result.stderr.count("\n") == 1


def test_curl(server: Server) -> None:
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("no curl")
    body = json.dumps({"prompt": PROMPT, "seed": 7})
    result = subprocess.run(
        [
            curl, "-sf", "-H", "Content-Type: application/json", "-d", body,
            f"http://{server.host}:{server.port}{GENERATIONS}",
        ],
        capture_output=True, check=True,
    )  # fmt: skip
    assert Answer(200, {}, result.stdout).pictures == server.draw(seed=7).pictures


def test_aiperf(start: Start, tmp_path: Path) -> None:
    """NVIDIA's load generator, with a tokenizer of words where it would fetch one."""
    aiperf = shutil.which("aiperf")
    if aiperf is None:
        pytest.skip("no aiperf")
    server = start("-t", 1, "--method", "sjd")
    revision = "0" * 40
    hub = tmp_path / "hub" / "models--test--words"
    files = hub / "snapshots" / revision
    files.mkdir(parents=True)
    (hub / "refs").mkdir()
    (hub / "refs" / "main").write_text(revision)
    words = {"type": "WordLevel", "vocab": {"[UNK]": 0}, "unk_token": "[UNK]"}
    tokenizer = {"version": "1.0", "added_tokens": [], "model": words}
    (files / "tokenizer.json").write_text(json.dumps(tokenizer))
    kind = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (files / "tokenizer_config.json").write_text(json.dumps(kind))
    (files / "config.json").write_text(json.dumps({"model_type": "t5"}))
    (tmp_path / "captions.jsonl").write_text(json.dumps({"text": PROMPT}) + "\n")
    command = [
        aiperf, "profile", "--model", server.get("/v1/models").json["data"][0]["id"],
        "--endpoint-type", "image_generation", "--url", f"http://{server.host}:{server.port}",
        "--request-count", "6", "--concurrency", "2", "--tokenizer", "test/words",
        "--input-file", "captions.jsonl", "--custom-dataset-type", "single_turn",
        "--extra-inputs", f"size:{SIDE}x{SIDE}", "--ui", "none", "--artifact-dir", "out",
    ]  # fmt: skip
    environment = {**os.environ, "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert server.metric("pictures_total") >= 6
    (measured,) = (tmp_path / "out").rglob("profile_export_aiperf.json")
    assert json.loads(measured.read_text())["request_count"]["avg"] == 6


def test_openais_client(server: Server) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(
        base_url=f"http://{server.host}:{server.port}/v1", api_key="none", max_retries=0
    )
    (model,) = client.models.list().data
    answer = client.images.generate(
        model=model.id, prompt=PROMPT, n=2, size=f"{SIDE}x{SIDE}", extra_body={"seed": 7}
    )
    pictures = [base64.b64decode(picture.b64_json) for picture in answer.data]
    assert pictures == server.draw(seed=7, n=2).pictures
    with pytest.raises(openai.BadRequestError):
        client.images.generate(model=model.id, prompt="")
    types = {
        event.type for event in client.images.generate(model=model.id, prompt=PROMPT, stream=True)
    }
    assert "image_generation.completed" in types
