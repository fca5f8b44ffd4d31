"""Files of a data set: lines that must stay the same, results that exist only when complete."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import torch

from ..archive import PatientFile
from ..export.checkpoint import ExportError


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ExportError(f"{path}: expected UTF-8: {error}") from error


def read_lines(path: Path) -> list[str]:
    return read_text(path).splitlines()


def prepare_lines(kept: Path, lines: list[str], source: str) -> None:
    """What a data set is made of; on a later call it must be the same."""
    if kept.exists():
        before = kept.read_text(encoding="utf-8").splitlines()
        common = min(len(before), len(lines))
        if before[:common] != lines[:common]:
            raise ExportError(
                f"{kept}: holds other {kept.stem} than {source}; use another folder", 7
            )
        if common == len(lines):
            return
    kept.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(kept)
    partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
    os.replace(partial, kept)


def keep(partial: Path, out: Path) -> None:
    """A finished file, perhaps of another file system, gets its name."""
    moved = partial_name(out)
    shutil.move(partial, moved)
    os.replace(moved, out)


def save_whole(content: Any, out: Path) -> None:
    """Writes what torch.load reads, or leaves the file that is there. OSError: the disk is full."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = partial_name(out)
    with partial.open("wb") as stream:
        patient = PatientFile(stream)
        torch.save(content, patient)
    if patient.error:
        partial.unlink()
        raise patient.error
    os.replace(partial, out)


def partial_name(out: Path) -> Path:
    """Beside the file; two trainings into one folder do not share it."""
    return out.with_name(out.name + ".partial")
