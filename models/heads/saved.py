"""The file that a training of heads writes and continues from, which their exporters read."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from ..eagle.files import save_whole
from ..export import checkpoint
from ..export.checkpoint import ExportError


def resume(out: Path, heads: Any, optimizer: torch.optim.Optimizer) -> tuple[int, float]:
    """Steps and seconds so far. ExportError: the file holds something else."""
    saved = checkpoint.read_file(out)
    known = isinstance(saved, dict) and "optimizer" in saved
    if not known or saved["config"] != asdict(heads.config):
        raise ExportError(f"{out}: holds other heads; name a new file", 7)
    heads.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"], saved["seconds"]


def save(
    out: Path, heads: Any, optimizer: torch.optim.Optimizer, step: int, seconds: float
) -> None:
    """Replaces the file as a whole."""
    parts = {"model": heads.state_dict(), "optimizer": optimizer.state_dict()}
    clock = {"step": step, "seconds": seconds}
    save_whole({"config": asdict(heads.config), **parts, **clock}, out)
