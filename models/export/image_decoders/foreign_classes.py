"""Checkpoints that carry objects of a training framework beside their weights."""

from __future__ import annotations

import zipfile
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch


class Foreign:
    """Stands for an object of a class that is not here: takes what it is given, keeps nothing."""

    def __init__(self, *_: Any) -> None:
        pass

    def __setstate__(self, _: Any) -> None:
        pass


def foreign_classes(path: Path) -> AbstractContextManager[Any]:
    """While it lasts, a file in PyTorch's zip format reads without the classes it names.

    None of their code is imported or run; the weights themselves are of classes that are known.
    """
    names: list[str] = []
    if zipfile.is_zipfile(path):
        try:
            names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        except Exception:  # no checkpoint: reading it says why
            names = []
    return torch.serialization.safe_globals([(Foreign, name) for name in names])
