"""Stopping a run over a caption set."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.batch.sets import Batch, assert_same, command, manifest


def generating(call: list[str]) -> subprocess.Popen[str]:
    """Starts a process and waits for its first image."""
    process = subprocess.Popen(
        [*call, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if json.loads(line)["event"] == "image":
            break
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_after_the_images_in_work(
    lamplighter: Path, drafter_bundle: Path, captions: Path, whole: Path, batch: Batch, tmp_path: Path,
    number: signal.Signals, code: int,
) -> None:  # fmt: skip
    out = tmp_path / "out"
    process = generating(command(lamplighter, drafter_bundle, captions, out))
    process.send_signal(number)
    _, words = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have finished before the signal
        assert process.returncode == code
        assert "images done" in words
    assert len(manifest(out)) == len(list((out / "images").iterdir()))
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_a_second_signal_ends_at_once(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = generating(command(lamplighter, drafter_bundle, captions, out, "-b", 200))
    process.send_signal(signal.SIGSTOP)  # both signals must arrive together
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    _, words = process.communicate(timeout=60)
    assert process.returncode in (130, 143)  # either may be the second
    assert "stopped" in words and "images done" not in words  # printed only after a single signal


def test_two_equal_signals_in_quick_succession_are_one(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = generating(command(lamplighter, drafter_bundle, captions, out, "-b", 200))
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130 and "images done" in words
