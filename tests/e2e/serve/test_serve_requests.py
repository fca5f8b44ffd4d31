"""`serve`: what is refused, keys, images by url, models and metrics."""

from __future__ import annotations

import base64
import gzip
import io
import json
import signal
import socket
import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.e2e.families import simplear
from tests.e2e.serve.client import (
    DEMO,
    GENERATIONS,
    PROMPT,
    TXT2IMG,
    Server,
    Start,
    error_of,
    log_of,
)
from tests.e2e.support import SIDE, Cli, pixels


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("/images/generations", "/v1/images/generations"),
        ("/v1/v1/models", "/v1/models"),
        ("/v1/models/", "/v1/models"),
        ("//txt2img", "/sdapi/v1/txt2img"),
    ],
)
def test_a_wrong_base_address_gets_a_hint(server: Server, asked: str, meant: str) -> None:
    assert f"did you mean {meant}?" in error_of(server.get(asked), 404)["message"]
    assert "did you mean" not in error_of(server.get("/v1/nothing"), 404)["message"]


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
        {"prompt": "a", "size": "64x"},
        {"prompt": "a", "size": "99999999999x1"},
        {"prompt": "a", "seed": 1.5},
        {"prompt": "a", "temperature": 1e999},
        {"prompt": "a", "cfg_scale": 3e38},
        {"prompt": "a", "cfg_scale": 1e308},
        {"prompt": "a", "cfg_scale": -1},
        {"prompt": "a", "seed": -2},
        {"prompt": "a", "top_p": 0},
        {"prompt": "a", "tree": "/etc/passwd"},
        {"prompt": "a", "method": "eagle", "tree": "chain-100000"},
        {"prompt": "a", "method": "eagle", "tree_paths": [[9] * 500]},
        {"prompt": "a", "method": "eagle", "drafter": "../../x"},
        {"prompt": "a", "neighbours": "x.npy"},
        {"prompt": "a", "method": "none"},
        {"prompt": "a", "stream": "yes"},
        {"prompt": "a", "heigth": 256},
        {"prompt": "a" * 9000},
    ],
)
def test_hostile_bodies_are_refused(server: Server, body: Any) -> None:
    if isinstance(body, dict) and body.get("temperature") == float("inf"):
        body = b'{"prompt": "a", "temperature": 1e999}'
    assert error_of(server.post(GENERATIONS, body), 400)["type"] == "invalid_request_error"
    if not (isinstance(body, dict) and set(body) & {"n", "size", "stream", "heigth", "tree_paths"}):
        answer = server.post(TXT2IMG, body)
        assert answer.status == 400 and answer.json["detail"]
    assert server.get("/health").status == 200


