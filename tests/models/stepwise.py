"""What every target of the engine is held to."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

CAUSAL = torch.empty(0, dtype=torch.int64)


def empty_cache(config: Any, sequences: int, slots: int) -> Tensor:
    return torch.zeros(config.n_layer, 2, sequences, config.n_kv_head, slots, config.head_dim)


def hidden_by_steps(module: torch.nn.Module, config: Any, ids: Tensor) -> tuple[Any, Tensor]:
    """The scripted form of a target, and its hidden states of ids [2,9]: five as a prompt, then one by one."""
    target = torch.jit.script(module)
    target.prepare(torch.empty(0))
    cache = empty_cache(config, 2, 9)
    got, start = [], 0
    for stop in (5, 6, 7, 8, 9):
        positions = torch.arange(start, stop).expand(2, -1).contiguous()
        x = target.embed(ids[:, start:stop].contiguous())
        hidden, features = target(x, positions, CAUSAL, torch.full((2,), start), cache)
        assert torch.equal(hidden, features)
        got.append(hidden)
        start = stop
    return target, torch.cat(got, 1)
