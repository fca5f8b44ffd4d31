"""Without a key, `serve` answers names of this machine and its own page alone (DNS rebinding)."""

from __future__ import annotations

import pytest

from tests.e2e.serve.client import GENERATIONS, PROMPT, TXT2IMG, Server, Start, error_of

FOREIGN = (
    "evil.example",
    "evil.example:80",
    "localhost.evil.example",
    "127.0.0.1.evil.example",
    "2130706433",
    "0177.0.0.1",
    "127.1",
    "",
)


@pytest.mark.parametrize("host", FOREIGN)
def test_a_foreign_name_is_not_served(open_server: Server, host: str) -> None:
    """A page whose name points to this machine gets nothing, and no answer repeats the name."""
    for path in ("/", "/health", "/v1/models", "/nothing"):
        answer = open_server.get(path, Host=host)
        assert error_of(answer, 403)["code"] == "unknown_host"
        assert b"evil" not in answer.body and "evil" not in str(answer.headers)
    body = {"prompt": PROMPT, "response_format": "url"}
    assert open_server.post(GENERATIONS, body, Host=host).status == 403
    assert open_server.post(TXT2IMG, body, Host=host).json["error"] == "unknown_host"


@pytest.mark.parametrize(
    "host",
    [
        "localhost",
        "LOCALHOST:80",
        "a.localhost",
        "127.0.0.1:8080",
        "[::1]:8080",
        "[::ffff:127.0.0.1]:8080",
        "192.168.1.7",
        "localhost.",
    ],
)
def test_names_of_this_machine_are_served(open_server: Server, host: str) -> None:
    assert open_server.get("/health", Host=host).status == 200


NO_HOST = (
    "localhost:80@evil.example",
    "[::1]evil.example",
    "localhost:evil",
    "a/evil",
    "evil.example#localhost",
    "localhost%2eevil",
    "localhost,evil.example",
)


@pytest.mark.parametrize("host", NO_HOST)
def test_what_is_no_host_is_refused(open_server: Server, host: str) -> None:
    """Its start is a name of this machine; a browser would go elsewhere. No answer repeats it."""
    body = {"prompt": PROMPT, "response_format": "url"}
    for answer in (
        open_server.post(GENERATIONS, body, Host=host),
        open_server.ask("GET", f"http://evil.example:evil/{host}"),
    ):
        assert error_of(answer, 400)["code"] == "bad_request"
        assert b"evil" not in answer.body and "evil" not in str(answer.headers)


def test_other_names_and_pages_when_they_are_allowed(start: Start) -> None:
    server = start("-t", 1, "--allow-host", "lamp.example", "--cors", "HTTPS://page.example:443/")
    assert server.get("/health", Host="lamp.example:80").status == 200
    assert server.get("/health", Host="evil.example").status == 403
    answer = server.post(
        GENERATIONS,
        {"prompt": PROMPT, "response_format": "url"},
        Host="lamp.example",
        Origin="https://page.example",
    )
    assert answer.json["data"][0]["url"].startswith("http://lamp.example/")
    assert answer.headers["Access-Control-Allow-Origin"] == "https://page.example"
    assert error_of(server.get("/v1/models", Origin="https://evil.example"), 403)["code"] == (
        "foreign_origin"
    )
    any_name = start("-t", 1, "--allow-host", "*", "--cors", "*")
    assert any_name.get("/health", Host="evil.example", Origin="null").status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost", "http://127.0.0.1:1"]
)
def test_pages_of_others_are_not_answered(open_server: Server, origin: str) -> None:
    for answer in (
        open_server.get("/v1/models", Origin=origin),
        open_server.post(GENERATIONS, {"prompt": PROMPT}, Origin=origin),
        open_server.ask("OPTIONS", GENERATIONS, headers={"Origin": origin}),
    ):
        assert error_of(answer, 403)["code"] == "foreign_origin"
        assert "Access-Control-Allow-Origin" not in answer.headers
    own = f"http://{open_server.host}:{open_server.port}"
    form = {"Sec-Fetch-Site": "cross-site"}  # without an Origin
    assert error_of(open_server.post(GENERATIONS, {"prompt": PROMPT}, **form), 403)
    assert open_server.get("/v1/models", **form).status == 200  # a link to it
    assert open_server.get("/v1/models", Origin=own).status == 200


def test_a_key_stands_for_the_name(start: Start) -> None:
    """A proxy's name is served to whoever has the key, and answers do not repeat it."""
    server = start("-t", 1, env={"LAMPLIGHTER_API_KEY": "secret"})
    answer = server.post(
        GENERATIONS,
        {"prompt": PROMPT, "response_format": "url"},
        Host="proxy.example",
        Authorization="Bearer secret",
    )
    assert answer.json["data"][0]["url"].startswith(f"http://{server.host}:{server.port}/")
