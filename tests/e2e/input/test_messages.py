"""Messages stay on one line and complete, whatever a value contains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.support import Refused

GENERATE = ("generate", "-p", "a")


@pytest.mark.parametrize(
    "value", ["a\nb", "a\rb\x1b[2J", "a" * 40_000, "\u732b" * 10_000, "a\u2028b"]
)
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--method",), "expected ar, eagle"),
        (("--method", "eagle", "--rule"), "expected exact, "),
        (("--method", "eagle", "--tree"), "or a file"),
        (("--method", "sjd", "--init"), "expected uniform"),
        (("--dtype",), "int4"),
        (("--seed",), "expected -1 (random) or 0 to"),
        (("--top-k",), "expected a whole number"),
        (("-o", "{name}"), "between braces"),
        ((), "(help: lamplighter generate --help)"),
    ],
)
def test_values_do_not_cut_messages(
    refused: Refused, drafter_bundle: Path, arguments: tuple[str, ...], expected: str, value: str
) -> None:
    given = (*arguments[:-1], arguments[-1] + value) if "-o" in arguments else (*arguments, value)
    line = refused(2, *GENERATE, *given, model=drafter_bundle)
    assert expected in line and len(line) < 1000
    assert len(line.splitlines()) == 1 and line[:-1].isprintable()


def test_values_of_files_do_not_cut_messages(refused: Refused, tmp_path: Path) -> None:
    for value in ("a\0b", "a\nb", "a" * 40_000):
        (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "a", "method": value}))
        line = refused(3, "generate", "--prompt-file", "p.jsonl")
        assert "p.jsonl line 1: method: got 'a" in line and "expected ar" in line
        (tmp_path / "p.jsonl").write_text(json.dumps({"prompt": "a", value: 1}))
        line = refused(3, "generate", "--prompt-file", "p.jsonl")
        assert "p.jsonl line 1: unknown field a" in line and "expected one of" in line
        (tmp_path / "c.json").write_text(json.dumps({value: 1}))
        assert "c.json: unknown flag a" in refused(3, *GENERATE, "--config", "c.json")
    line = refused(3, "generate", "--prompt-file", "x" * 40_000)
    assert "File name too long" in line and len(line) < 2000
