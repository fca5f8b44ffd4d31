"""Caption sets under faults: killed processes, failing disks, exhausted memory, damaged manifests."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.batch.sets import ITEMS, Batch, assert_same, command, manifest


def test_kill_at_any_moment(
    lamplighter: Path, drafter_bundle: Path, captions: Path, whole: Path, tmp_path: Path
) -> None:
    """Kills a run a hundred times; a complete folder is started anew."""
    chance = random.Random(5)
    out = tmp_path / "out"
    call = command(lamplighter, drafter_bundle, captions, out)
    kills = 0
    while kills < 100:
        process = subprocess.Popen(call, stdout=subprocess.DEVNULL)
        try:
            process.wait(timeout=chance.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            kills += 1
            for image in (out / "images").glob("*") if out.exists() else []:
                assert image.read_bytes() == (whole / "images" / image.name).read_bytes()
            continue
        assert process.returncode == 0
        assert_same(out, whole)
        shutil.rmtree(out)
    subprocess.run(call, check=True, timeout=300)
    assert_same(out, whole)


@pytest.mark.parametrize("call", ["rename", "fsync", "fdatasync", "write"])
@pytest.mark.parametrize("number", [3, 12])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_kill_between_the_steps_of_a_write(
    batch: Batch, build_dir: Path, whole: Path, tmp_path: Path, call: str, number: int, moment: str
) -> None:
    out = tmp_path / "out"
    faults = str(build_dir / "libfaults.so")
    stopped = batch(out, LD_PRELOAD=faults, FAULT=f"{call}:{number}:{moment}")
    assert stopped.returncode == -signal.SIGKILL
    assert batch(out).returncode == 0
    assert_same(out, whole)


@pytest.mark.parametrize("call", ["rename", "fsync", "fdatasync", "write"])
@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_disk_that_fails(
    batch: Batch, build_dir: Path, whole: Path, tmp_path: Path, call: str, error: int
) -> None:
    out = tmp_path / "out"
    result = batch(out, LD_PRELOAD=str(build_dir / "libfaults.so"), FAULT=f"{call}:9+:{error}")
    assert result.returncode == 7
    assert os.strerror(error) in result.stderr and len(result.stderr.splitlines()) == 1
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_folders_that_cannot_be_written(batch: Batch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (Path("/proc/out"), tmp_path / "file", tmp_path / "file" / "out"):
        result = batch(out)
        assert result.returncode == 7, result.stderr
        assert "cannot" in result.stderr and len(result.stderr.splitlines()) == 1


def test_memory_that_fails_once_costs_nothing(
    batch: Batch, build_dir: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    faults = str(build_dir / "libfaults.so")
    assert (
        batch(out, LD_PRELOAD=faults, FAULT=f"posix_memalign:6000:{errno.ENOMEM}").returncode == 0
    )
    assert_same(out, whole)


def test_images_that_fail_are_recorded_and_generated_later(
    batch: Batch, build_dir: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    fault = {
        "LD_PRELOAD": str(build_dir / "libfaults.so"),
        "FAULT": f"posix_memalign:6000-6003:{errno.ENOMEM}",
    }
    result = batch(out, "--retry", 0, "--json", **fault)
    assert result.returncode == 8 and "could not be generated" in result.stderr
    failed = [line for line in manifest(out) if line["status"] == "failed"]
    assert 1 <= len(failed) <= 4
    assert all("out of memory" in line["error"] for line in failed)
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert events[-1]["event"] == "end" and events[-1]["failed"] == len(failed)
    assert len(list((out / "images").iterdir())) == ITEMS - len(failed)
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_memory_that_stays_exhausted_ends_the_run(
    batch: Batch, build_dir: Path, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    faults = str(build_dir / "libfaults.so")
    result = batch(out, LD_PRELOAD=faults, FAULT=f"posix_memalign:6000+:{errno.ENOMEM}")
    assert result.returncode == 6 and len(result.stderr.splitlines()) == 1
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_the_image_of_an_unfinished_line_is_generated_again(
    batch: Batch, whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    path = out / "manifest.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert batch(out).returncode == 0
    assert_same(out, whole)


def test_a_damaged_line_is_reported(batch: Batch, whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(whole, out)
    lines = (out / "manifest.jsonl").read_text().splitlines()
    lines[3] = lines[3][:40]
    (out / "manifest.jsonl").write_text("\n".join(lines) + "\n")
    result = batch(out)
    assert result.returncode == 3 and "manifest.jsonl line 4" in result.stderr
