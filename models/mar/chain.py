"""The denoising chain in plain PyTorch, as training needs it: with gradients, and its steps to be had.

Shapes: N tokens of C channels, T steps of a respaced schedule; index 0 is the last step.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .diffusion import Schedule
from .network import HeadNetwork


@dataclass
class Steps:
    """Inputs, means and log deviations [T,N,C] of every step of chains, the last step first."""

    inputs: Tensor
    means: Tensor
    log_deviations: Tensor


class Chain:
    """Runs the steps of a schedule on a device."""

    def __init__(self, tables: Schedule, device: torch.device | str = "cpu") -> None:
        self.steps = tables.steps.to(device)
        self.tables = tables.step_tables().to(device)

    def step(self, net: HeadNetwork, x: Tensor, i: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log deviation of steps i int64 [N], without guidance."""
        noise, variance = net(x, self.steps[i], z).chunk(2, -1)
        t = self.tables[i].T[:, :, None]
        share = (variance + 1) / 2
        mean = t[2] * (t[0] * x - t[1] * noise) + t[3] * x
        return mean, 0.5 * (share * t[5] + (1 - share) * t[4])

    def run(
        self, net: HeadNetwork, z: Tensor, start: Tensor, noise: Tensor, temperature: float = 1.0
    ) -> Steps:
        """z [N,D], start [N,C], noise [N,T,C], of which index 0 is not read."""
        x, seen = start, []
        for number in reversed(range(len(self.steps))):
            i = torch.full((len(x),), number, device=x.device)
            mean, log_deviation = self.step(net, x, i, z)
            seen.append((x, mean, log_deviation))
            x = mean + temperature * log_deviation.exp() * noise[:, number]
        return Steps(*(torch.stack(column[::-1]) for column in zip(*seen, strict=True)))
