"""Muon: momentum whose update is orthogonalised (Jordan et al. 2024), for matrices and convolutions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor

from ...precision import fast_dtype


def orthogonalise(matrices: Tensor, steps: int = 4) -> Tensor:
    """Approximately U V^T of matrices [b, m, n] by quintic Newton-Schulz iterations in the fast precision."""
    x = matrices.to(fast_dtype(matrices.device))
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
    """Matrices, and 4-D weights as [out, rest].

    relative: every step moves a weight by lr times its own norm, for networks whose norms undo the
    scale of their weights. Else lr is the root mean square of a step, and weights shrink by lr * decay.
    """

    def __init__(
        self,
        parameters: Iterable[Tensor],
        lr: float = 0.02,
        momentum: float = 0.95,
        relative: bool = True,
        decay: float = 0.0,
    ) -> None:
        defaults = {"lr": lr, "momentum": momentum, "relative": relative, "decay": decay}
        super().__init__(parameters, defaults)

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
                    size = weight.norm() if group["relative"] else weight.numel() ** 0.5
                    weight.mul_(1 - group["lr"] * group["decay"])
                    weight.sub_(
                        update.view_as(weight) * (group["lr"] * size / (update.norm() + 1e-7))
                    )
