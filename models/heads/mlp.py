"""An MLP speculator in plain PyTorch, with the published weight names (Wertheimer et al. 2024, section 3).

Shapes: S sequences, R rows of hidden states, H their width, I inner width, K heads, V tokens.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..eagle.batch import Batch
from ..transformer.head import Head

NORM_EPS = 1e-6
TIED = (("emb", 0), ("proj", 1), ("head", 0), ("ln", 0))  # the step whose weights later ones share


@dataclass
class SpeculatorConfig:
    """tied: all steps share their weights, but for the first projection; scale_input: a norm before it."""

    hidden: int
    vocabulary: int
    heads: int = 4
    inner: int = 0  # 0: as wide as the hidden state
    tied: bool = False
    scale_input: bool = False

    def __post_init__(self) -> None:
        self.inner = self.inner or self.hidden

    @property
    def state_weight(self) -> float:
        """Weight of the state beside the token: after K steps they weigh alike."""
        return 0.5 ** (0.5 / self.heads)

    @property
    def token_weight(self) -> float:
        return math.sqrt((1 - self.state_weight**2) * (self.inner / 2))


class Norm(nn.Module):
    """By the root mean square; `affine`: with a weight and a bias."""

    def __init__(self, width: int, affine: bool = True) -> None:
        super().__init__()
        if affine:
            self.weight = nn.Parameter(torch.ones(width))
            self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + NORM_EPS)
        return self.weight * x + self.bias if hasattr(self, "weight") else x


class Speculator(nn.Module):
    """Step i adds the token i positions behind the hidden state, and guesses the one after it."""

    def __init__(self, config: SpeculatorConfig) -> None:
        super().__init__()
        self.config = config
        steps = range(config.heads)
        self.emb = nn.ModuleList(nn.Embedding(config.vocabulary, config.inner) for _ in steps)
        self.proj = nn.ModuleList(
            nn.Linear(config.inner if step else config.hidden, config.inner, bias=False)
            for step in steps
        )
        self.head = nn.ModuleList(
            nn.Linear(config.inner, config.vocabulary, bias=False) for _ in steps
        )
        self.ln = nn.ModuleList(Norm(config.inner) for _ in steps)
        if config.scale_input:
            self.ln0 = Norm(config.hidden, affine=False)
        if config.tied:
            for name, first in TIED:
                parts = getattr(self, name)
                for step in range(first + 1, config.heads):
                    parts[step] = parts[first]

    def begin(self, embedding: Tensor, head: Head) -> None:
        """Starts training from the target's embedding [V,H] and head, where widths allow it and that is one
        product [V,H]."""
        with torch.no_grad():
            for own in self.emb:
                nn.init.normal_(own.weight, std=self.config.inner**-0.5)
                if embedding.shape == own.weight.shape:
                    own.weight.copy_(F.normalize(embedding, dim=-1))
            for own in self.head:
                nn.init.normal_(own.weight, std=self.config.inner**-0.5)
                if isinstance(head, Tensor) and head.shape == own.weight.shape:
                    own.weight.copy_(head)

    def step(self, state: Tensor, ids: Tensor, step: int) -> Tensor:
        """state [...,H or I], ids [...] -> the next state [...,I]."""
        if step == 0 and self.config.scale_input:
            state = self.ln0(state) / math.sqrt(2)
        ratio = self.config.token_weight / self.config.state_weight
        result: Tensor = F.gelu(self.ln[step](self.proj[step](state) + ratio * self.emb[step](ids)))
        return result

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """States [S,M - 1 - i,I] after step i = 0 .. K - 1."""
        root = batch.prompt_length - 1
        hidden, ids = batch.features[:, root:], batch.ids[:, root:]
        state = hidden
        for step in range(self.config.heads):
            rows = hidden.shape[1] - 1 - step
            state = self.step(state[:, :rows], ids[:, step : step + rows], step)
            yield state

    def logits(self, state: Tensor, step: int) -> Tensor:
        """State [...,I] after a step -> [...,V]."""
        result: Tensor = self.head[step](state)
        return result
