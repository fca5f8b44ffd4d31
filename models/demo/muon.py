"""Muon: momentum whose update is orthogonalised (Jordan et al. 2024), for matrices and convolutions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor


def orthogonalise(matrices: Tensor, steps: int = 4) -> Tensor:
    """Approximately U V^T of matrices [b, m, n] by quintic Newton-Schulz iterations in bf16."""
    x = matrices.to(torch.bfloat16)
    wide = x.shape[1] <= x.shape[2]
    x = x if wide else x.mT
    x = x / (torch.linalg.vector_norm(x.float(), dim=(1, 2), keepdim=True) + 1e-7).to(x.dtype)
    for _ in range(steps):
        gram = torch.bmm(x, x.mT)
        x = torch.baddbmm(
            x, torch.baddbmm(gram, gram, gram, beta=-4.7750, alpha=2.0315), x, beta=3.4445
        )
    return (x if wide else x.mT).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """lr is relative: every step moves a weight by lr times its own norm (4-D weights as [out, rest])."""

    def __init__(
        self, parameters: Iterable[Tensor], lr: float = 0.02, momentum: float = 0.95
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            by_shape: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = defaultdict(list)
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                average = state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
                ahead = weight.grad.lerp(average, group["momentum"]).flatten(1)
                by_shape[tuple(ahead.shape)].append((weight, ahead))
            for pairs in by_shape.values():
                updates = orthogonalise(torch.stack([ahead for _, ahead in pairs]))
                for (weight, _), update in zip(pairs, updates):
                    scale = group["lr"] * weight.norm() / (update.norm() + 1e-7)
                    weight.sub_(update.view_as(weight) * scale)
