"""What a process inherits: closed descriptors, small limits, a missing home, ignored signals."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.support import Cli

ENGINE = "lamplighter-engine"


@pytest.mark.parametrize("program", ["lamplighter", ENGINE])
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_closed_descriptors_stay_reserved(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path, program: str, closed: tuple[int, ...]
) -> None:
    """Messages and results go nowhere, not into the files that the program opens."""
    (tmp_path / "captions.txt").write_text("a boat\n--steps 3\n")
    (tmp_path / "good.txt").write_text("a boat\na tree\n")

    def close() -> None:
        for number in closed:
            os.close(number)

    for captions in ("captions.txt", "good.txt"):
        words = ["batch", captions, "-o", "out", "-m", tiny_bundle, "-t", 1, "--json"]
        subprocess.run(
            [str(word) for word in (lamplighter.with_name(program), *words)],
            cwd=tmp_path, capture_output=True, timeout=300, preexec_fn=close,
        )  # fmt: skip
    out = tmp_path / "out"
    if 1 in closed and not out.exists():
        return  # events cannot be written: the run ends at the first one, which says what is planned
    lines = (out / "manifest.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert all(record["status"] == "ok" for record in records)
    images = sorted((out / "images").iterdir())
    assert all(image.read_bytes()[1:4] == b"PNG" for image in images)
    if 1 in closed:
        return  # events cannot be written: the run ends at the first one
    assert [record["caption"] for record in records] == ["a boat", "a tree"]
    assert len(images) == 2


def test_lines_are_written_in_one_call(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path
) -> None:
    """Processes of one run share a log, in which their lines must not mix."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    (tmp_path / "good.txt").write_text("a {red|blue} boat\na tree\n")
    words = [lamplighter, "batch", "good.txt", "-o", "out", "-m", tiny_bundle, "-t", "1"]
    with ours:
        with theirs:
            subprocess.run(
                [*map(str, words)], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=theirs,
                check=True, timeout=300,
            )  # fmt: skip
        packets = list(iter(lambda: ours.recv(1 << 16), b""))
    assert len(packets) > 2 and all(p.count(b"\n") == 1 and p[-1:] == b"\n" for p in packets)


def test_results_that_cannot_be_printed_end_the_run(cli: Cli) -> None:
    result = cli("generate", "-p", "a", "-o", "a.png", preexec_fn=lambda: os.close(1))
    assert result.returncode == 7 and "standard output" in result.stderr


def test_files_are_written_when_nothing_can_be_printed(
    cli: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    """Measurements take long: a closed standard output loses none."""
    files = {f"--export-{kind}": f"out.{kind}" for kind in ("json", "csv", "markdown", "html")}
    words = [word for pair in files.items() for word in pair]
    close = {"model": drafter_bundle, "preexec_fn": lambda: os.close(1)}
    result = cli("bench", "--methods", "ar", "--repeats", 1, "--threads", 1, "-q", *words, **close)
    assert result.returncode == 7
    assert [line for line in result.stderr.splitlines() if "standard output" in line]
    assert all((tmp_path / name).stat().st_size > 100 for name in files.values())
    words = ["tune-tree", "-b", 2, "--max-nodes", 1, "--rounds", 1, "-o", "tree.json", "-q"]
    result = cli(*words, "--threads", 1, "--json", **close)
    assert result.returncode == 7 and "standard output" in result.stderr
    assert json.loads((tmp_path / "tree.json").read_text())["paths"]


def test_every_failure_of_a_result_is_named(cli: Cli, tmp_path: Path) -> None:
    files = ("--export-json", "/dev/full", "--export-markdown", "ok.md")
    words = ("bench", "--repeats", 1, "--threads", 1, "-q", *files)
    result = cli(*words, preexec_fn=lambda: os.close(1))
    assert result.returncode == 7
    assert "/dev/full" in result.stderr and "standard output" in result.stderr
    assert "| ar |" in (tmp_path / "ok.md").read_text()


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        (resource.RLIMIT_AS, (20 << 20, 100 << 20, 300 << 20, 400 << 20)),
        (resource.RLIMIT_DATA, (1 << 20, 5 << 20, 20 << 20)),
    ],
)
def test_small_limits_end_with_one_line(cli: Cli, kind: int, sizes: tuple[int, ...]) -> None:
    for size in sizes:

        def limit(size: int = size) -> None:
            resource.setrlimit(kind, (size, size))

        result = cli("devices", preexec_fn=limit)
        assert result.returncode == 6, (size, result.stderr)
        assert result.stderr.startswith("lamplighter: error: out of memory")
        assert result.stderr.count("\n") == 1


def test_a_removed_folder_ends_with_one_line(lamplighter: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    result = subprocess.run(
        [str(lamplighter), "devices"],
        cwd=folder, capture_output=True, text=True, timeout=300, preexec_fn=folder.rmdir,
    )  # fmt: skip
    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr == (
        "lamplighter: error: the current folder has been removed; change to another one\n"
    )


def test_small_stacks_end_with_one_line(cli: Cli) -> None:
    """A limit that may be raised is raised."""
    for size, most, code in ((64, 64, 6), (200, 255, 6), (64, 8192, 0), (256, 256, 0)):

        def limit(size: int = size, most: int = most) -> None:
            resource.setrlimit(resource.RLIMIT_STACK, (size << 10, most << 10))

        result = cli("generate", "-p", "a", "-o", f"{size}-{most}.png", preexec_fn=limit)
        assert result.returncode == code, (size, result.stderr)
        if code:
            assert "the limit of the stack (ulimit -s) is below 256 kB" in result.stderr
            assert result.stderr.count("\n") == 1


def test_no_home_is_needed(cli: Cli, ran: Cli) -> None:
    ran("generate", "-p", "a", "-o", "a.png", "--method", "auto", env={"HOME": ""})
    words = ("bench", "--methods", "ar", "--save-table")
    refused = cli(*words, env={"HOME": "", "XDG_CACHE_HOME": ""})
    assert refused.returncode == 7 and "neither HOME nor XDG_CACHE_HOME" in refused.stderr
    refused = cli(*words, env={"HOME": "/proc/none", "XDG_CACHE_HOME": ""})
    assert refused.returncode == 7 and "cannot create folder /proc/none" in refused.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_that_the_parent_ignores_stay_ignored(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path, number: signal.Signals
) -> None:
    words = ["generate", "-m", tiny_bundle, "-p", "a", "-b", 40, "-t", 1, "-o", "%02d.png"]
    with subprocess.Popen(
        [str(word) for word in (lamplighter, *words)],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_IGN),
    ) as process:  # fmt: skip
        assert process.stdout
        process.stdout.readline()
        process.send_signal(number)
        time.sleep(0.05)
        process.send_signal(number)
        process.stdout.read()
        assert process.wait(timeout=300) == 0
    assert len(list(tmp_path.glob("*.png"))) == 40
