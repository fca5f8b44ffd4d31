"""Continuous speculative decoding, plainly: acceptance and residual of tokens with diagonal Gaussian last steps.

Arrays of N tokens of C channels; log densities are fp64 and leave out what cancels, C/2 log 2 pi.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class Gaussian:
    """Last denoising steps: mean and deviation [N,C], the temperature included."""

    mean: Tensor
    deviation: Tensor

    def __getitem__(self, rows: object) -> Gaussian:
        return Gaussian(self.mean[rows], self.deviation[rows])

    def log_density(self, x: Tensor) -> Tensor:
        """x [N,C] -> [N] fp64."""
        deviation = self.deviation.double()
        distance = (x.double() - self.mean.double()) / deviation
        return -0.5 * distance.square().sum(-1) - deviation.log().sum(-1)

    def sample(self, noise: Tensor) -> Tensor:
        return self.mean + self.deviation * noise


def log_ratio(x: Tensor, target: Gaussian, draft: Gaussian) -> Tensor:
    """log of target's over draft's density at x [N,C] -> [N]."""
    return target.log_density(x) - draft.log_density(x)


def accepts(uniform: Tensor, ratio: Tensor) -> Tensor:
    """bool [N]; a ratio that is no number rejects."""
    return uniform.double().log() < ratio.clamp(max=0.0)


@dataclass
class Residual:
    """token [N,C]; tries [N], the last proposal's number from 1; found [N]: it was accepted."""

    token: Tensor
    tries: Tensor
    found: Tensor


def residual(
    target: Gaussian, draft: Gaussian, log_sigma: Tensor, noise: Tensor, uniforms: Tensor
) -> Residual:
    """Acceptance and rejection from the normalised max(0, SIGMA p - q): noise [N,R,C], uniforms [N,R].

    After R proposals the last one stays.
    """
    count, cap = uniforms.shape
    token = target.sample(noise[:, -1])
    tries = torch.full((count,), cap)
    found = torch.zeros(count, dtype=torch.bool)
    open_rows = torch.arange(count)
    for r in range(cap):
        p = target[open_rows]
        proposal = p.sample(noise[open_rows, r])
        gain = log_sigma[open_rows] + log_ratio(proposal, p, draft[open_rows])
        chance = torch.where(gain > 0, -torch.expm1(-gain), 0.0)
        taken = uniforms[open_rows, r].double() < chance
        rows = open_rows[taken]
        token[rows], tries[rows], found[rows] = proposal[taken], r + 1, True
        open_rows = open_rows[~taken]
    return Residual(token, tries, found)
