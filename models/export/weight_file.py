"""Reads one file of weights: its format, and what is wrong with it."""

from __future__ import annotations

import argparse
import pickle
import zipfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from .messages import ExportError

ZIP = b"PK\x03\x04"
PICKLED = (ZIP, b"\x80")  # archives of torch.save; its format before them


def read_file(path: Path) -> Any:
    """Content of a .safetensors or a pickled checkpoint, on the CPU; no code of it is run."""
    if not path.is_file():
        raise ExportError(
            f"{path}: {'is a folder, expected a file' if path.is_dir() else 'no such file'}"
        )
    try:
        with path.open("rb") as stream:
            head = stream.read(64).lstrip()
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from error
    if head.startswith((b"<", b"version https://git-lfs")):
        raise ExportError(
            f"{path}: got {'an HTML page' if head.startswith(b'<') else 'a Git LFS pointer'}, "
            "expected a checkpoint; download the file itself"
        )
    if not head:
        raise ExportError(f"{path}: damaged or no checkpoint: the file is empty")
    named_safe = path.suffix == ".safetensors"
    if not named_safe and not head.startswith(PICKLED) and head[8:9] != b"{":
        raise ExportError(
            f"{path}: damaged or no checkpoint: it begins with {head[:4]!r}, expected what torch.save or "
            "safetensors write"
        )
    if head.startswith(ZIP):
        check_archive(path)
    try:
        if named_safe or not head.startswith(PICKLED):
            return load_file(path)
        # Training containers carry the command line they were made with.
        with torch.serialization.safe_globals([argparse.Namespace]):
            try:
                return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except RuntimeError:  # written before the zip format, which alone can be mapped
                return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "WeightsUnpickler error" not in str(error):
            raise damaged(path, error) from error
        raise ExportError(
            f"{path}: got a checkpoint with objects besides tensors, which are code; expected the "
            "weights alone, a state dict"
        ) from error
    except (RuntimeError, EOFError, ValueError, OSError, SafetensorError) as error:
        raise damaged(path, error) from error
    except Exception as error:  # an unpickler stumbles over foreign bytes in any way
        kind = "safetensors of a known dtype" if path.suffix == ".safetensors" else "pickle"
        raise damaged(path, ValueError(f"its bytes are no {kind}")) from error


def damaged(path: Path, error: Exception) -> ExportError:
    reason = str(error).strip().partition("\n")[0].partition(". ")[0] or "it ends early"
    return ExportError(f"{path}: damaged or no checkpoint: {reason}")


def parts_of(path: Path) -> list[zipfile.ZipInfo]:
    """The files in an archive; none where there is no whole archive."""
    try:
        if not zipfile.is_zipfile(path):
            return []
        with zipfile.ZipFile(path) as archive:
            return archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):  # damaged
        return []


def has_part(parts: list[zipfile.ZipInfo], name: str) -> bool:
    return any(part.filename.partition("/")[2] == name for part in parts)


def is_script(path: Path) -> bool:
    """Whether a file is an archive of torch.jit.save."""
    return has_part(parts_of(path), "constants.pkl")


def check_archive(path: Path) -> None:
    """ExportError: the archive is no checkpoint, or its parts cannot be mapped into memory."""
    parts = parts_of(path)
    if has_part(parts, "constants.pkl"):
        raise ExportError(
            f"{path}: got a TorchScript archive, which is a program; expected the weights alone, a "
            "state dict"
        )
    if parts and not has_part(parts, "data.pkl"):
        raise ExportError(f"{path}: got a zip archive of other files, expected a checkpoint")
    if any(part.compress_type != zipfile.ZIP_STORED for part in parts):
        raise ExportError(
            f"{path}: its parts are compressed, expected them as torch.save writes them; load it with "
            "torch.load and save it again"
        )
