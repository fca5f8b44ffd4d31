"""Medusa heads in plain PyTorch, with the published weight names (Cai et al. 2024, section 2.1.1)."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn


@dataclass
class HeadsConfig:
    """heads K; blocks: residual blocks of a head; hidden H; vocabulary V: codes that a head can give."""

    hidden: int
    vocabulary: int
    heads: int = 4
    blocks: int = 1


class ResBlock(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.linear = nn.Linear(hidden, hidden)
        nn.init.zeros_(self.linear.weight)  # begins as the identity
        nn.init.zeros_(self.linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.silu(self.linear(x))


class Heads(nn.ModuleList):
    """Head i reads the hidden state after which the target draws token t, and guesses token t + i + 1."""

    def __init__(self, config: HeadsConfig) -> None:
        super().__init__(
            nn.Sequential(
                *(ResBlock(config.hidden) for _ in range(config.blocks)),
                nn.Linear(config.hidden, config.vocabulary, bias=False),
            )
            for _ in range(config.heads)
        )
        self.config = config

    def logits(self, hidden: Tensor, head: int) -> Tensor:
        """hidden [...,H] -> [...,V]."""
        result: Tensor = self[head](hidden)
        return result
