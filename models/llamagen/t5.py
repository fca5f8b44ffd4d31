"""T5 encoder with gated GELU (Flan-T5) in plain PyTorch, with the Hugging Face state-dict keys."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.blocks import RMSNorm
from .config import T5Config


def relative_buckets(length: int, buckets: int, max_distance: int) -> Tensor:
    """Bucket [length, length] of key position minus query position, bidirectional.

    Half of the buckets serve each direction; the first half of those are single distances, the
    others grow geometrically up to max_distance. The borders are compared as integers.
    """
    half = buckets // 2
    exact = half // 2
    steps = half - exact

    def bucket(distance: int) -> int:
        if distance < exact:
            return distance
        reached = 0
        for j in range(1, steps):
            reached += distance**steps >= max_distance**j * exact ** (steps - j)
        return exact + reached

    table = torch.tensor([bucket(d) for d in range(max(length, 1))])
    position = torch.arange(length)
    relative = position[None] - position[:, None]
    return table[relative.abs()] + half * (relative > 0)


class SelfAttention(nn.Module):
    """Attention without the 1/sqrt(d) scale; the first block owns the relative bias table."""

    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        inner = config.num_heads * config.d_kv
        self.heads = config.num_heads
        self.q = nn.Linear(config.d_model, inner, bias=False)
        self.k = nn.Linear(config.d_model, inner, bias=False)
        self.v = nn.Linear(config.d_model, inner, bias=False)
        self.o = nn.Linear(inner, config.d_model, bias=False)
        if has_bias:
            self.relative_attention_bias = nn.Embedding(
                config.relative_attention_num_buckets, config.num_heads
            )

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.q, self.k, self.v)
        )
        weights = (torch.matmul(q, k.transpose(-1, -2)) + bias).float().softmax(-1)
        return self.o(torch.matmul(weights.to(v.dtype), v).transpose(1, 2).flatten(2))


class DenseReluDense(nn.Module):
    """Gated feed-forward; wi_0 is the GELU branch."""

    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.wi_0 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wi_1 = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.wo(F.gelu(self.wi_0(x), approximate="tanh") * self.wi_1(x))


class AttentionLayer(nn.Module):
    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        self.SelfAttention = SelfAttention(config, has_bias)
        self.layer_norm = RMSNorm(config.d_model, config.layer_norm_epsilon)

    def forward(self, x: Tensor, bias: Tensor) -> Tensor:
        return self.SelfAttention(self.layer_norm(x), bias)


class FeedForwardLayer(nn.Module):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.DenseReluDense = DenseReluDense(config)
        self.layer_norm = RMSNorm(config.d_model, config.layer_norm_epsilon)

    def forward(self, x: Tensor) -> Tensor:
        return self.DenseReluDense(self.layer_norm(x))


class EncoderBlock(nn.Module):
    def __init__(self, config: T5Config, has_bias: bool) -> None:
        super().__init__()
        self.layer = nn.ModuleList([AttentionLayer(config, has_bias), FeedForwardLayer(config)])

    def forward(self, x: Tensor, bias: Tensor, dropout: nn.Module) -> Tensor:
        x = x + dropout(self.layer[0](x, bias))
        return x + dropout(self.layer[1](x))


class EncoderStack(nn.Module):
    def __init__(self, config: T5Config) -> None:
        super().__init__()
        self.block = nn.ModuleList(EncoderBlock(config, i == 0) for i in range(config.num_layers))
        self.final_layer_norm = RMSNorm(config.d_model, config.layer_norm_epsilon)


class T5Encoder(nn.Module):
    def __init__(self, config: T5Config, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = EncoderStack(config)
        self.dropout = nn.Dropout(dropout)
        self._initialise()

    def _initialise(self) -> None:
        config = self.config
        inner = config.num_heads * config.d_kv
        for name, weight in self.named_parameters():
            if name.endswith("relative_attention_bias.weight"):
                weight.data.normal_(0.0, config.d_model**-0.5)
            elif name.endswith(".q.weight"):
                weight.data.normal_(0.0, (config.d_model * config.d_kv) ** -0.5)
            elif name.endswith(".o.weight"):
                weight.data.normal_(0.0, inner**-0.5)
            elif name.endswith(".wo.weight"):
                weight.data.normal_(0.0, config.d_ff**-0.5)
            elif weight.dim() == 2 and name != "shared.weight":
                weight.data.normal_(0.0, config.d_model**-0.5)

    def attention_bias(self, mask: Tensor) -> Tensor:
        """Relative bias plus the lowest finite value on padded keys [B,heads,L,L]."""
        config = self.config
        table = self.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
        buckets = relative_buckets(
            mask.shape[1],
            config.relative_attention_num_buckets,
            config.relative_attention_max_distance,
        ).to(mask.device)
        bias = table(buckets).permute(2, 0, 1)[None]
        hidden = (1 - mask.to(bias.dtype)) * torch.finfo(bias.dtype).min
        return bias + hidden[:, None, None]

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Features [B,L,d_model] of right-padded ids [B,L]; rows beyond mask are meaningless."""
        x = self.dropout(self.shared(ids))
        bias = self.attention_bias(mask)
        for block in self.encoder.block:
            x = block(x, bias, self.dropout)
        return self.dropout(self.encoder.final_layer_norm(x))
