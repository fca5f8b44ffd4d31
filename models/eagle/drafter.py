"""The EAGLE drafter in plain PyTorch; see the package for what it computes.

Shapes: S sequences, R rows, H hidden width, K keys, D head width. Weight names are the
published checkpoints'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.blocks import RMSNorm
from ..transformer.head import Head, logits_of
from ..transformer.rotary import grid_table, line_table
from .batch import Batch
from .config import DrafterConfig
from .parts import recomputed, row_parts

KeysValues = tuple[Tensor, Tensor]


def rotary_table(config: DrafterConfig) -> Tensor:
    """Rotations [max_length, head_dim / 2, 2] as (cos, sin) in fp32, row = feature position."""
    if config.rotary == "line":
        return line_table(config.max_length, config.head_dim, config.rope_base)
    table = grid_table(
        config.grid,
        config.head_dim,
        config.rope_base,
        config.prompt_length - 1,
        config.prefix_rotation,
    )
    return F.pad(table, (0, 0, 0, 0, 0, config.max_length - len(table)))


def rotate(x: Tensor, rotation: Tensor, adjacent: bool) -> Tensor:
    """x [S,heads,R,D] turned by rotation [.., R,D/2,2] in fp32; pairs are adjacent or D/2 apart."""
    cos, sin = rotation.unbind(-1)
    pairs = x.float().unflatten(-1, (-1, 2) if adjacent else (2, -1))
    dim = -1 if adjacent else -2
    a, b = pairs.unbind(dim)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim).flatten(-2).to(x.dtype)


def rotations(table: Tensor, positions: Tensor) -> Tensor:
    """Rows of a table at positions [R] or [S,R], to broadcast over heads."""
    rows = table[positions]
    return rows[:, None] if positions.dim() == 2 else rows


class HeadNorm(nn.Module):
    """LayerNorm of every head with weights of its own."""

    def __init__(self, heads: int, head_dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(heads, head_dim))
        self.bias = nn.Parameter(torch.zeros(heads, head_dim))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """x [S,R,heads,D]."""
        return F.layer_norm(x, x.shape[-1:], eps=self.eps) * self.weight + self.bias


@dataclass
class Context:
    """The keys that rows attend to.

    Without `cached` they attend to one another as the additive bias [..,R,R] says. With it, row r attends
    to the cached keys as the bias [..,R,K] says, to row r of every entry of `chain`, and to itself: a draft
    that branches off at every row.
    """

    bias: Tensor
    cached: KeysValues | None = None
    chain: Sequence[KeysValues] = ()


def attended(
    q: Tensor, bias: Tensor, keys: Tensor, values: Tensor, own: list[KeysValues]
) -> Tensor:
    """Rows q [S,heads,R,D] over the keys [S,heads,K,D], as the additive bias [..,R,K] says, and each row over
    its own row of every entry of `own`."""
    scores = [torch.matmul(q, keys.transpose(-1, -2)) + bias.to(q.dtype)]
    scores += [(q * key).sum(-1, keepdim=True) for key, _ in own]
    weights = torch.cat(scores, -1).softmax(-1)
    seen = keys.shape[2]
    out = torch.matmul(weights[..., :seen], values)
    for column, (_, value) in enumerate(own, seen):
        out = out + weights[..., column : column + 1] * value
    return out


class Attention(nn.Module):
    def __init__(self, config: DrafterConfig, read: int = 0) -> None:
        """read: width of what it reads, 0: that of the layer."""
        super().__init__()
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.adjacent = config.rotary == "grid"
        width, kv_width = config.hidden, config.kv_heads * config.head_dim
        self.q_proj = nn.Linear(read or width, width, bias=False)
        self.k_proj = nn.Linear(read or width, kv_width, bias=False)
        self.v_proj = nn.Linear(read or width, kv_width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)
        if config.qk_norm:
            self.q_norm: nn.Module = HeadNorm(config.heads, config.head_dim, config.qk_norm_eps)
            self.k_norm: nn.Module = HeadNorm(config.kv_heads, config.head_dim, config.qk_norm_eps)
        else:
            self.q_norm = self.k_norm = nn.Identity()

    def project(self, x: Tensor, rotation: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated q [S,heads,R,D] and k, and v [S,kv_heads,R,D]."""
        q = self.q_norm(self.q_proj(x).unflatten(-1, (self.heads, -1)))
        k = self.k_norm(self.k_proj(x).unflatten(-1, (self.kv_heads, -1)))
        v = self.v_proj(x).unflatten(-1, (self.kv_heads, -1))
        q, k = (rotate(y.transpose(1, 2), rotation, self.adjacent) for y in (q, k))
        return q, k, v.transpose(1, 2)

    def forward(self, x: Tensor, rotation: Tensor, context: Context) -> tuple[Tensor, KeysValues]:
        """See DrafterLayer.forward."""
        q, k, v = self.project(x, rotation)
        groups = self.heads // self.kv_heads
        keys, values = (t.repeat_interleave(groups, 1) for t in (context.cached or (k, v)))
        q = q * q.shape[-1] ** -0.5
        own = [*context.chain, (k, v)] if context.cached else []
        own = [(a.repeat_interleave(groups, 1), b.repeat_interleave(groups, 1)) for a, b in own]
        parts = row_parts(q.shape[2], q[:, :, 0, 0].numel() * keys.shape[2])
        out = recomputed(
            attended,
            parts,
            lambda rows: (
                q[:, :, rows],
                context.bias[..., rows, :],
                keys,
                values,
                [(a[:, :, rows], b[:, :, rows]) for a, b in own],
            ),
        )
        return self.o_proj(out.transpose(1, 2).flatten(2)), (k, v)