def test_other_requests_that_are_wrong(server: Server) -> None:
    plain = server.ask("POST", GENERATIONS, '{"prompt": "a"}', {"Content-Type": "text/plain"})
    error_of(plain, 415)
    loud = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.ask("POST", GENERATIONS, json.dumps({"prompt": "a"}), loud).status == 200
    error_of(server.post(GENERATIONS, {"prompt": "a" * 30000}), 413)
    error_of(server.get("/nothing"), 404)
    error_of(server.get("/../../etc/passwd"), 404)
    error_of(server.get("/v1/images/results/" + "0" * 32 + ".png"), 404)
    error_of(server.get("/v1/images/results/..%2f..%2fx.png"), 404)
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
        head = (
            f"POST {GENERATIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        endless.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(30):
            endless.sendall(b"400\r\n" + b" " * 0x400 + b"\r\n")
        assert endless.recv(12) == b"HTTP/1.1 413"
    assert server.generate(seed=1).status == 200


def test_a_request_of_the_largest_size_is_answered(start: Start) -> None:
    """Beside another of its kind, however it comes."""
    largest = 70_000_000
    server = start("-t", 1, "--max-body", largest)
    body = json.dumps({"prompt": PROMPT, "seed": 1}).encode().ljust(largest)
    kind = {"Content-Type": "application/json"}
    pieces = (body[i : i + 1_000_000] for i in range(0, largest, 1_000_000))
    with socket.create_connection((server.host, server.port), timeout=60) as beside:
        head = (
            f"POST {GENERATIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        )
        beside.sendall(f"{head}Content-Length: {largest}\r\n\r\n".encode() + body[:-1])
        for sent, more in (
            (body, {}),
            (pieces, {}),
            (gzip.compress(body), {"Content-Encoding": "gzip"}),
        ):
            assert server.ask("POST", GENERATIONS, sent, {**kind, **more}).status == 200
        error_of(
            server.ask("POST", GENERATIONS, b"", {**kind, "Content-Length": str(largest + 1)}), 413
        )
        beside.sendall(b" ")
        assert beside.recv(12) == b"HTTP/1.1 200"


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
    assert server.generate(seed=1).status == 200
    for connection in slow:
        connection.close()
    assert server.generate(seed=1).status == 200


def test_a_request_without_a_length_has_no_body(server: Server) -> None:
    head = (
        f"POST {GENERATIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\r\n"
    )
    with socket.create_connection((server.host, server.port), timeout=4) as connection:
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 400"


def test_images_by_url_live_for_a_while(start: Start) -> None:
    server = start("-t", 1, "--url-lifetime", 1)
    entry = server.generate(response_format="url", seed=3).json["data"][0]
    assert "b64_json" not in entry and entry["expires_at"] >= int(time.time())
    path = entry["url"].split(str(server.port), 1)[1]
    image = server.get(path)
    assert image.headers["Content-Type"] == "image/png"
    assert [image.body] == server.generate(seed=3).images
    server.until(lambda: server.get(path).status == 404)


def test_an_old_client_gets_an_address(server: Server) -> None:
    body = json.dumps({"prompt": PROMPT, "response_format": "url"}).encode()
    head = f"POST {GENERATIONS} HTTP/1.0\r\nContent-Type: application/json\r\n"
    with socket.create_connection((server.host, server.port), timeout=60) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    (entry,) = json.loads(answer.partition(b"\r\n\r\n")[2])["data"]
    assert entry["url"].startswith(f"http://{server.host}:{server.port}/")


def test_a_key_is_asked_for(start: Start, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")
    for server in (
        start("-t", 1, "--api-key", tmp_path / "key"),
        start("-t", 1, env={"LAMPLIGHTER_API_KEY": "secret"}),
    ):
        assert error_of(server.generate(), 401)["code"] == "invalid_api_key"
        wrong = server.post(GENERATIONS, {"prompt": PROMPT}, Authorization="Bearer secre")
        error_of(wrong, 401)
        error_of(server.get("/v1/models"), 401)
        error_of(server.get("/metrics"), 401)
        assert server.get("/health").status == 200
        right = server.post(GENERATIONS, {"prompt": PROMPT}, Authorization="Bearer secret")
        assert right.status == 200


def test_other_sites_and_logs_only_when_asked(start: Start, server: Server) -> None:
    assert server.generate(seed=1).status == 200
    assert "Access-Control-Allow-Origin" not in server.get("/v1/models").headers
    server.until(lambda: GENERATIONS in log_of(server))
    assert PROMPT not in log_of(server)
    asked = start("-t", 1, "--cors", "https://example.org", "--log-prompts")
    assert asked.generate().status == 200
    asked.until(lambda: PROMPT in log_of(asked))
    headers = asked.get("/v1/models").headers
    assert headers["Access-Control-Allow-Origin"] == "https://example.org"
    assert asked.ask("OPTIONS", GENERATIONS).status == 204


def test_models_and_metrics(server: Server) -> None:
    (model,) = server.get("/v1/models").json["data"]
    assert model["object"] == "model" and model["sizes"] == [f"{SIDE}x{SIDE}"]
    assert list(model["meanings"]) == model["methods"] and all(model["meanings"].values())
    assert server.generate(model=model["id"]).status == 200
    before = server.metric("images_total"), server.metric("tokens_total")
    server.generate(method="sjd", n=2)
    assert server.metric("images_total") == before[0] + 2
    assert server.metric("tokens_total") == before[1] + 2 * 16
    assert server.metric("queue_seconds_count") == before[0] + 2


def test_requests_may_leave_the_method_to_the_machine(server: Server) -> None:
    """The first one has the methods measured."""
    auto = server.generate(method="auto", seed=3)
    with Image.open(io.BytesIO(auto.images[0])) as image:
        used = json.loads(image.text["lamplighter"])  # type: ignore[attr-defined]
    wanted = {key: used[key] for key in ("method", "tree", "tail") if key in used}
    assert auto.images == server.generate(**wanted, seed=3).images
    assert f"method auto: {used['method']}" in log_of(server)
    words = error_of(server.generate(method="auto", tree="chain-3"), 400)["message"]
    assert "method auto chooses its own options" in words


def test_negative_prompts(
    start: Start, server: Server, cli: Cli, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The models that allow them say so, with their own; others say that they use none."""
    (plain,) = server.get("/v1/models").json["data"]
    assert plain["negative_prompt"] is None
    answer = server.generate(negative_prompt="fog")
    assert answer.status == 200 and answer.json["warnings"] == ["not used: negative_prompt"]
    strict = start("-t", 1, "--strict").generate(negative_prompt="fog")
    assert strict.status == 400 and b"negative_prompt" in strict.body
    unused = server.post(TXT2IMG, {"prompt": PROMPT, "negative_prompt": "fog"})
    assert "negative_prompt" in unused.headers["X-Lamplighter-Warning"]
    assert json.loads(unused.json["info"])["unused"] == ["negative_prompt"]
    assert server.post(TXT2IMG, {"prompt": PROMPT, "negative_prompt": ""}).status == 200

    bundle = simplear(tmp_path_factory.mktemp("simplear"))
    steered = start("-t", 1, model=bundle)
    (model,) = steered.get("/v1/models").json["data"]
    usual = json.loads((bundle / "manifest.json").read_text())["prompt"]["negative_prompt"]
    assert model["negative_prompt"] == usual
    words = ("-p", PROMPT, "--negative-prompt", "fog", "-s", 5, "-t", 1, "-o", "fog.png")
    assert cli("generate", *words, model=bundle).returncode == 0
    fog = (tmp_path / "fog.png").read_bytes()
    assert steered.generate(negative_prompt="fog", seed=5).images == [fog]
    body = {"prompt": PROMPT, "negative_prompt": "fog", "seed": 5}
    assert [base64.b64decode(i) for i in steered.post(TXT2IMG, body).json["images"]] == [fog]
    (by_default,) = steered.generate(seed=5).images
    (named,) = steered.generate(negative_prompt=usual, seed=5).images
    assert pixels(io.BytesIO(named)) == pixels(io.BytesIO(by_default)) != pixels(io.BytesIO(fog))
    form = steered.post(TXT2IMG, {**body, "negative_prompt": ""})
    assert [base64.b64decode(image) for image in form.json["images"]] == [by_default]


def test_several_models(start: Start, cli: Cli) -> None:
    server = start("-t", 1, "-m", DEMO)
    first, second = (model["id"] for model in server.get("/v1/models").json["data"])
    assert server.generate(method="sjd").json["model"] == first
    assert error_of(server.generate(model="other"), 404)["code"] == "model_not_found"
    answer = server.generate(method="sjd", model=second)
    assert answer.json["model"] == second and answer.json["size"] == "256x256"
    settings = {"override_settings": {"sd_model_checkpoint": second}}
    webui = server.post(TXT2IMG, {"prompt": PROMPT, "method": "sjd", **settings})
    assert json.loads(webui.json["info"])["sd_model_name"] == second
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(30) == 0
    twice = cli("serve", "--port", 0, "-m", DEMO, "-m", DEMO)
    assert twice.returncode == 2 and twice.stderr.count("\n") == 1


def test_a_key_is_a_file_or_the_key_itself(start: Start, tmp_path: Path) -> None:
    key = "0123456789abcdef"
    (tmp_path / "key").write_text("secret\n")
    for given, source, value in (
        (tmp_path / "key", f"in the file '{tmp_path}/key'", "secret"),
        (key, "that --api-key holds, which names no file", key),
    ):
        server = start("-t", 1, "--api-key", given)
        right = server.get("/v1/models", Authorization=f"Bearer {value}")
        assert right.status == 200 and server.get("/v1/models").status == 401
        said = Path(server.process.args[-1]).read_text()  # type: ignore[index]
        assert f"clients must send the key {source}\n" in said and key not in said


def test_flags_are_checked_first(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")
    for code, *arguments in (
        (2, "--port", 70000),
        (2, "--queue", -1),
        (2, "--deadline", 0),
        (2, "--host", "203.0.113.7"),
        (3, "--api-key", "missing"),
        (3, "--api-key", "missing/0123456789abcdef"),
        (3, "--api-key", "empty"),
        (2, "--method", "none"),
        (2, "--webui-guidance", "often"),
        (2, "--model-alias", "x"),
        (2, "--model-alias", "x=none"),
        (4, "-m", "missing"),
    ):
        result = cli("serve", *arguments)
        assert result.returncode == code, result.stderr
        assert result.stderr.startswith("lamplighter: error: ")
        assert result.stderr.count("\n") == 1
