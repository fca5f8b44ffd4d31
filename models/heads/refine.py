"""A refiner of stale drafts in plain PyTorch: it drafts a window of speculative Jacobi decoding anew.

A pass of the target leaves rows of rejected drafts behind the last token it accepted. Row k read the stale
token of its position and predicts the next one. A refiner reads the token that stands there now and corrects
the prediction of the row; behind the last row it continues alone. It has no attention and no cache: the rows
hold the image.

Shapes: n images, L positions of a window, H width of the target's hidden states (guided: that is linear), I
inner width, V codes of its head.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

NORM_EPS = 1e-6


@dataclass
class RefinerConfig:
    """width: of the embedding of codes."""

    hidden: int
    codes: int
    inner: int = 256
    width: int = 128


class Refiner(nn.Module):
    def __init__(self, config: RefinerConfig) -> None:
        super().__init__()
        self.config = config
        inner, width = 2 * config.inner, config.width
        self.embedding = nn.Embedding(config.codes + 1, width)  # the last: there is no stale token
        self.hidden = nn.Linear(config.hidden, inner)
        self.stale = nn.Linear(width, inner, bias=False)
        self.token = nn.Linear(width, inner, bias=False)
        self.state = nn.Linear(config.inner, inner, bias=False)
        self.head = nn.Linear(config.inner, config.codes)
        for tokens in (self.stale, self.token):
            nn.init.normal_(tokens.weight, std=0.5 * width**-0.5)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.embedding.weight[-1:].detach())

    def read(self, hidden: Tensor, stale: Tensor) -> Tensor:
        """hidden [n,L,H] (the last row's where a position has no row), stale tokens int64 [n,L] (-1: none)
        -> [n,L,2I]."""
        tokens = torch.where(stale < 0, self.config.codes, stale)
        result: Tensor = self.hidden(hidden) + self.stale(self.embedding(tokens))
        return result

    def step(self, read: Tensor, state: Tensor, tokens: Tensor) -> Tensor:
        """The next position: its part of `read` [n,2I], the state before it [n,I], at first zeros, and the
        token int64 [n] that stands there now -> [n,I]."""
        x = read + self.state(state) + self.token(self.embedding(tokens))
        gate, value = F.rms_norm(x, x.shape[-1:], eps=NORM_EPS).chunk(2, -1)
        return F.silu(gate) * value

    def logits(self, state: Tensor) -> Tensor:
        """state [n,I] -> [n,V], which is added to the logits of the position's row, if it has one."""
        result: Tensor = self.head(state)
        return result
