"""Random weights of published shapes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import torch
from torch import Tensor


def random_weights(
    shapes: Mapping[str, tuple[int, ...]], seed: int, bias: float, tables: Collection[str]
) -> dict[str, Tensor]:
    """Random weights that keep every layer's output in range: norms around 1, biases of the given deviation, rows of `tables` as
    they come, matrices by their width."""
    random = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=random)
        if name.endswith("norm"):
            state[name] = 1 + 0.1 * noise
        elif len(shape) == 1:
            state[name] = bias * noise
        else:
            state[name] = noise if name in tables else noise * shape[1] ** -0.5
    return state
