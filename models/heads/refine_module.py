"""TorchScript form of a refiner. Shapes: I images, L positions, H width, K inner width, V codes."""

import torch
from torch import Tensor, nn

from ..ops import lamplighter, packed
from .refine import NORM_EPS, Refiner


class RefinerModule(nn.Module):
    PRODUCTS = ("hidden", "state", "head")

    def __init__(self, refiner: Refiner) -> None:
        super().__init__()
        config = refiner.config
        self.inner: int = config.inner
        self.codes: int = config.codes
        self.eps: float = NORM_EPS
        embedding = refiner.embedding.weight.detach()
        self.register_buffer("embedding", embedding)
        self.register_buffer("stale_in", refiner.stale.weight.detach())
        self.register_buffer("token_in", refiner.token.weight.detach())
        self.register_buffer("hidden", refiner.hidden.weight.detach())
        self.register_buffer("hidden_bias", refiner.hidden.bias.detach())
        self.register_buffer("state", refiner.state.weight.detach())
        self.register_buffer("head", refiner.head.weight.detach())
        self.register_buffer("head_bias", refiner.head.bias.detach())
        self.register_buffer("ones", torch.ones(2 * config.inner, dtype=embedding.dtype))
        # `prepare` fills in what every code adds, as a stale token and as the one that stands there now.
        self.register_buffer("stale", torch.zeros(0, dtype=embedding.dtype), persistent=False)
        self.register_buffer("token", torch.zeros(0, dtype=embedding.dtype), persistent=False)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        embedding = self.embedding.to(like.device).float()
        stale = embedding @ self.stale_in.to(like.device).float().t()
        self.stale = (stale + self.hidden_bias.to(like.device).float()).to(like)
        self.token = (embedding @ self.token_in.to(like.device).float().t()).to(like)
        self.hidden = packed(self.hidden, like, True)
        self.state = packed(self.state, like, True)
        self.head = packed(self.head, like, True)
        self.head_bias = self.head_bias.to(like)
        self.ones = self.ones.to(like)

    @torch.jit.export
    def read(self, hidden: Tensor, stale: Tensor) -> Tensor:
        """hidden [I,L,H], stale int64 [I,L], -1: none -> [I,L,2K]."""
        tokens = torch.where(stale < 0, torch.full_like(stale, self.codes), stale)
        rows = lamplighter.linear(hidden, self.hidden, 2 * self.inner)
        return rows + torch.embedding(self.stale, tokens)

    @torch.jit.export
    def step(self, read: Tensor, state: Tensor, tokens: Tensor) -> Tensor:
        """read [I,1,2K], state [I,1,K] of the position before, tokens int64 [I,1] -> [I,1,K]."""
        x = lamplighter.linear(state, self.state, 2 * self.inner)
        x = x + read + torch.embedding(self.token, tokens)
        return lamplighter.silu_mul(lamplighter.rms_norm(x, self.ones, self.eps))

    @torch.jit.export
    def logits(self, state: Tensor) -> Tensor:
        """state [I,1,K] -> [I,1,V]."""
        return lamplighter.linear(state, self.head, self.codes) + self.head_bias
