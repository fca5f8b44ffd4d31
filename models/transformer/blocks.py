"""Blocks of a decoder in plain PyTorch.

Shapes: B sequences, L rows, K keys, D width of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import DecoderConfig


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), None, self.eps) * self.weight


class Attention(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.heads, self.kv_heads = config.n_head, config.n_kv_head
        self.head_dim = config.head_dim
        width = (self.heads + 2 * self.kv_heads) * self.head_dim
        self.wqkv = nn.Linear(config.dim, width, bias=False)
        self.wo = nn.Linear(self.heads * self.head_dim, config.dim, bias=False)

    def project(self, x: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated q [B,heads,L,D] and k, and v [B,kv_heads,L,D]; rotation complex [L,1,D/2]."""
        batch, length, _ = x.shape
        rotated = self.heads + self.kv_heads
        qkv = self.wqkv(x).view(batch, length, rotated + self.kv_heads, self.head_dim)
        pairs = qkv[:, :, :rotated].float().unflatten(-1, (-1, 2))
        qk = torch.view_as_real(torch.view_as_complex(pairs) * rotation).flatten(-2)
        qk = qk.to(qkv.dtype).transpose(1, 2)
        return qk[:, : self.heads], qk[:, self.heads :], qkv[:, :, rotated:].transpose(1, 2)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None) -> Tensor:
        """Attention of q over k and v; additive bias [B or 1, 1, L, K]."""
        batch, heads, length, head_dim = q.shape
        if self.kv_heads != heads:
            k = k.repeat_interleave(heads // self.kv_heads, 1)
            v = v.repeat_interleave(heads // self.kv_heads, 1)
        scores = torch.matmul(q * head_dim**-0.5, k.transpose(-1, -2))
        if bias is not None:
            scores = scores + bias.to(scores.dtype)
        out = torch.matmul(scores.softmax(-1), v)
        return self.wo(out.transpose(1, 2).reshape(batch, length, heads * head_dim))

    def forward(self, x: Tensor, rotation: Tensor, bias: Tensor) -> Tensor:
        q, k, v = self.project(x, rotation)
        return self.attend(q, k, v, bias)


class FeedForward(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.w1 = nn.Linear(config.dim, config.ffn_dim, bias=False)
        self.w3 = nn.Linear(config.dim, config.ffn_dim, bias=False)
        self.w2 = nn.Linear(config.ffn_dim, config.dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(
        self, config: DecoderConfig, resid_dropout: float = 0.0, ffn_dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.feed_forward = FeedForward(config)
        self.attention_norm = RMSNorm(config.dim, config.norm_eps)
        self.ffn_norm = RMSNorm(config.dim, config.norm_eps)
        self.resid_dropout = nn.Dropout(resid_dropout)
        self.ffn_dropout = nn.Dropout(ffn_dropout)

    def forward(self, x: Tensor, rotation: Tensor, bias: Tensor) -> Tensor:
        x = x + self.resid_dropout(self.attention(self.attention_norm(x), rotation, bias))
        return x + self.ffn_dropout(self.feed_forward(self.ffn_norm(x)))

    def step(
        self,
        x: Tensor,
        rotation: Tensor,
        keys: Tensor,
        values: Tensor,
        start: int,
        bias: Tensor | None,
    ) -> Tensor:
        """One cached pass: stores k and v from `start` on and attends over what is stored."""
        end = start + x.shape[1]
        q, k, v = self.attention.project(self.attention_norm(x), rotation)
        keys[:, :, start:end] = k
        values[:, :, start:end] = v
        x = x + self.attention.attend(q, keys[:, :, :end], values[:, :, :end], bias)
        return x + self.feed_forward(self.ffn_norm(x))
