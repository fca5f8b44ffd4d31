"""The cosine noise schedule of 1000 steps, respaced to fewer (Nichol and Dhariwal 2021).

Index i of a respaced schedule is 0 for the last denoising step. Tables are fp64.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import torch
from torch import Tensor

TRAINED_STEPS = 1000
LARGEST_BETA = 0.999


def cosine_betas(steps: int = TRAINED_STEPS) -> Tensor:
    """Variances of the noise that every step of training adds, fp64 [steps]."""

    def kept(t: float) -> float:
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

    pairs = ((i / steps, (i + 1) / steps) for i in range(steps))
    return torch.tensor(
        [min(1 - kept(b) / kept(a), LARGEST_BETA) for a, b in pairs], dtype=torch.double
    )


def spaced_steps(respacing: str, steps: int = TRAINED_STEPS) -> list[int]:
    """The steps of training that a respacing keeps, ascending.

    respacing: "100", counts of equal sections such as "10,15,20", "ddimN" for an integer stride,
    "25@40-960" for 25 even steps from 40 to 960, or "" for all steps. A published chain begins at the last step of
    training, where an error of the noise counts 20,000-fold, and ends at the first, which leaves next to no noise.
    ValueError: none of these, or it does not fit.
    """
    if not respacing:
        return list(range(steps))
    if respacing.startswith("ddim") and respacing[4:].isdecimal():
        wanted = int(respacing[4:])
        for stride in range(1, steps):
            if len(range(0, steps, stride)) == wanted:
                return list(range(0, steps, stride))
        raise ValueError(f"respacing {respacing!r}: no integer stride takes {wanted} of {steps}")
    if match := re.fullmatch(r"(\d+)@(\d+)-(\d+)", respacing):
        first, last = int(match[2]), int(match[3])
        if not first < last < steps:
            raise ValueError(f"respacing {respacing!r}: {first} to {last} are not of {steps} steps")
        return [first + step for step in spaced_steps(match[1], last + 1 - first)]
    words = respacing.split(",")
    if not all(word.strip().isdecimal() for word in words):
        raise ValueError(f"respacing {respacing!r}: expected counts such as 100 or 10,15,20")
    counts = [int(word) for word in words]
    size, more = divmod(steps, len(counts))
    kept: set[int] = set()
    start = 0
    for section, count in enumerate(counts):
        length = size + (section < more)
        if not 1 <= count <= length:
            raise ValueError(f"respacing {respacing!r}: {count} of a section of {length} steps")
        stride = (length - 1) / (count - 1) if count > 1 else 1.0
        position = 0.0
        for _ in range(count):  # the published code adds up, too, and rounds halves to even
            kept.add(start + round(position))
            position += stride
        start += length
    return sorted(kept)


@dataclass(frozen=True)
class Schedule:
    """Tables of a respaced schedule, fp64 [T] each; `steps` int64 are steps of training."""

    steps: Tensor
    betas: Tensor
    alphas_cumprod: Tensor

    @property
    def alphas_cumprod_prev(self) -> Tensor:
        return torch.cat([torch.ones(1, dtype=torch.double), self.alphas_cumprod[:-1]])

    @property
    def sqrt_recip_alphas_cumprod(self) -> Tensor:
        return (1 / self.alphas_cumprod).sqrt()

    @property
    def sqrt_recipm1_alphas_cumprod(self) -> Tensor:
        return (1 / self.alphas_cumprod - 1).sqrt()

    @property
    def posterior_variance(self) -> Tensor:
        return self.betas * (1 - self.alphas_cumprod_prev) / (1 - self.alphas_cumprod)

    @property
    def posterior_log_variance_clipped(self) -> Tensor:
        """Entry 0, which would be -inf, repeats entry 1."""
        variance = self.posterior_variance
        return torch.cat([variance[1:2], variance[1:]]).log()

    @property
    def posterior_mean_coef1(self) -> Tensor:
        return self.betas * self.alphas_cumprod_prev.sqrt() / (1 - self.alphas_cumprod)

    @property
    def posterior_mean_coef2(self) -> Tensor:
        kept = (1 - self.betas).sqrt()
        return (1 - self.alphas_cumprod_prev) * kept / (1 - self.alphas_cumprod)

    @property
    def log_betas(self) -> Tensor:
        return self.betas.log()

    def step_tables(self) -> Tensor:
        """Factors of every denoising step, fp32 [T,6]: sqrt_recip_alphas_cumprod,
        sqrt_recipm1_alphas_cumprod, posterior_mean_coef1, posterior_mean_coef2,
        posterior_log_variance_clipped, log_betas."""
        columns = (
            self.sqrt_recip_alphas_cumprod,
            self.sqrt_recipm1_alphas_cumprod,
            self.posterior_mean_coef1,
            self.posterior_mean_coef2,
            self.posterior_log_variance_clipped,
            self.log_betas,
        )
        return torch.stack(columns, 1).float()


def schedule(respacing: str) -> Schedule:
    """ValueError: as in spaced_steps, or fewer than two steps."""
    steps = torch.tensor(spaced_steps(respacing))
    if len(steps) < 2:
        raise ValueError(f"respacing {respacing!r}: expected two steps or more")
    alphas_cumprod = (1 - cosine_betas()).cumprod(0)[steps]
    before = torch.cat([torch.ones(1, dtype=torch.double), alphas_cumprod[:-1]])
    betas = 1 - alphas_cumprod / before
    return Schedule(steps, betas, (1 - betas).cumprod(0))
