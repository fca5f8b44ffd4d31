"""Commands in the pages that need published files or hours: every flag and every name in them exists."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from functools import cache

import pytest

from tests.conftest import ROOT
from tests.e2e.support import Cli

PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in [*(ROOT / "models").rglob("*.md"), ROOT / "BENCHMARKS.md"]
)
PROGRAM, EXPORTER, PYTHON = "build/lamplighter", ".venv/bin/lamplighter-export", ".venv/bin/python"
# What these programs do not know goes to the engine.
PASSING = ("models.demo.evaluate", "models.mar.demo.evaluate", "scripts/batch_measure.py")


def blocks(page: str) -> list[str]:
    """The indented blocks of code of a page."""
    text = (ROOT / page).read_text()
    return [block.group() for block in re.finditer(r"(?<=\n\n)(?:    \S.*\n(?:     .*\n)*)+", text)]


def commands(page: str) -> list[list[str]]:
    """The words of every command in a page: in its blocks and between backquotes."""
    text = (ROOT / page).read_text()
    inline = re.findall(r"`((?:build/|\.venv/|scripts/\w+\.py )[^`]*)`", text)
    lines = "\n".join([*blocks(page), *inline]).replace("\\\n", " ").splitlines()
    starts = (PROGRAM, EXPORTER, f"{PYTHON} ", "scripts/")
    return [shlex.split(line, comments=True) for line in lines if line.strip().startswith(starts)]


@cache
def help_of(*command: str) -> str:
    result = subprocess.run(
        [*command, "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return result.stdout


def known(command: list[str], cli: Cli) -> tuple[list[str], str]:
    """The words behind a program and its subcommand, and the text in which their flags stand."""
    words = command
    if words[0] == PROGRAM:
        return words[2:], cli(words[1], "--help-all").stdout
    if words[0] == EXPORTER:
        return words[2:], help_of(sys.executable, "-m", "models.export", words[1])
    if words[0] == PYTHON:
        words = words[1:]
    name, words = (words[1], words[2:]) if words[0] == "-m" else (words[0], words[1:])
    text = help_of(sys.executable, *(["-m", name] if "/" not in name else [str(ROOT / name)]))
    return words, text + (cli("generate", "--help-all").stdout if name in PASSING else "")


@pytest.mark.parametrize("page", PAGES)
def test_flags_are_flags(page: str, cli: Cli) -> None:
    for command in commands(page):
        if len(command) < 2 or not re.fullmatch(r"-m|[a-z][\w./-]*", command[1]):
            continue  # a name alone, or a placeholder
        words, text = known(command, cli)
        for word in words:
            if re.match(r"--?[a-zA-Z]", word):
                assert re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text), (word, command)


def test_commands_are_found() -> None:
    assert sum(len(commands(page)) for page in PAGES) > 60
    assert all(commands(page) for page in PAGES if page.startswith("models/families/"))


def test_synthetic_names_are_the_program_s(cli: Cli) -> None:
    text = " ".join(cli("bench", "--help-all").stdout.split())
    found = re.search(r"instead of a bundle: (.*?) --layers", text)
    assert found
    names = set(found[1].split(", "))
    for page in PAGES:
        for name in re.findall(r"--synthetic ([a-z][\w.-]*)", (ROOT / page).read_text()):
            assert name in names, (page, name)


def test_python_in_pages_can_be_compiled() -> None:
    scripts = [block for page in PAGES for block in blocks(page) if block.startswith("    import ")]
    assert scripts
    for script in scripts:
        ast.parse(re.sub(r"^    ", "", script, flags=re.MULTILINE))