class FeedForward(nn.Module):
    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden, config.ffn, bias=False)
        self.up_proj = nn.Linear(config.hidden, config.ffn, bias=False)
        self.down_proj = nn.Linear(config.ffn, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DrafterLayer(nn.Module):
    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config)
        self.mlp = FeedForward(config)
        self.input_layernorm: nn.Module = (
            RMSNorm(config.hidden, config.norm_eps) if config.input_norm else nn.Identity()
        )
        self.post_attention_layernorm = RMSNorm(config.hidden, config.norm_eps)

    def forward(self, x: Tensor, rotation: Tensor, context: Context) -> tuple[Tensor, KeysValues]:
        """Output [S,R,H] and the rows' own keys and values [S,kv_heads,R,D]."""
        normed = self.input_layernorm(x)
        out, own = self.self_attn(normed, rotation, context)
        x = x + out
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Drafter(nn.Module):
    """Predicts features; the head that reads them is the target's."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocabulary, config.hidden)
        self.fc = nn.Linear(2 * config.hidden, config.hidden, bias=config.fc_bias)
        self.layers = nn.ModuleList([DrafterLayer(config)])
        self.register_buffer("rotary", rotary_table(config), persistent=False)

    def forward(
        self, embeddings: Tensor, features: Tensor, positions: Tensor, context: Context
    ) -> tuple[Tensor, KeysValues]:
        """Predicted features [S,R,H], and keys and values as in DrafterLayer.forward.

        embeddings [S,R,H] of token i + 1, features [S,R,H] of token i, positions int64 [R] or
        [S,R]: the target's positions of the features.
        """
        x = self.fc(torch.cat([embeddings, features], -1))
        return self.layers[0](x, rotations(self.rotary, positions), context)

    def read(self, batch: Batch) -> Tensor:
        """The features [S,L,F] of a batch that it reads."""
        return batch.features

    def guess(self, hidden: Tensor, head: Head) -> Tensor:
        """Logits [S,R,V] of what it says [S,R,H]; head: the target's."""
        return logits_of(hidden, head)


def with_own_norms(drafter: Drafter, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights with norms for every head, where groups of heads share them [groups,D]."""
    own, full = drafter.state_dict(), dict(weights)
    for name, weight in weights.items():
        if name not in own or not name.rpartition(".")[0].endswith(("q_norm", "k_norm")):
            continue
        heads, groups = own[name].shape[0], len(weight) if weight.dim() == 2 else 0
        if groups and heads % groups == 0:
            full[name] = weight.repeat_interleave(heads // groups, 0)
    return full
