"""Reads the networks of MAR's recorded cases as the exporter does, and their numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from continuous_loop import RandomNumbers
from golden_cases import Case
from torch import Tensor

from models.export.mar.weights import read_mar
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


def numbers_of(case: Case, run: str, row: int) -> RandomNumbers:
    """Of an image of a run that is recorded with start and noises of the steps 1 and up, or all."""
    start, noise = case.tensors[f"{run}.x_T"][row], case.tensors[f"{run}.noise"][row]
    return RandomNumbers(start, noise)


def with_last_step(noise: Tensor) -> Tensor:
    """Noise [L,T-1,C] of the steps 1 and up -> [L,T,C]; the last step's is never read."""
    return torch.cat([torch.full_like(noise[:, :1], torch.nan), noise], 1)


class Pair:
    """The networks of a case of speculation by the folder their weights lie in, scripted for a respacing."""

    def __init__(self, case: Case) -> None:
        self.models, self.scripted = {}, {}
        dims = case.info["dims"]
        for file in case.info["weights"]["files"]:
            path = case.folder / file
            name = path.parent.name
            shape = dims[name] if isinstance(dims.get(name), dict) else dims["target"]
            heads = shape["encoder_num_heads"], shape["decoder_num_heads"]
            self.models[name] = read(path, *heads)

    def network(self, name: str, respacing: object) -> Any:
        key = name, str(respacing)
        if key not in self.scripted:
            self.scripted[key] = scripted(self.models[name], respacing)
        return self.scripted[key]


def respacing_of(case: Case, steps: int) -> str:
    """The respacing of a recorded table of `steps` steps."""
    lengths = {
        name.split(".")[1]: len(tensor)
        for name, tensor in case.tensors.items()
        if name.startswith("sched.") and name.endswith(".timestep_map")
    }
    names = [name for name, length in lengths.items() if length == steps]
    return str(steps) if str(steps) in names or not names else names[0].replace("_", ",")
