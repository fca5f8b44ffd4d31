"""Reads JSON files strictly: whatever a program could read in two ways is an error."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from .messages import ExportError

MOST_BYTES = 256 << 20  # the largest published tokenizer has 33 MB
MOST_DEPTH = 48
MOST_DIGITS = 18  # what 64 bits hold


def read_json(path: Path, exit_code: int = 4) -> dict[str, Any]:
    """The object in a file.

    ExportError: the file is missing, is not UTF-8 or JSON, is too large or too deep, has a key twice,
    or a number that is not finite.
    """
    try:
        if path.exists() and not path.is_file():
            raise ExportError(f"{path}: is no file, expected a JSON file", exit_code)
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise ExportError(
                f"{path}: has {size} bytes, expected a JSON file of at most {MOST_BYTES}", exit_code
            )
        value = parse(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise ExportError(f"{path}: no such file", exit_code) from error
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror or error}", exit_code) from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else error
        raise ExportError(f"{path}: not valid JSON: {reason}", exit_code) from error
    if not isinstance(value, dict):
        raise ExportError(f"{path}: expected a JSON object, got {type(value).__name__}", exit_code)
    return value


def parse(text: str) -> Any:
    """ValueError or RecursionError: see read_json."""
    value = json.loads(
        text,
        object_pairs_hook=unique,
        parse_constant=refuse_constant,
        parse_float=finite,
        parse_int=whole,
    )
    check_depth(value)
    return value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))
        raise ValueError(f"key {twice} stands there twice")
    return value


def refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large a number")
    return value


def whole(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"{text[:20]}... is too large a number")
    return int(text)


def check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise RecursionError
