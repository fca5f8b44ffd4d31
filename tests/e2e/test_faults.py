"""Injects failing system calls into every command that writes: no file may be half-written."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from models.llamagen.config import GPTConfig
from tests.conftest import ROOT
from tests.e2e.support import Cli, export_bundle

IMAGES = (
    "generate", "-p", "a", "-p", "b", "-q", "-o", "%d.png", "--grid", "sheet.png", "--trace", "trace.jsonl",
    "--save-codes", "codes.json", "--acceptance-map", "map.png", "--method", "eagle", "--tree", "chain-2",
)  # fmt: skip
COMMANDS = {
    "generate": IMAGES,
    "generate --overwrite": (*IMAGES, "--overwrite"),
    "neighbours": ("neighbours", "-q", "--k", 5, "-o", "table.safetensors"),
    "neighbours into the bundle": ("neighbours", "-q", "--k", 5, "--bundle", "bundle", "--overwrite"),
    "tune-tree": ("tune-tree", "-q", "-p", "a", "-b", 8, "--rounds", 1, "--max-nodes", 2, "-o", "tree.json"),
    "bench": ("bench", "-q", "-p", "a", "--repeats", 1, "--export-json", "r.json", "--export-html", "r.html"),
}  # fmt: skip
FAULTS = int(os.environ.get("LAMPLIGHTER_FAULTS", "4"))  # per kind and command
LEFTOVER = ".lamplighter-"  # temporary file of a killed process; the next run removes it
Contents = dict[str, bytes]
Faulty = Callable[..., subprocess.CompletedProcess[str]]


def contents(folder: Path) -> Contents:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(files)}


@pytest.fixture
def faulty(cli: Cli, build_dir: Path, drafter_bundle: Path, tmp_path: Path) -> Faulty:
    """Runs a command with a fault in a folder that holds only a copy of the bundle."""

    def run(name: str, fault: str) -> subprocess.CompletedProcess[str]:
        folder = tmp_path / "folder"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(drafter_bundle, folder / "bundle")
        environment = {"LD_PRELOAD": str(build_dir / "libfaults.so"), "FAULT": fault}
        words = (
            (*COMMANDS[name], "-m", "bundle")
            if "--bundle" not in COMMANDS[name]
            else COMMANDS[name]
        )
        return cli(*words, cwd=folder, env=environment, model=None, timeout=120)

    return run


def is_whole(name: str, data: bytes) -> bool:
    """Whether a file ends as its format requires."""
    return {
        ".png": lambda: data.endswith(b"IEND\xaeB`\x82"),
        ".json": lambda: data.rstrip().endswith(b"}"),
        ".jsonl": lambda: data.endswith(b"}\n"),
        ".html": lambda: data.rstrip().endswith(b"</html>"),
        ".safetensors": lambda: len(data) > 8,
    }[Path(name).suffix]()


def assert_nothing_half_written(folder: Path, cli: Cli, bundle: Contents) -> None:
    found = contents(folder)
    for name, data in found.items():
        if name.startswith(("bundle/", LEFTOVER)):
            continue
        assert is_whole(name, data), name
    inside = {
        name.removeprefix("bundle/"): data
        for name, data in found.items()
        if name.startswith("bundle/")
    }
    if inside != bundle:  # the command has written into the bundle
        assert cli("check", folder / "bundle", model=None).returncode == 0


@pytest.mark.parametrize("call", ["rename", "link", "fsync", "write"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_that_fails(
    faulty: Faulty, cli: Cli, drafter_bundle: Path, tmp_path: Path, name: str, call: str
) -> None:
    """Lets one call after the other fail, up to the last one."""
    before = contents(drafter_bundle)
    for number in range(1, 1 + FAULTS, 2):
        result = faulty(name, f"{call}:{number}:{errno.ENOSPC}")
        assert_nothing_half_written(tmp_path / "folder", cli, before)
        if result.returncode == 0:
            break
        assert result.returncode == 7, result.stderr
        assert os.strerror(errno.ENOSPC) in result.stderr
        assert result.stderr.startswith("lamplighter: error: ") and result.stderr.count("\n") == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_memory_that_ends(
    faulty: Faulty, cli: Cli, drafter_bundle: Path, tmp_path: Path, name: str
) -> None:
    """Lets random allocations of the program fail."""
    chance = random.Random(name)
    before = contents(drafter_bundle)
    for _ in range(FAULTS):
        result = faulty(name, f"new:{int(10 ** chance.uniform(0, 4.5))}:{errno.ENOMEM}")
        assert_nothing_half_written(tmp_path / "folder", cli, before)
        assert result.returncode in (0, 6), result.stderr  # 0: the program ended before the fault
        if result.returncode != 0:
            assert (
                result.stderr.startswith("lamplighter: error: ") and result.stderr.count("\n") == 1
            )


@pytest.mark.parametrize("name", COMMANDS)
def test_kills(faulty: Faulty, cli: Cli, drafter_bundle: Path, tmp_path: Path, name: str) -> None:
    """Kills the program before and after every step of a write: files under their final names are complete."""
    before = contents(drafter_bundle)
    for call, moment in (
        ("write", "after"),
        ("fsync", "before"),
        ("fsync", "after"),
        ("rename", "before"),
    ):
        for number in (1, 2):
            result = faulty(name, f"{call}:{number}:{moment}")
            assert result.returncode in (0, -signal.SIGKILL)
            assert_nothing_half_written(tmp_path / "folder", cli, before)


@pytest.mark.parametrize("name", COMMANDS)
def test_kills_at_any_moment(cli: Cli, drafter_bundle: Path, tmp_path: Path, name: str) -> None:
    chance = random.Random(name)
    before, folder = contents(drafter_bundle), tmp_path / "folder"
    words = (*COMMANDS[name], *(() if "--bundle" in COMMANDS[name] else ("-m", "bundle")))

    def run(seconds: float) -> bool:
        """Whether the command ended before it was killed."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(drafter_bundle, folder / "bundle")
        try:
            return cli(*words, cwd=folder, model=None, timeout=seconds).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    begin = time.monotonic()
    assert run(120)
    whole = time.monotonic() - begin
    for _ in range(FAULTS // 2):
        run(chance.uniform(0, whole))
        assert_nothing_half_written(folder, cli, before)


def test_exporters(
    build_dir: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A bundle is complete or absent."""
    source = tmp_path_factory.mktemp("checkpoint")
    config = GPTConfig(
        dim=32, n_layer=1, n_head=2, ffn_dim=48, vocab_size=40, grid=4, cls_token_num=1
    )
    export_bundle(source, config)
    parts = ("--gpt", "gpt.pt", "--vq", "vq.pt", "--config", "config.json")
    for call in ("write", "fsync", "rename"):
        for number in (1, 9):
            out = tmp_path / f"{call}-{number}"
            fault = {
                "LD_PRELOAD": str(build_dir / "libfaults.so"),
                "FAULT": f"{call}:{number}:{errno.ENOSPC}",
            }
            words = [sys.executable, "-m", "models.export", "llamagen", "--out", str(out)]
            words += [str(source / part) if i % 2 else part for i, part in enumerate(parts)]
            result = subprocess.run(
                words,
                capture_output=True,
                text=True,
                cwd=ROOT,
                env={**os.environ, **fault},
                timeout=300,
            )
            if result.returncode != 0:
                assert result.returncode == 7, result.stderr
                assert result.stderr.count("\n") == 1
                assert not out.exists()
