"""Reads the networks of MAR's recorded cases as the exporter does, and their draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from continuous_loop import Draws
from golden_cases import Case
from torch import Tensor

from models.export.mar_weights import read_mar
from models.mar.diffusion import schedule
from models.mar.network import MAR
from models.mar.target_module import TargetModule


def read(path: Path, encoder_heads: int, decoder_heads: int) -> MAR:
    return read_mar(path, (encoder_heads, decoder_heads)).model


def scripted(model: MAR, respacing: object) -> Any:
    """The network as a bundle has it, prepared for the engine's operators."""
    engine.operators()
    module = torch.jit.script(TargetModule(model, schedule(str(respacing))))
    module.prepare(torch.empty(0))
    return module


def draws_of(case: Case, run: str, row: int) -> Draws:
    """Of a picture of a run that is recorded with start and noises of the steps 1 and up, or all."""
    start, noise = case.tensors[f"{run}.x_T"][row], case.tensors[f"{run}.noise"][row]
    return Draws(start, noise)


def with_last_step(noise: Tensor) -> Tensor:
    """Noise [L,T-1,C] of the steps 1 and up -> [L,T,C]; the last step's is never read."""
    return torch.cat([torch.full_like(noise[:, :1], torch.nan), noise], 1)


def pair_networks(case: Case) -> dict[str, Any]:
    """The networks of a case of speculation, scripted, by the folder their weights lie in."""
    dims = case.info["dims"]
    run = next(iter({**case.info.get("reference_runs", {}), **case.info["released_runs"]}.values()))
    found = {}
    for file in case.info["weights"]["files"]:
        path = case.folder / file
        name = path.parent.name
        shape = dims[name] if isinstance(dims.get(name), dict) else dims["target"]
        model = read(path, shape["encoder_num_heads"], shape["decoder_num_heads"])
        found[name] = scripted(model, run["num_sampling_steps"])
    return found
