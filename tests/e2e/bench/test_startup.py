"""The launcher: help and version come from it alone, everything else from the engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.e2e.support import Cli, Refused


def printed(program: Path, *words: str) -> str:
    result = subprocess.run(
        [str(program), *words], capture_output=True, text=True, timeout=60, check=True
    )
    assert result.stderr == ""
    return result.stdout


def test_help_and_version_are_the_engine_s(lamplighter: Path) -> None:
    engine = lamplighter.with_name("lamplighter-engine")
    assert printed(lamplighter, "--version") == printed(engine, "--version")
    text = printed(lamplighter, "--help")
    assert text.rstrip() == printed(engine, "--help").rstrip()
    commands = re.findall(
        r"^  ([a-z-]+) {2,}", text.split("Commands\n")[1].split("\n\n")[0], re.MULTILINE
    )
    assert {"generate", "batch", "bench"} <= set(commands) and len(commands) == 10
    for command in commands:
        asked = printed(lamplighter, command, "-h").rstrip()
        assert asked == printed(engine, command, "--help").rstrip()


def test_help_names_what_the_demo_draws(lamplighter: Path) -> None:
    """By the words of its manifest, which inspect shows too."""
    words = re.search(r"^knows subject +(.+)$", printed(lamplighter, "inspect"), re.MULTILINE)
    assert words and "lighthouse" in words[1]
    assert words[1] in re.sub(r"\s+", " ", printed(lamplighter, "generate", "--help"))


def test_the_launcher_loads_no_engine(lamplighter: Path) -> None:
    needed = subprocess.run(
        ["readelf", "-d", str(lamplighter)], capture_output=True, text=True, check=True
    ).stdout
    assert "NEEDED" in needed and "torch" not in needed and "lamplighter" not in needed


def test_a_launcher_alone_says_so(lamplighter: Path, tmp_path: Path) -> None:
    alone = tmp_path / "lamplighter"
    shutil.copy(lamplighter, alone)
    result = subprocess.run([str(alone), "devices"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert re.fullmatch(
        r"lamplighter: error: cannot start \S+/lamplighter-engine: No such file or directory; .*\n",
        result.stderr,
    )


def test_startup_is_measured(cli: Cli, tmp_path: Path) -> None:
    result = cli("bench", "--startup", "--repeats", 2, "--threads", 1, "--json")
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)["startup"]
    assert [row["command"].split(",")[0] for row in rows] == [
        "--version",
        "generate --help",
        "generate",
    ]
    for row in rows:
        assert len(row["wall_ms"]) == len(row["processor_ms"]) == 2 and min(row["wall_ms"]) > 0
    assert min(rows[2]["processor_ms"]) > max(rows[0]["processor_ms"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--methods", "--captions", "--export-csv", "--synthetic"])
def test_startup_draws_one_picture_alone(refused: Refused, flag: str) -> None:
    message = refused(2, "bench", "--startup", flag, "x")
    assert "exclude each other" in message
