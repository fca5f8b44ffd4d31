"""tools/serve/README.md names the routes, fields and flags that the server has."""

from __future__ import annotations

import json
import re

from tests.e2e.documents import ROOT, table_names
from tests.e2e.serve.client import GENERATIONS, PROMPT, Server
from tests.e2e.support import Cli

GUIDE = "tools/serve/README.md"


def test_fields(server: Server) -> None:
    """A field that is known fails for its value, which no field takes, and not for its name."""
    names = table_names(GUIDE, "## `POST /v1/images/generations`")
    fields = set(names[: names.index("created")])
    assert {"prompt", "seed", "method", "moderation"} < fields
    for field in fields:
        body = {"prompt": PROMPT, "size": "auto", field: {"a": 1}}
        answer = server.post(GENERATIONS, body)
        assert answer.status == 400, (field, answer.body)
        assert "unknown" not in answer.json["error"]["message"], field
    assert server.post(GENERATIONS, {"prompt": PROMPT, "nothing": 1}).json["unused"] == ["nothing"]


def test_answer(server: Server) -> None:
    names = table_names(GUIDE, "## `POST /v1/images/generations`")
    listed = {name.lstrip(".").removeprefix("data[i].").removeprefix("usage.") for name in names}
    answer = server.generate().json
    given = {*answer, *answer["data"][0]} - {"usage"}
    assert given <= listed


def test_routes(server: Server) -> None:
    rows = re.findall(r"^\| `(GET|POST) (/[^`]*)` ", (ROOT / GUIDE).read_text(), re.MULTILINE)
    assert len(rows) >= 8
    for method, path in rows:
        answer = server.ask(method, path, "{}", {"Content-Type": "application/json"})
        known = answer.status != 404 or "image" in answer.json["error"]["message"]
        assert known or "NAME" in path, path


def test_flags(cli: Cli) -> None:
    for flag in table_names(GUIDE, "## Starting it"):
        if not flag.startswith("-"):
            continue
        result = cli("serve", flag.split(" ")[0], "x", "--port", "x")
        assert result.returncode == 2 and "unknown" not in result.stderr, (flag, result.stderr)


def test_error_codes(server: Server) -> None:
    codes = set(table_names(GUIDE, "## Errors", 1))
    assert {"invalid_value", "queue_full"} < codes
    for body, headers in (
        ({"prompt": 3}, {}),
        ({"prompt": PROMPT, "method": "cspd"}, {}),
        ({"prompt": "a" * 30_000}, {}),
        ({"prompt": PROMPT}, {"Content-Type": "text/plain"}),
    ):
        answer = server.ask(
            "POST", GENERATIONS, json.dumps(body), {"Content-Type": "application/json", **headers}
        )
        assert answer.json["error"]["code"] in codes and answer.status >= 400
