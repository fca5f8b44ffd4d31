"""Bundles are replaced whole, and keep to their folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from models.bundle import edited, exchange, replacing


def make(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"files": {"a.pt": {}}, "about": text}))
    (folder / "a.pt").write_text(text)
    return folder


def replace(out: Path, text: str) -> None:
    with replacing(out) as folder:
        (folder / "manifest.json").write_text(text)


@pytest.mark.parametrize("step", [1, 2])
def test_there_is_a_bundle_at_every_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """Whichever renaming a kill comes before."""
    out = make(tmp_path / "bundle", "old")
    if not exchange(out, make(tmp_path / "other", "new")):
        pytest.skip("this file system cannot exchange folders")
    rename, calls = os.rename, 0

    def killed(*names: Path) -> None:
        nonlocal calls
        calls += 1
        if calls == step:
            raise KeyboardInterrupt
        rename(*names)

    monkeypatch.setattr(os, "rename", killed)
    try:
        replace(out, "newer")
    except KeyboardInterrupt:
        pass
    assert (out / "manifest.json").is_file()


def test_what_replaces_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, forced = make(tmp_path / "bundle", "old"), set()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        forced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    replace(out, "new")
    assert (out / "manifest.json").read_text() == "new"
    assert {path.stat().st_ino for path in (tmp_path, out, out / "manifest.json")} <= forced
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_without_exchange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = make(tmp_path / "bundle", "old")
    monkeypatch.setattr("models.bundle.exchange", lambda *folders: False)
    replace(out, "new")
    assert (out / "manifest.json").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_an_error_leaves_the_bundle(tmp_path: Path) -> None:
    out = make(tmp_path / "bundle", "old")
    with pytest.raises(RuntimeError), replacing(out):
        raise RuntimeError
    assert (out / "a.pt").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    out = make(tmp_path / "bundle", "old")
    (out / "a.pt").unlink()
    (out / "a.pt").symlink_to("/etc/hostname")
    with pytest.raises(ValueError, match="link out of the bundle's folder"), edited(out):
        pass
