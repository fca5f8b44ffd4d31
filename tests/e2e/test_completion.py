"""Completion in bash and zsh, and the manual page: they know what --help-all lists."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest

from tests.e2e.support import METHODS, Cli, Refused
from tests.e2e.test_help import COMMANDS

# Calls the function as bash does and prints what it offers; `compopt` works in an interactive shell only.
CALL = """
source "$1"
compopt() { echo "compopt $*"; }
COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
_lamplighter
printf '%s\\n' "${COMPREPLY[@]}"
"""
NO_FILES = "compopt +o default"


@pytest.fixture(scope="module")
def script(lamplighter: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "lamplighter.bash"
    with path.open("w") as file:
        subprocess.run([str(lamplighter), "completion", "bash"], stdout=file, check=True)
    return path


def offered(script: Path, *words: str) -> list[str]:
    """What Tab offers behind `lamplighter` and these words, and the options that change."""
    result = subprocess.run(
        ["bash", "--norc", "-c", CALL, "bash", script, "lamplighter", *words],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (result.returncode, result.stderr) == (0, "")
    return [line for line in result.stdout.splitlines() if line]


@cache
def help_of(lamplighter: Path, command: str) -> str:
    return subprocess.check_output([str(lamplighter), command, "--help-all"], text=True)


def flags_of(text: str) -> set[str]:
    """All names of the flags that a help text lists."""
    lines = re.findall(r"^  (-[^\s,]+(?:, -[^\s,]+)*)", text, re.MULTILINE)
    return {name for line in lines for name in line.split(", ")}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["gen"], ["generate"]),
        (["--v"], ["--version"]),
        (["help", "de"], ["decode", "describe", "devices"]),
        (["completion", ""], ["bash", "zsh"]),
        (["generate", "--meth"], ["--method"]),
        (["generate", "--method", "sjd"], ["sjd", "sjd-pac"]),
        (["generate", "--method", "="], ["ar", *METHODS, "auto"]),
        (["generate", "--method", "=", "gs"], ["gsd"]),
        (["batch", "--layout", "g"], ["geneval"]),
        (["serve", "--dtype", "fp"], ["fp32", "fp16"]),
        (["bench", "--methods", "ar,zipar"], ["ar,zipar", "ar,zipar+sjd"]),
        (["generate", "--rule", "official"], ["official-pac", "official"]),
        (["neighbours", "--metric", ""], ["l2", "cosine"]),
    ],
)
def test_words_are_offered(script: Path, words: list[str], expected: list[str]) -> None:
    options, *got = offered(script, *words)
    assert options == NO_FILES
    assert set(expected) <= set(got) if words[-1] == "=" else got == expected


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["generate", "-o", ""], []),
        (["generate", "--prompt-file", "c"], []),
        (["generate", "--tree", "t.json"], []),
        (["decode", ""], []),
        (["batch", "--captions", ""], []),
        (["generate", "-m", ""], [f"{NO_FILES} -o dirnames"]),
        (["inspect", ""], [f"{NO_FILES} -o dirnames"]),
        (["generate", "--seed", ""], [NO_FILES]),
        (["generate", "-p", "a"], [NO_FILES]),
    ],
)
def test_bash_completes_names_of_files(script: Path, words: list[str], options: list[str]) -> None:
    """Where a flag takes a file, and nowhere else."""
    assert offered(script, *words) == options


@pytest.mark.parametrize("command", COMMANDS)
def test_all_flags_are_offered(script: Path, lamplighter: Path, command: str) -> None:
    text = help_of(lamplighter, command)
    got = offered(script, command, "-")
    assert set(got) - {NO_FILES} == flags_of(text)
    named = text + help_of(lamplighter, "generate")  # has the list of methods
    words = {word.strip(".") for word in re.findall(r"[\w.+-]+", named)}
    for flag in flags_of(text):
        for choice in offered(script, command, flag, ""):
            known = choice in words or re.fullmatch(r"chain-\d", choice)
            assert known or choice.startswith("compopt") or choice in got, (flag, choice)


def typed(shell: list[str], begin: str, line: str, folder: Path) -> list[str]:
    """The words of `line` as the shell runs it on a terminal, where a tab completes."""
    program = folder / "bin" / "lamplighter"
    program.parent.mkdir(exist_ok=True)
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {folder}/part\nmv {folder}/part {folder}/got\n'
    )
    program.chmod(0o755)
    environment = {
        "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb",
        "PS1": "ready> ",
    }  # fmt: skip
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        shell, stdin=follower, stdout=follower, stderr=follower, cwd=folder, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    shown = b""
    try:
        for text in (f"{begin}; echo be''gun\n", f"{line}\n"):
            os.write(leader, text.encode())
            end = time.monotonic() + 60
            while b"begun" not in shown and time.monotonic() < end:
                if select.select([leader], [], [], 0.1)[0]:
                    shown += os.read(leader, 4096)
        while not (folder / "got").exists() and time.monotonic() < end:
            if select.select([leader], [], [], 0.1)[0]:
                shown += os.read(leader, 4096)
        assert (folder / "got").exists(), shown.decode(errors="replace")
        return (folder / "got").read_text().splitlines()
    finally:
        process.kill()
        process.wait()
        os.close(leader)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_tab_completes(lamplighter: Path, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    text = subprocess.check_output([str(lamplighter), "completion", shell], text=True)
    (tmp_path / "script").write_text(text)
    (tmp_path / "a long name.txt").write_text("")
    begin = ". ./script"
    if shell == "zsh":
        begin = f"autoload -Uz compinit; compinit -u -d {tmp_path}/dump; {begin}"
    options = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[shell]
    line = "lamplighter gen\t--meth\teagle+\t--prompt-f\ta\t-o x --children t\t"
    words = typed([shell, *options], begin, line, tmp_path)
    parts = [part for word in words for part in word.split("=")]  # zsh: --flag=value
    assert parts == [
        "generate", "--method", "eagle+sjd", "--prompt-file", "a long name.txt", "-o", "x",
        "--children", "top",
    ]  # fmt: skip


def test_the_manual_page_has_everything(cli: Cli, lamplighter: Path) -> None:
    page = cli("man").stdout
    assert page.startswith('.TH "LAMPLIGHTER" 1 ')
    plain = page.replace("\\-", "-")
    for command in COMMANDS:
        section = plain.split(f'.SH "lamplighter {command}"\n')[1].split("\n.SH ")[0]
        bold = {name for line in re.findall(r"^\\fB(-.*?)\\fR", section, re.MULTILINE)
                for name in line.split()[0:9]}  # fmt: skip
        named = {name.rstrip(",") for name in bold if name.startswith("-")}
        assert named == flags_of(help_of(lamplighter, command)), command
    assert "130, 143" in plain and "LAMPLIGHTER_MODEL" in plain


def test_the_manual_page_is_roff(cli: Cli) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    result = subprocess.run(
        ["groff", "-man", "-ww", "-Tutf8"], input=cli("man").stdout, capture_output=True, text=True
    )
    assert (result.returncode, result.stderr) == (0, "")
    text = re.sub(r"\x1b\[[\d;]*m|.\x08", "", result.stdout).replace("\u2212", "-")
    assert "--save-codes FILE" in text and "lamplighter inspect" in text


def test_help_is_a_command(cli: Cli, refused: Refused) -> None:
    assert cli("help").stdout == cli("--help").stdout
    assert cli("help", "bench").stdout == cli("bench", "--help").stdout
    assert cli("-V").stdout == cli("--version").stdout
    wrong = refused(2, "help", "genrate")
    assert "unknown command genrate; did you mean generate?" in wrong
    assert "expected bash, zsh; did you mean zsh?" in refused(2, "completion", "szh")
