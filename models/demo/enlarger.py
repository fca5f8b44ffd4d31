"""Puts the weights of a small network into a large one; see enlarge.py."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from ..llamagen.config import GPTConfig
from ..rounding import numbers

Weights = dict[str, Tensor]


def only_known(logits: Tensor, known: int) -> Tensor:
    """Logits whose codes from `known` on have probability 0, guided or not; changed in place."""
    logits.narrow(-1, known, logits.size(-1) - known).fill_(-1e4)
    return logits


def fill(into: Tensor, part: Tensor) -> None:
    """Zero but for `part` at its beginning."""
    into.zero_()
    into[tuple(slice(0, size) for size in part.shape)] = part.to(into)


class Enlarger:
    """Puts blocks of a small network into a large one's. Shapes as in models.transformer.layer."""

    def __init__(self, small_dim: int, small_head: int, config: GPTConfig) -> None:
        self.small_dim, self.small_head, self.config = small_dim, small_head, config
        self.norm_scale = (small_dim / config.dim) ** 0.5

    def norm(self, norm: nn.Module, weight: Tensor) -> None:
        """Kept in fp32, so that the scale costs no precision where the engine computes in it."""
        scaled = torch.ones(self.config.dim, dtype=torch.float32)
        scaled[: self.small_dim] = weight.float() * self.norm_scale
        norm.weight = nn.Parameter(scaled)

    def projections(self, wqkv: Tensor) -> list[Tensor]:
        """Rows of q, k and v [heads * D, H]; further heads are random."""
        heads, head_dim, dim = self.config.n_head, self.config.head_dim, self.config.dim
        small = wqkv.view(3, -1, self.small_head, self.small_dim).float()
        large = torch.randn(3, heads, head_dim, dim) * 0.02
        for part, own in zip(large, small):
            fill(part[: own.shape[0]], own)
        return [part.view(heads * head_dim, dim) for part in large]

    def output(self, wo: Tensor) -> Tensor:
        """[H, heads * D]."""
        large = torch.zeros(self.config.dim, self.config.n_head, self.config.head_dim)
        fill(large, wo.view(self.small_dim, -1, self.small_head).float())
        return large.flatten(1)

    def rotary(self, own: Tensor, table: Tensor) -> Tensor:
        """The large network's table with the small one's angles in its first pairs.

        `attend` divides products by the root of the head's width; the table makes up for it,
        because it is fp32 and queries and keys both turn by it.
        """
        own = own.clone()
        scale = (self.config.head_dim / self.small_head) ** 0.25
        own[:, : table.shape[1]] = table[: len(own)] * scale
        return own


def read_weights(archive: Path) -> tuple[torch.jit.ScriptModule, Weights]:
    """A module and its weights by name; rounded weights are given as the numbers they stand for."""
    module = torch.jit.load(str(archive), map_location="cpu")
    names = {"ffn_norm": "attention_norm", "next_norm": "feed_norm"}
    weights = {}
    for name, weight in module.named_buffers():
        folder, _, last = name.removeprefix("layer.").rpartition(".")
        exact = numbers(weight) if weight.dtype in (torch.int8, torch.uint8) else weight
        weights[f"{folder}.{names.get(last, last)}".lstrip(".")] = exact
    return module, weights
