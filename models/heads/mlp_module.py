"""TorchScript form of an MLP speculator. Shapes: S sequences, R rows, H width, I inner width, V codes."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed
from .mlp import NORM_EPS, Speculator


class Step(nn.Module):
    PRODUCTS = ("proj", "head")

    def __init__(self, speculator: Speculator, step: int, first: int, codes: int) -> None:
        """first, codes: the ids of images, whose rows of the head stay."""
        super().__init__()
        config, norm = speculator.config, speculator.ln[step]
        ratio = config.token_weight / config.state_weight
        self.eps: float = NORM_EPS
        self.inner: int = config.inner
        self.codes: int = codes
        self.register_buffer("emb", speculator.emb[step].weight.detach() * ratio)
        self.register_buffer("proj", speculator.proj[step].weight.detach())
        head = speculator.head[step].weight.detach()
        self.register_buffer("head", head[first : first + codes].clone())
        self.register_buffer("weight", norm.weight.detach())
        self.register_buffer("bias", norm.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.emb = self.emb.to(like)
        self.proj = packed(self.proj, like, True)
        self.head = packed(self.head, like, True)
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, state: Tensor, ids: Tensor) -> Tensor:
        x = lamplighter.linear(state, self.proj, self.inner) + torch.embedding(self.emb, ids)
        return F.gelu(lamplighter.rms_norm(x, self.weight, self.eps) + self.bias)

    def logits(self, state: Tensor) -> Tensor:
        return lamplighter.linear(state, self.head, self.codes)


class SpeculatorModule(nn.Module):
    scale_input: Final[bool]

    def __init__(self, speculator: Speculator, first: int, codes: int) -> None:
        super().__init__()
        self.scale_input = speculator.config.scale_input
        self.eps: float = NORM_EPS
        self.steps = nn.ModuleList(
            Step(speculator, step, first, codes) for step in range(speculator.config.heads)
        )

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for step in self.steps:
            step.prepare(like)

    @torch.jit.export
    def step(self, state: Tensor, ids: Tensor, number: Tensor) -> Tensor:
        """state [S,R,H] (step 0: hidden states of the target) or [S,R,I], ids int64 [S,R], number int64 []
        on the CPU -> the next state [S,R,I]."""
        index = int(number)
        if index == 0 and self.scale_input:
            scale = torch.rsqrt(state.float().square().mean(-1, keepdim=True) + self.eps)
            state = (state.float() * scale * math.sqrt(0.5)).to(state.dtype)
        i = 0
        for one in self.steps:
            if i == index:
                return one.forward(state, ids)
            i += 1
        return state

    @torch.jit.export
    def logits(self, state: Tensor, number: Tensor) -> Tensor:
        """state [S,R,I] after step `number` -> [S,R,V]."""
        index = int(number)
        i = 0
        for one in self.steps:
            if i == index:
                return one.logits(state)
            i += 1
        return state
