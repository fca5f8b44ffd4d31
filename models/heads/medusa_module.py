"""TorchScript form of Medusa heads. Shapes: S sequences, H width, K heads, V codes of the target's head."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import lamplighter, packed
from .medusa import Heads, ResBlock


class Block(nn.Module):
    PRODUCTS = ("weight",)

    def __init__(self, block: ResBlock) -> None:
        super().__init__()
        self.register_buffer("weight", block.linear.weight.detach())
        self.register_buffer("bias", block.linear.bias.detach())
        self.hidden: int = self.bias.shape[0]

    def prepare(self, like: Tensor) -> None:
        self.weight = packed(self.weight, like, True)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return x + F.silu(lamplighter.linear(x, self.weight, self.hidden) + self.bias)


class Head(nn.Module):
    PRODUCTS = ("out",)

    def __init__(self, head: nn.Sequential) -> None:
        super().__init__()
        *blocks, out = head
        self.blocks = nn.ModuleList(Block(block) for block in blocks)
        self.register_buffer("out", out.weight.detach())
        self.vocabulary: int = self.out.shape[0]

    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)
        self.out = packed(self.out, like, True)

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
        return lamplighter.linear(x, self.out, self.vocabulary)


class HeadsModule(nn.Module):
    def __init__(self, heads: Heads) -> None:
        super().__init__()
        self.all = nn.ModuleList(Head(head) for head in heads)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for head in self.all:
            head.prepare(like)

    @torch.jit.export
    def heads(self, hidden: Tensor) -> Tensor:
        """hidden [S,1,H] after the target's final norm -> logits [S,K,V] of the tokens behind the next."""
        return torch.cat([head(hidden) for head in self.all], 1)
