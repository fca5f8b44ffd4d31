"""Reads checkpoints: what exporters and trainings need of the modules beside this one."""

from __future__ import annotations

from .json_file import read_json
from .messages import ExportError
from .names import settled, unwrap
from .shards import read_folder
from .tensors import (
    State,
    check_form,
    check_keys,
    count_blocks,
    load_strictly,
    shape_of,
    usable,
    widest,
    without,
)
from .weight_file import damaged, is_script, read_file

__all__ = [
    "ExportError",
    "State",
    "check_form",
    "check_keys",
    "count_blocks",
    "damaged",
    "is_script",
    "load_strictly",
    "read_file",
    "read_folder",
    "read_json",
    "settled",
    "shape_of",
    "unwrap",
    "usable",
    "widest",
    "without",
]
