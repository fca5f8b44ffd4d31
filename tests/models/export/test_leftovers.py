"""What killed exporters leave beside a bundle goes away with the next run of the same bundle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from llamagen_files import Files

from models import bundle
from models.scratch import clean_leftovers, temporary

ROOT = Path(__file__).resolve().parents[3]
HOLD = """
import sys, time
from pathlib import Path
from models.scratch import temporary
with temporary(Path(sys.argv[1]), sys.argv[2]) as folder:
    (folder / "half").write_bytes(b"x" * 1000)
    print(folder, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("kind", ["new", "weights", "images"])
def test_folders_of_killed_programs_go_and_held_ones_stay(tmp_path: Path, kind: str) -> None:
    out = tmp_path / "bundle"
    words = [sys.executable, "-c", HOLD, str(out), kind]
    running = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert running.stdout is not None
    folder = Path(running.stdout.readline().strip())
    others = [tmp_path / name for name in (".bundle.git", ".bundle.new.x", ".other.new.abcdefgh")]
    for other in others:
        other.mkdir()
    clean_leftovers(out)
    assert (folder / "half").is_file()
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    clean_leftovers(out)
    assert not folder.exists() and all(other.is_dir() for other in others)


def test_the_next_export_cleans_even_if_it_fails(files: Files) -> None:
    for left in (".bundle.new.abcdefgh", ".bundle.weights.a_1b2c3d"):
        (files.folder / left).mkdir()
        (files.folder / left / "target.pt").write_bytes(b"half")
    assert files.export("--gpt", files.folder / "none.pt") == 4
    assert not files.leftovers()


def test_a_bundle_that_was_being_replaced_is_put_back(tmp_path: Path) -> None:
    """Where the system cannot exchange two folders, a program may end between both renames."""
    out = tmp_path / "bundle"
    kept = tmp_path / ".bundle.old.abcdefgh" / "bundle"
    kept.mkdir(parents=True)
    (kept / "manifest.json").write_text("{}")
    clean_leftovers(out)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    assert (out / "manifest.json").read_text() == "{}"


def test_replacing_without_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "exchange", lambda *_: False)
    out = tmp_path / "bundle"
    out.mkdir()
    (out / "a").write_text("old")
    with bundle.replacing(out) as folder:
        (folder / "a").write_text("new")
    assert (out / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]

    def fail(source: object, target: object) -> None:
        if Path(str(target)) == out:
            monkeypatch.undo()
            raise OSError("no")
        rename(source, target)

    rename = os.rename
    monkeypatch.setattr(bundle, "exchange", lambda *_: False)
    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="no"), bundle.replacing(out) as folder:
        (folder / "a").write_text("newer")
    assert (out / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_folder_goes_away_with_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), temporary(tmp_path / "bundle", "new"):
        raise KeyError
    assert not list(tmp_path.iterdir())
