"""Signals and progress bars."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
from pathlib import Path

import pytest

IMAGES = 100_000


def start(
    lamplighter: Path, bundle: Path, folder: Path, *flags: object, **options: object
) -> subprocess.Popen[str]:
    command = [lamplighter, "generate", "-m", bundle, "-b", IMAGES, "-o", "%05d.png", *flags]
    if "--prompt-file" not in flags:
        command += ["-p", "a"]
    return subprocess.Popen(  # type: ignore[call-overload]
        [str(part) for part in command],
        cwd=folder,
        stdout=subprocess.PIPE,
        text=True,
        # Shells start background jobs with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_cleanly(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(lamplighter, tiny_bundle, tmp_path, stderr=subprocess.PIPE)
    assert process.stdout and process.stderr
    printed = [process.stdout.readline().strip() for _ in range(2)]
    process.send_signal(number)
    # `communicate` would lose the lines that `readline` has read ahead.
    rest, words = process.stdout.read(), process.stderr.read()
    assert process.wait(timeout=60) == code
    printed += rest.split()
    assert words.splitlines()[-1] == (
        f"lamplighter: error: stopped with {len(printed)} of {IMAGES} images complete; "
        "the same command with --skip-existing generates the others"
    )
    assert 2 <= len(printed) < IMAGES
    # Every announced image is complete, and there are no other files.
    assert sorted(printed) == sorted(path.name for path in tmp_path.iterdir())
    assert all((tmp_path / name).read_bytes()[-8:-4] == b"IEND" for name in printed)


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        (["--overwrite"], "the same command generates all again"),
        (["--skip-existing"], "the same command generates the others"),
        (["--trace", "t.jsonl"], "the same command with --overwrite generates all again"),
        (
            ["--trace", "t.jsonl", "--skip-existing"],
            "the same command, with other names of the files of all images, generates the others",
        ),
        (["--seed", -1], r"the same command with --skip-existing --seed \d+ generates the others"),
        (
            ["--prompt-file", "-"],
            "the same command with --skip-existing and the same input generates the others",
        ),
    ],
)
def test_the_message_of_a_stop_fits_the_flags(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path, flags: list[object], hint: str
) -> None:
    process = start(
        lamplighter, tiny_bundle, tmp_path, *flags, stderr=subprocess.PIPE, stdin=subprocess.PIPE
    )
    assert process.stdout and process.stdin
    if "--prompt-file" in flags:
        process.stdin.write("a\n")
        process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=60)[1].splitlines()[-1]
    assert re.fullmatch(
        rf"lamplighter: error: stopped with \d+ (of {IMAGES} )?images? complete; {hint}", words
    )


def handles(process: int, number: int) -> bool:
    """Whether a process has installed its handler for a signal, which happens before it loads weights."""
    status = Path(f"/proc/{process}/status").read_text()
    return bool(int(re.findall(r"SigCgt:\s*(\w+)", status)[0], 16) >> (number - 1) & 1)


def test_signal_while_loading_ends_at_once(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path
) -> None:
    process = start(
        lamplighter, tiny_bundle, tmp_path, stderr=subprocess.PIPE, stdin=subprocess.PIPE
    )
    while not handles(process.pid, signal.SIGINT):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    words = process.communicate(timeout=60)[1]
    assert process.returncode == 130, words
    assert not list(tmp_path.glob("*.png"))


def test_bar_on_a_terminal(lamplighter: Path, tiny_bundle: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    command = [str(lamplighter), "generate", "-m", str(tiny_bundle), "-p", "a"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=follower, env=environment
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        shown += piece
    os.close(leader)
    assert process.wait(timeout=60) == 0
    assert b"16/16 tokens" in shown and b"tokens/s" in shown and b"\r\x1b[K" in shown
    assert shown.rstrip().endswith(b"s") and b"output.png" in shown


def test_bar_and_stop_while_random_weights_are_made(lamplighter: Path, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [str(lamplighter), "bench", "--synthetic", "llamagen-xl-256", "-t", "1"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=follower,
        env={**os.environ, "TERM": "xterm"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    os.close(follower)
    shown = b""
    while b"GiB of weights" not in shown and select.select([leader], [], [], 60)[0]:
        shown += os.read(leader, 4096)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == 130
    os.close(leader)
    assert re.search(rb"\] \d/\d GiB of weights", shown), shown
