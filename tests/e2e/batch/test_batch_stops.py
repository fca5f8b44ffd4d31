"""A caption set that is asked to stop."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.batch.sets import Batch, assert_same, command, manifest


def drawing(call: list[str]) -> subprocess.Popen[str]:
    """A process that has drawn its first picture."""
    process = subprocess.Popen(
        [*call, "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if json.loads(line)["event"] == "picture":
            break
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_after_the_pictures_in_work(
    lamplighter: Path, drafter_bundle: Path, captions: Path, whole: Path, batch: Batch, tmp_path: Path,
    number: signal.Signals, code: int,
) -> None:  # fmt: skip
    out = tmp_path / "out"
    process = drawing(command(lamplighter, drafter_bundle, captions, out))
    process.send_signal(number)
    _, words = process.communicate(timeout=60)
    if process.returncode != 0:  # it may have been quicker
        assert process.returncode == code
        assert "pictures stand" in words
    assert len(manifest(out)) == len(list((out / "images").iterdir()))
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_a_second_signal_ends_at_once(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = drawing(command(lamplighter, drafter_bundle, captions, out, "-b", 200))
    process.send_signal(signal.SIGSTOP)  # else the first may have done its work before the second
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    _, words = process.communicate(timeout=60)
    assert process.returncode in (130, 143)  # either may be the second
    assert "stopped" in words and "pictures stand" not in words  # which the first alone says


def test_a_stop_that_is_sent_to_the_group_too_is_one(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    process = drawing(command(lamplighter, drafter_bundle, captions, out, "-b", 200))
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, words = process.communicate(timeout=60)
    assert process.returncode == 130 and "pictures stand" in words
