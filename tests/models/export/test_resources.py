"""What an export needs of memory and disk, and what it leaves behind when it is stopped."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from chameleon_files import SHAPE, Files, save_model
from torch import Tensor

from models.chameleon.config import ChameleonConfig
from models.chameleon.transformer import weight_shapes

ROOT = Path(__file__).resolve().parents[3]
LARGE = replace(SHAPE, dim=512, n_layer=2, ffn_dim=1024, vocab_size=3000)


def command(files: Files) -> list[str]:
    words = ("anole", "--model", files.model, "--config", files.config, "--out", files.out)
    return [sys.executable, "-m", "models.export", *map(str, words)]


@pytest.fixture(scope="module")
def large_state() -> dict[str, Tensor]:
    return {name: torch.full(shape, 0.01) for name, shape in weight_shapes(LARGE).items()}


@pytest.mark.parametrize("room", [3_000_000, 10_000_000])
def test_disk_full(tmp_path: Path, large_state: dict[str, Tensor], room: int) -> None:
    """No file may grow beyond `room` bytes: less than a weight, or less than the archive."""
    files = Files(tmp_path)
    save_model(files.model, LARGE, large_state, "heads")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    done = subprocess.run(
        command(files), cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, timeout=300
    )
    lines = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
    assert done.returncode == 7, done.stderr
    assert lines == [f"error: {files.out}: File too large"]
    assert ("reading weights: 100 %" in done.stdout) == (room > 3_000_000)
    assert not files.leftovers()


def test_terminated(tmp_path: Path, large_state: dict[str, Tensor]) -> None:
    files = Files(tmp_path)
    save_model(files.model, LARGE, large_state, "heads")
    running = subprocess.Popen(
        command(files), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert running.stdout is not None
    assert any("reading weights: 0 %" in line for line in iter(running.stdout.readline, ""))
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=60) == 143
    running.stdout.close()
    assert not files.leftovers()


def test_interrupted_while_torch_is_loaded(tmp_path: Path) -> None:
    interrupts = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nsignal.pause()\n"
    (tmp_path / "torch.py").write_text(interrupts)
    done = subprocess.run(
        [sys.executable, "-m", "models.export", "--help"], cwd=ROOT, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)}, timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (130, "error: stopped\n")


def largest_memory(words: list[str]) -> int:
    """Bytes of memory that belong to the process alone, at most; mapped files do not count.

    What is freed goes back at once, so that only what is in use is seen.
    """
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"}
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.DEVNULL, env=environment)
    status, largest = Path(f"/proc/{process.pid}/status"), 0
    while process.poll() is None:
        for line in status.read_text().splitlines():
            if line.startswith("RssAnon:"):
                largest = max(largest, int(line.split()[1]) * 1024)
        time.sleep(0.002)
    assert process.returncode == 0
    return largest


def test_memory(tmp_path: Path) -> None:
    """A model needs less than its largest shard and a layer, whatever its size."""
    small = Files(tmp_path / "small")
    large = Files(tmp_path / "large")
    shape = ChameleonConfig(
        dim=1024, n_layer=12, n_head=16, n_kv_head=16, ffn_dim=2816, vocab_size=8000
    )
    sizes = []
    for files, config in ((small, replace(shape, n_layer=1, vocab_size=80)), (large, shape)):
        shapes = weight_shapes(config)
        weights = {name: torch.full(s, 0.01, dtype=torch.bfloat16) for name, s in shapes.items()}
        save_model(files.model, config, weights, "heads", shards=3)
        sizes.append(largest_memory(command(files)))
    shard = max(path.stat().st_size for path in large.model.glob("*.safetensors"))
    assert (large.out / "target.pt").stat().st_size > 2.5 * shard
    assert sizes[1] - sizes[0] < shard


def test_address_space_too_small_for_torch() -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))

    words = [sys.executable, "-m", "models.export", "llamagen", "--gpt", "x", "--out", "y"]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, text=True, preexec_fn=limit, timeout=60
    )
    assert done.returncode == 6, done.stderr
    assert done.stderr.startswith("error: Torch cannot be loaded: lib")
    assert done.stderr.count("\n") == 1 and "ulimit -v" in done.stderr
