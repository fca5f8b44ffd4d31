"""The launcher prints help and version itself and starts the engine for everything else."""

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
    assert {"generate", "batch", "bench"} <= set(commands) and len(commands) > 10
    assert commands[:4] == ["generate", "batch", "serve", "bench"]  # in the order of use
    for command in commands:
        asked = printed(lamplighter, command, "-h").rstrip()
        assert asked == printed(engine, command, "--help").rstrip()
        every = printed(lamplighter, command, "--help-all").rstrip()
        assert every == printed(engine, command, "--help-all").rstrip()
        assert asked == printed(lamplighter, "help", command).rstrip()
    for words in (["-V"], ["help"], ["man"], ["completion", "bash"], ["completion", "zsh"]):
        assert printed(lamplighter, *words).rstrip() == printed(engine, *words).rstrip()
    everything = printed(lamplighter, "--help-all")
    assert everything.rstrip() == printed(engine, "--help-all").rstrip()
    assert everything.startswith(text.rstrip()) and every in everything


def test_help_names_what_the_demo_generates(lamplighter: Path) -> None:
    """The help lists the words of the manifest, as inspect does."""
    words = re.search(r"^knows subject +(.+)$", printed(lamplighter, "inspect"), re.MULTILINE)
    assert words and "lighthouse" in words[1]
    assert words[1] in re.sub(r"\s+", " ", printed(lamplighter, "generate", "--help-all"))


def test_the_launcher_loads_no_engine(lamplighter: Path) -> None:
    needed = subprocess.run(
        ["readelf", "-d", str(lamplighter)], capture_output=True, text=True, check=True
    ).stdout
    assert "NEEDED" in needed and "torch" not in needed and "lamplighter" not in needed


def test_a_launcher_without_an_engine_fails(lamplighter: Path, tmp_path: Path) -> None:
    alone = tmp_path / "lamplighter"
    shutil.copy(lamplighter, alone)
    result = subprocess.run([str(alone), "devices"], capture_output=True, text=True, timeout=60)
    assert result.returncode == 1
    assert re.fullmatch(
        r"lamplighter: error: cannot start \S+/lamplighter-engine: No such file or directory; .*\n",
        result.stderr,
    )


def test_startup_is_measured(ran: Cli, tmp_path: Path) -> None:
    result = ran("bench", "--startup", "--repeats", 2, "--threads", 1, "--json")
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
def test_startup_generates_one_image_alone(refused: Refused, flag: str) -> None:
    message = refused(2, "bench", "--startup", flag, "x")
    assert "exclude each other" in message
