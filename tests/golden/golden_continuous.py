"""Recorded pictures of continuous tokens, drawn by the engine's loop with the recorded random numbers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from torch import Tensor

from models.bundle import Bundle, BundleModule
from models.export.mar.bundle import KIND, manifest_entries
from models.mar.diffusion import schedule
from models.mar.network import MAR
from models.mar.target_module import TargetModule

DEFAULTS = argparse.Namespace(
    cfg_scale=1.0, size=None, temperature=1.0, cfg_schedule="constant", grid=None
)


def bundle(folder: Path, respacing: object, target: MAR, drafter: MAR | None = None) -> Path:
    """A bundle of networks alone."""
    tables = schedule(str(respacing))
    made = Bundle("recorded", "mar", "none", "recorded")
    made.entries = manifest_entries(target.config, 16, DEFAULTS)
    made.entries["diffusion"] = {"steps": len(tables.steps), "respacing": str(respacing)}
    made.modules["target"] = BundleModule(TargetModule(target, tables), torch.float32)
    if drafter:
        module = TargetModule(drafter, tables)
        made.drafters["small"] = BundleModule(module, torch.float32, entries={"kind": KIND})
    made.write(folder, overwrite=True)
    return folder


def draw(folder: Path, inputs: dict[str, Tensor], **options: Any) -> dict[str, Tensor]:
    """tests/tools/golden_continuous.cpp."""
    return engine.decode(folder, inputs, program="golden_continuous", **options)
