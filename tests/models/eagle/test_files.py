"""Files of trainings: whole or not at all, each under its own name."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from models.eagle.files import prepare_lines, save_whole


@pytest.fixture
def small_files() -> Iterator[None]:
    """Writing beyond 64 KB fails, as on a full disk; python ignores the signal."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_leaves_the_file_before(tmp_path: Path) -> None:
    out = tmp_path / "heads.pt"
    save_whole({"step": 1}, out)
    with pytest.raises(OSError, match="too large"):
        save_whole({"step": 2, "model": torch.zeros(1 << 16)}, out)
    assert torch.load(out, weights_only=True) == {"step": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["heads.pt"]


def test_names_that_differ_in_their_ending_are_written_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two trainings that save at one moment; each waits for the other before it gives its file the name."""
    both = threading.Barrier(2, timeout=60)
    save = torch.save

    def together(content: Any, stream: Any) -> None:
        both.wait()
        save(content, stream)
        both.wait()

    monkeypatch.setattr(torch, "save", together)
    names = ("drafter.mlp", "drafter.medusa")
    threads = [
        threading.Thread(target=save_whole, args=({"name": name}, tmp_path / name))
        for name in names
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in names:
        assert torch.load(tmp_path / name, weights_only=True) == {"name": name}


def test_killed_while_lines_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that holds half a caption would belong to other captions."""
    write = Path.write_text

    def killed(path: Path, text: str, **options: Any) -> int:
        write(path, text[:5], **options)
        raise KeyboardInterrupt

    kept = tmp_path / "captions.txt"
    monkeypatch.setattr(Path, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        prepare_lines(kept, ["a red boat", "a tree"], "x")
    monkeypatch.undo()
    prepare_lines(kept, ["a red boat", "a tree"], "x")
    assert kept.read_text() == "a red boat\na tree\n"


GENERATE = """
import sys
from pathlib import Path
from types import SimpleNamespace
from models.eagle.data import generate_codes
model = SimpleNamespace(prompt_kind="class", grid={"width": 32, "height": 32}, bundle="b", manifest={"modules": {}})
generate_codes(model, ["1"], 0, Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_images_of_a_killed_program_go_with_the_next_one(tmp_path: Path) -> None:
    """They lie beside the file that they are for, not in the system's temporary folder."""
    engine, out = tmp_path / "engine", tmp_path / "data" / "codes-00000.json"
    out.parent.mkdir()
    engine.write_text("#!/bin/sh\nexec sleep 600\n")
    engine.chmod(0o755)
    root = Path(__file__).resolve().parents[3]
    words = [sys.executable, "-c", GENERATE, str(out), str(engine)]
    running = subprocess.Popen(words, cwd=root, start_new_session=True)
    end = time.monotonic() + 120
    while not list(out.parent.glob(".codes-00000.json.images.*/prompts.jsonl")):
        assert time.monotonic() < end and running.poll() is None
        time.sleep(0.01)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert len(list(out.parent.iterdir())) == 1
    engine.write_text('#!/bin/sh\nwhile [ "$1" != --save-codes ]; do shift; done\necho [] > "$2"\n')
    subprocess.run(words, cwd=root, check=True, timeout=120)
    assert list(out.parent.iterdir()) == [out] and out.read_text() == "[]\n"
