"""A caption set shared by several processes: launchers, and the queue when processes are lost."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.batch.sets import assert_same, command, manifest


@pytest.fixture
def address() -> str:
    """An address with a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@pytest.mark.parametrize("count", [2, 4])
def test_torchrun(
    lamplighter: Path, drafter_bundle: Path, captions: Path, whole: Path, root: Path, tmp_path: Path, count: int
) -> None:  # fmt: skip
    out = tmp_path / "out"
    torchrun = root / ".venv" / "bin" / "torchrun"
    launch = [str(torchrun), "--no-python", "--standalone", "--nproc-per-node", str(count)]
    subprocess.run(
        launch + command(lamplighter, drafter_bundle, captions, out), check=True, timeout=300
    )
    assert len(list(out.glob("manifest-*.jsonl"))) == count
    assert_same(out, whole)


def worker(
    call: list[str], index: int, address: str, *more: str, **variables: str
) -> subprocess.Popen[str]:
    environment = {**os.environ, "OMPI_COMM_WORLD_RANK": str(index), "OMPI_COMM_WORLD_SIZE": "3"}
    environment.update(variables)
    words = [*call, "--queue", address, "--lease", "3", *more]
    return subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def slow(build_dir: Path) -> dict[str, str]:
    """Slows a process down, so that it cannot finish before another one starts."""
    return {"LD_PRELOAD": str(build_dir / "libfaults.so"), "FAULT": "fsync:1+:slow"}


def wait_for_images(out: Path, index: int, count: int = 1) -> None:
    end = time.monotonic() + 60
    path = out / f"manifest-{index:04d}-of-0003.jsonl"
    while not path.exists() or len(path.read_text().splitlines()) < count:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_queue_with_a_process_that_is_killed_and_begun_again(
    lamplighter: Path, drafter_bundle: Path, captions: Path, whole: Path, tmp_path: Path, address: str,
    slow: dict[str, str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    call = command(lamplighter, drafter_bundle, captions, out, "--batch-size", 2)
    lost = worker(call, 1, address)
    first = worker(call, 0, address, **slow)
    wait_for_images(out, 1)
    lost.kill()
    lost.wait()
    others = [worker(call, 1, address), worker(call, 2, address)]
    for process in (first, *others):
        _, words = process.communicate(timeout=120)
        assert process.returncode in (0, 8), words  # 8: it came after the end and found no queue
    assert first.returncode == 0
    assert_same(out, whole)


def test_queue_without_its_server(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path, address: str,
    slow: dict[str, str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    call = command(lamplighter, drafter_bundle, captions, out, "--batch-size", 2, "-b", 12)
    serving, other = worker(call, 0, address, **slow), worker(call, 1, address)
    wait_for_images(out, 1)
    serving.kill()
    serving.wait()
    _, words = other.communicate(timeout=120)
    assert other.returncode == 8 and "lost the process that serves it" in words
    generated = len(list((out / "images").iterdir()))
    assert generated < 40 * 12
    # A later run continues.
    again = [worker(call, index, address) for index in (0, 1)]
    assert [process.wait(timeout=120) for process in again] == [0, 0]
    records = manifest(out)
    assert len(records) == len(list((out / "images").iterdir())) == 40 * 12
    for record in records:
        content = (out / record["file"]).read_bytes()
        assert record["sha256"] == hashlib.sha256(content).hexdigest()


def test_queue_of_another_run_is_refused(
    lamplighter: Path, drafter_bundle: Path, captions: Path, tmp_path: Path, address: str
) -> None:
    serving = worker(
        command(lamplighter, drafter_bundle, captions, tmp_path / "a", "-b", 50), 0, address
    )
    other = worker(command(lamplighter, drafter_bundle, captions, tmp_path / "b"), 1, address)
    _, words = other.communicate(timeout=120)
    serving.kill()
    serving.wait()
    assert other.returncode == 2 and "another run" in words
