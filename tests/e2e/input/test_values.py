"""Values of flags: no empty text becomes a default, no number is clamped or loses its sign."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.support import Cli, Refused

GENERATE = ("generate", "-p", "a")
HUGE = "9" * 20


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*GENERATE, "--temperature", ""), "--temperature: got '', expected a number"),
        ((*GENERATE, "--temperature", "{}"), "--temperature: got '{}', expected a number"),
        ((*GENERATE, "--cfg-scale", ""), "--cfg-scale: got '', expected a number"),
        ((*GENERATE, "--top-k", ""), "--top-k: got '', expected a whole number"),
        ((*GENERATE, "--top-p", ""), "--top-p: got '', expected a number"),
        ((*GENERATE, "-t", ""), "--threads: got '', expected a whole number"),
        ((*GENERATE, "-b", ""), "--batch-count: got '', expected a whole number"),
        ((*GENERATE, "--batch-size", ""), "--batch-size: got '', expected a whole number"),
        (
            (*GENERATE, "--method", "zipar", "--ahead", ""),
            "--ahead: got '', expected a whole number",
        ),
        ((*GENERATE, "--method", "sjd", "--tree", ""), "--tree: got '', expected a name or a file"),
        ((*GENERATE, "--method", "sjd", "--init", ""), "--init: got '', expected a name"),
        *(
            (
                (*GENERATE, "--method", "lantern++", "--lambda", text),
                f"--lambda: got '{text}', expected",
            )
            for text in ("", "3,", ",3", "3,,2")
        ),
        (
            ("bench", "--synthetic", "anole", "--accept", ""),
            "--accept: got '', expected comma-separated values",
        ),
        (
            ("bench", "--batch-sizes", "1,,2"),
            "--batch-sizes: got '1,,2', expected comma-separated whole numbers",
        ),
        (("bench", "--methods", "ar,"), "--methods: got 'ar,', expected comma-separated words"),
        (("bench", "--count", -1), "--count: got -1, expected 0 or more"),
        (("bench", "--count", 0), "--count: got 0, expected 1 or more"),
        (("tune-tree", "--count", 0, "-o", "t.json"), "--count: got 0, expected 1 or more"),
        (("batch", "c.txt", "-o", "out", "--limit", -1), "--limit: got -1, expected 0 or more"),
        (("batch", "c.txt", "-o", "out", "--offset", -1), "--offset: got -1, expected 0 or more"),
        (
            (*GENERATE, "-o", "%d.png", "--first-index", -5),
            "--first-index: got -5, expected 0 or more",
        ),
        (
            (*GENERATE, "-o", "%d.png", "--first-index", HUGE),
            f"--first-index: got {HUGE}, expected at",
        ),
        (
            (*GENERATE, "--top-k", HUGE),
            f"--top-k: got {HUGE}, expected at most 9223372036854775807",
        ),
        ((*GENERATE, "--top-k", "0x10"), "--top-k: got '0x10', expected a whole number"),
        ((*GENERATE, "-b", 10**11), "--batch-count: got '100000000000', expected a smaller number"),
        ((*GENERATE, "-W", 0), "--width: got 0, expected 1 or more"),
        ((*GENERATE, "-H", 0), "--height: got 0, expected 1 or more"),
        (("serve", "--max-body", -1), "--max-body: got -1, expected 0 or more"),
        (("serve", "--max-body", 0), "--max-body: got 0, expected 1 or more"),
        (("serve", "--max-prompt", -1), "--max-prompt: got -1, expected 0 or more"),
        (("serve", "--deadline", "nan"), "--deadline: got nan, expected 0.001 or more"),
        (("serve", "--deadline", "inf"), "--deadline: got inf, expected at most 1000000000"),
        (("serve", "--url-lifetime", HUGE[:18]), "expected at most 1000000000"),
        *(
            (("serve", "--allow-host", host), f"--allow-host: got '{host}', expected a name")
            for host in (
                "http://lamp.example",
                "*.lamp.example",
                "lamp.example/",
                "",
                ":80",
                "lämp",
            )
        ),
        *(
            (("serve", "--cors", origin), f"--cors: got '{origin}', expected the front of an addr")
            for origin in (
                "page.example",
                "https://page.example/app",
                "https://",
                "://page",
                "http://*",
            )
        ),
        (("serve", "--host", "nope.invalid"), "--host: got 'nope.invalid', expected a name or an"),
        (("serve", "--model", ""), "--model: got an empty name, expected a folder"),
        ((*GENERATE, "--method", "magic"), "pjd, cspd or auto"),
        (("batch", "c.txt", "-o", "out", "--method", "magic"), "pjd, cspd or auto"),
    ],
)
def test_values_of_flags(
    refused: Refused, tmp_path: Path, arguments: tuple[object, ...], words: str
) -> None:
    (tmp_path / "c.txt").write_text("a red boat\n")
    assert words in refused(2, *arguments)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"cfg_scale": ""}, "c.json: --cfg-scale: got '', expected a number"),
        ({"top_k": 1.5}, "c.json: --top-k: got '1.5', expected a whole number"),
        ({"top_k": [1, 2]}, "c.json: --top-k: got 2 values, expected one"),
        ({"lambda": []}, "c.json: lambda: got [], expected a value or more"),
        ({"first_index": -1}, "c.json: --first-index: got -1, expected 0 or more"),
        ({"quiet": True, "verbose": True}, "c.json: --verbose and --quiet exclude each other"),
        (
            {"overwrite": True, "skip_existing": True},
            "c.json: --skip-existing and --overwrite exclude each other",
        ),
    ],
)
def test_values_of_configuration_files(
    refused: Refused, tmp_path: Path, config: dict[str, object], words: str
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(config))
    assert words in refused(3, *GENERATE, "--config", "c.json")


def test_flags_override_what_they_exclude_in_a_file(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"quiet": true}')
    assert "decode" in cli(*GENERATE, "-v", "--config", "c.json").stderr
    (tmp_path / "c.json").write_text('{"quiet": false, "verbose": true}')
    assert "decode" in cli(*GENERATE, "-o", "b.png", "--config", "c.json").stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"lambda": []}, "p line 1: lambda: got [], expected a list of numbers"),
        ({"tree": ""}, 'p line 1: tree: got "", expected a name'),
    ],
)
def test_values_of_prompt_files(
    refused: Refused, tmp_path: Path, line: dict[str, object], words: str
) -> None:
    (tmp_path / "p").write_text(json.dumps({"prompt": "a", "method": "lantern++", **line}))
    assert words in refused(3, "generate", "--prompt-file", "p")


def test_numbers_are_decimal(cli: Cli) -> None:
    generated = cli(*GENERATE, "--top-k", "010", "--temperature", ".5", "--json")
    assert json.loads(generated.stdout)["top_k"] == 10
    most = 2**64 - 1
    generated = cli(*GENERATE, "--seed", most, "-o", "b.png", "--json")
    assert json.loads(generated.stdout)["seed"] == most
