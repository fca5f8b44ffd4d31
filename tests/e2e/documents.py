"""Reads the blocks of code in a Markdown document, and runs them as a reader would."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "tools/README.md",
    "tools/FAQ.md",
    "tools/serve/README.md",
    "tools/python/README.md",
)
ADDRESS = "127.0.0.1:8080"  # of the servers in documents
CAPTIONS = ("a red boat on the sea at dawn", "a tent at night", "a blue house in the snow")


@dataclass(frozen=True)
class Block:
    """A fenced block of code. A comment before it, which pages do not show, may say why it is not run."""

    document: str
    line: int
    language: str
    text: str
    not_run: str
    needs: str  # a Python module

    @property
    def commands(self) -> list[list[str]]:
        """The words of every command of a shell block that is not run."""
        lines = self.text.replace("\\\n", " ").splitlines()
        return [shlex.split(part) for line in lines for part in line.split("&&")]


def read_blocks(document: str) -> list[Block]:
    """All fenced blocks of a document, in order."""
    text = (ROOT / document).read_text()
    found = re.finditer(
        r"(?:^<!-- (?P<kind>not run|needs): (?P<why>[^\n]+) -->\n)?^```(?P<language>\w*)\n(?P<text>.*?)^```$",
        text,
        re.MULTILINE | re.DOTALL,
    )
    return [
        Block(
            document=document,
            line=text.count("\n", 0, block.start("language")) + 1,
            language=block["language"],
            text=block["text"],
            not_run=block["why"] if block["kind"] == "not run" else "",
            needs=block["why"] if block["kind"] == "needs" else "",
        )
        for block in found
    ]


def table_names(document: str, heading: str, column: int = 0) -> list[str]:
    """The names in code style that one column of the tables under a heading holds."""
    text = (ROOT / document).read_text()
    level = heading.split(" ")[0]
    section = text.split(f"\n{heading}\n", 1)[1]
    section = re.split(rf"^#{{1,{len(level)}}} ", section, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[column + 1])]


class Workspace:
    """A folder that looks like a clone after the build, and holds nothing else."""

    def __init__(self, folder: Path, build: Path) -> None:
        self.folder = folder
        environment = Path(sys.executable).parent.parent
        links = {"build": build, ".venv": environment}
        links |= {name: ROOT / name for name in ("models", "tools", "scripts")}
        for name, target in links.items():
            (folder / name).symlink_to(target)
        annotations = [{"image_id": i, "caption": text} for i, text in enumerate(CAPTIONS)]
        (folder / "captions_val2017.json").write_text(json.dumps({"annotations": annotations}))
        self.environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.environment["XDG_CACHE_HOME"] = str(folder / "cache")
        self.environment.pop("LAMPLIGHTER_MODEL", None)

    def run(self, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the folder."""
        return subprocess.run(
            command, cwd=self.folder, env={**self.environment, **variables}, capture_output=True,
            text=True, timeout=600,
        )  # fmt: skip

    @contextmanager
    def server(self, command: str) -> Iterator[str]:
        """Runs `build/lamplighter serve ...` on a free port and gives its address."""
        words = [*shlex.split(command), "--port", "0"]
        with (self.folder / "server.log").open("w") as log:
            process = subprocess.Popen(
                words, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=log, text=True
            )  # fmt: skip
        assert process.stdout is not None
        try:
            line = process.stdout.readline().strip()
            assert line.startswith("http://"), (self.folder / "server.log").read_text()
            yield line.removeprefix("http://")
        finally:
            process.kill()
            process.wait()
            process.stdout.close()


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.replace(" ", "-") for text in words}
