"""Errors of measurement in one line, and optional packages."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

from ..export.checkpoint import ExportError


class EvaluationError(ExportError):
    """Says in one line what cannot be measured."""

    def __init__(self, message: str, exit_code: int = 3) -> None:
        super().__init__(message, exit_code)


def package(module: str, pip_name: str, needed_by: str) -> ModuleType:
    """A module of an optional package."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        hint = f"pip install {pip_name}"
        if error.name and error.name.split(".")[0] != module.split(".")[0]:
            hint = f"{pip_name} itself needs {error.name}: pip install it"
        raise EvaluationError(f"{needed_by}: {pip_name} is not installed ({hint})") from error


def weights_file(path: Path | None, flag: str, what: str) -> Path:
    """The file that a flag names. Nothing is fetched."""
    if path is None:
        raise EvaluationError(f"{flag}: missing, expected {what}; nothing is downloaded")
    if not path.is_file():
        raise EvaluationError(f"{flag}: {path}: no such file, expected {what}")
    return path
