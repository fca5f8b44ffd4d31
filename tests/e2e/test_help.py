"""Help, the version, devices and the default bundle."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.e2e.support import Cli


def test_devices(cli: Cli) -> None:
    assert cli("devices").stdout.startswith("cpu: ")
    first = json.loads(cli("devices", "--json").stdout)[0]
    assert first["device"] == "cpu" and first["threads"] >= 1


COMMANDS = ("generate", "batch", "serve", "bench", "tune-tree", "neighbours", "inspect", "check", "decode",
            "encode", "describe", "devices")  # fmt: skip


def flags_of(text: str) -> list[str]:
    """The flags that a help text lists."""
    return re.findall(r"^  (?:-\w, )*(--[a-z-]+)", text, re.MULTILINE)


def test_help_and_version(cli: Cli) -> None:
    assert cli("--version").stdout.startswith("lamplighter 0.")
    for command in ((), *((name,) for name in COMMANDS)):
        for flag in ("--help", "--help-all"):
            result = cli(*command, flag)
            assert result.returncode == 0 and result.stderr == ""
            text = result.stdout
            assert "Usage: " + " ".join(("lamplighter", *command)) in text
            assert all(len(line) <= 140 for line in text.splitlines())
            assert "default: ]" not in text
            # Examples name flags that the same text lists.
            known, examples = re.split(r"\nExamples?\n", text, maxsplit=1)
            assert "  lamplighter " in examples
            for line in examples.split("\n\n")[0].splitlines():
                if command and line.startswith(f"  lamplighter {command[0]} "):
                    missing = set(re.findall(r" (--[a-z-]+)", line)) - set(flags_of(known))
                    assert not missing, line


@pytest.mark.parametrize("command", COMMANDS)
def test_short_help_is_a_part_of_the_whole(cli: Cli, command: str) -> None:
    short, whole = cli(command, "--help").stdout, cli(command, "--help-all").stdout
    assert set(flags_of(short)) <= set(flags_of(whole))
    # Every entry of the short form is an entry of the whole.
    entries = re.split(r"\n(?:Common options|Options)\n", short.split("\nExample")[0], maxsplit=1)[
        1
    ]
    for line in entries.splitlines():
        assert line in whole.splitlines()
    if len(flags_of(whole)) > 20:
        assert len(flags_of(short)) <= 22 and len(short.splitlines()) <= 60
        assert f"lamplighter {command} --help-all" in short


def test_short_help_says_the_defaults(cli: Cli, demo_bundle: Path) -> None:
    text = re.sub(r"\s+", " ", cli("generate", "--help").stdout)
    sampling = json.loads((demo_bundle / "manifest.json").read_text())["sampling"]
    for flag, key in (("--cfg-scale X", "cfg_scale"), ("--temperature X", "temperature"),
                      ("--top-k K", "top_k")):  # fmt: skip
        assert re.search(
            f"{flag} [^][]*\\[default: the bundle's, {sampling[key]:g} for the demo]", text
        ), key
    for flag, usual in (("--method NAME", "ar"), ("--seed N", "42"), ("--batch-count N", "1"),
                        ("--output PATTERN", "output.png"), ("--device NAME", "auto")):  # fmt: skip
        meaning = text.split(f"{flag} ")[1]
        assert meaning.split("[default: ")[1].startswith(f"{usual}]"), flag


def test_model_is_found_beside_the_program(cli: Cli, demo_bundle: Path) -> None:
    result = cli("inspect", "--json", model=None)
    if (demo_bundle / "manifest.json").is_file():
        assert Path(json.loads(result.stdout)["directory"]).resolve() == demo_bundle
    else:
        assert result.returncode == 4 and "--model" in result.stderr
