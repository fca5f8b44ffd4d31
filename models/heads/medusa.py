"""Medusa heads in plain PyTorch, with the published weight names (Cai et al. 2024, section 2.1.1).

Shapes: S sequences, R rows of hidden states, H their width, K heads, V codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..eagle.batch import Batch
from ..transformer.head import Head


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
    """Head i reads the hidden state after which the target samples token t, and guesses token t + i + 1."""

    def __init__(self, config: HeadsConfig) -> None:
        super().__init__(
            nn.Sequential(
                *(ResBlock(config.hidden) for _ in range(config.blocks)),
                nn.Linear(config.hidden, config.vocabulary, bias=False),
            )
            for _ in range(config.heads)
        )
        self.config = config

    def begin(self, embedding: Tensor, head: Head) -> None:
        """Starts training from the target's head, where that is one product [V,H]."""
        if not isinstance(head, Tensor):
            return
        with torch.no_grad():
            for own in self:
                own[-1].weight.copy_(head)

    def logits(self, hidden: Tensor, head: int) -> Tensor:
        """hidden [...,H] -> [...,V]."""
        result: Tensor = self[head](hidden)
        return result

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """Yields what head i = 0 .. K - 1 reads, [S,M - 1 - i,H]."""
        hidden = batch.features[:, batch.prompt_length - 1 :]
        for head in range(len(self)):
            yield hidden[:, : hidden.shape[1] - 1 - head]
