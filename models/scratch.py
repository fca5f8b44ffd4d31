"""Temporary folders beside what is written (a bundle, a file of a data set), and what killed programs left of them.

A program holds a lock on each of its folders while it lives, so that a later one of the same name knows which
are left over: the system takes the locks of killed programs away.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = ("new", "old", "weights", "images")


def lock(folder: Path) -> int | None:
    """A descriptor that holds the folder; None where another program does, or the file system has no locks."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.stat(folder).st_ino == os.fstat(descriptor).st_ino:
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


@contextmanager
def temporary(out: Path, kind: str) -> Iterator[Path]:
    """An empty folder beside `out`, which goes away at the end, also one of its name that took its place."""
    folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.{kind}.", dir=out.parent))
    held = lock(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if held is not None:
            os.close(held)


@contextmanager
def images_folder(out: Path) -> Iterator[Path]:
    """A temporary folder for the images that `out` is made of, instead of those that killed programs left."""
    clean_leftovers(out)
    with temporary(out, "images") as folder:
        yield folder


def clean_leftovers(out: Path) -> None:
    """Removes temporary folders of `out` that no program holds; puts a bundle back that was being replaced."""
    kinds = "|".join(KINDS)
    pattern = re.compile(rf"\.{re.escape(out.name)}\.({kinds})\.[a-z0-9_]{{8}}")
    try:
        found = [p for p in out.parent.iterdir() if pattern.fullmatch(p.name) and p.is_dir()]
    except OSError:  # there is no folder yet, or none to read
        return
    for folder in found:
        held = lock(folder)
        if held is None:
            continue
        try:
            if (folder / out.name / "manifest.json").is_file() and not out.exists():
                os.rename(folder / out.name, out)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(held)
