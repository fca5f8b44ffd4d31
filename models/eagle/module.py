"""TorchScript form of the EAGLE drafter that calls torch.ops.lamplighter.

Like the target's module it keeps its weights as plain buffers in storage precision, and
`prepare(like)` casts and packs them once after loading. Halves of a head that turn together are
brought side by side here, because `attend` turns adjacent pairs. Shapes: S sequences, R rows of a
sequence, H width of the target's features, V ids of its head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import packed_int8
from .drafter import Attention, Drafter, HeadNorm


def adjacent_pairs(weight: Tensor, heads: int) -> Tensor:
    """Rows [heads * D, ...] with rows i and i + D/2 of every head moved to 2i and 2i + 1."""
    halves = weight.unflatten(0, (heads, 2, -1))
    return halves.transpose(1, 2).reshape(weight.shape).contiguous()


def projections(attention: Attention) -> Tensor:
    """The q, k and v weights joined, rows in the order of the rotation of `attend`."""
    q, k, v = (getattr(attention, f"{part}_proj").weight.detach() for part in "qkv")
    if not attention.adjacent:
        q = adjacent_pairs(q, attention.heads)
        k = adjacent_pairs(k, attention.kv_heads)
    return torch.cat([q, k, v])


def head_norms(attention: Attention) -> tuple[Tensor, Tensor]:
    """Weight and bias [heads + kv_heads, D] of the norms of queries and keys; empty if none."""
    q, k = attention.q_norm, attention.k_norm
    if not isinstance(q, HeadNorm) or not isinstance(k, HeadNorm):
        return torch.empty(0), torch.empty(0)
    joined = []
    for pair in ((q.weight, k.weight), (q.bias, k.bias)):
        table = torch.cat(pair).detach()
        if not attention.adjacent:
            table = adjacent_pairs(table.reshape(-1), table.shape[0]).view_as(table)
        joined.append(table)
    return joined[0], joined[1]


class DrafterModule(nn.Module):
    """One drafter with the target's head; features are the target's hidden states or its own."""

    def __init__(self, drafter: Drafter, head: Tensor) -> None:
        """head [V,H]: the target's, of the ids that a picture can have."""
        super().__init__()
        config, layer = drafter.config, drafter.layers[0]
        assert head.shape[1] == config.hidden, "the head reads features of another width"
        self.hidden: int = config.hidden
        self.vocabulary: int = head.shape[0]
        self.heads: int = config.heads
        self.kv_heads: int = config.kv_heads
        self.qkv_width: int = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.ffn_width: int = 2 * config.ffn
        self.eps: float = config.norm_eps
        self.qk_norm_eps: float = config.qk_norm_eps
        self.scale: float = config.head_dim**-0.5
        self.fc_bias: bool = config.fc_bias
        self.input_norm: bool = config.input_norm
        self.qk_norm: bool = config.qk_norm

        def keep(name: str, tensor: Tensor) -> None:
            self.register_buffer(name, tensor.detach().clone())

        none = torch.empty(0)
        norm_weight, norm_bias = head_norms(layer.self_attn)
        keep("embedding", drafter.embed_tokens.weight)
        keep("fc", drafter.fc.weight)
        keep("bias", drafter.fc.bias if config.fc_bias else none)
        keep("first_norm", layer.input_layernorm.weight if config.input_norm else none)
        keep("wqkv", projections(layer.self_attn))
        keep("qk_norm_weight", norm_weight)
        keep("qk_norm_bias", norm_bias)
        keep("wo", layer.self_attn.o_proj.weight)
        keep("ffn_norm", layer.post_attention_layernorm.weight)
        keep("w13", torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight]))
        keep("w2", layer.mlp.down_proj.weight)
        keep("head", head)
        keep("rotary", drafter.rotary)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.embedding = self.embedding.to(like)
        self.fc = packed_int8(self.fc, like)
        self.bias = self.bias.to(like)
        self.first_norm = self.first_norm.to(like)
        self.wqkv = packed_int8(self.wqkv, like)
        self.qk_norm_weight = self.qk_norm_weight.to(like)
        self.qk_norm_bias = self.qk_norm_bias.to(like)
        self.wo = packed_int8(self.wo, like)
        self.ffn_norm = self.ffn_norm.to(like)
        self.w13 = packed_int8(self.w13, like)
        self.w2 = packed_int8(self.w2, like)
        self.head = packed_int8(self.head, like)
        self.rotary = self.rotary.to(like.device)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return F.embedding(ids, self.embedding)

    def forward(
        self,
        embeddings: Tensor,
        features: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """Embeddings [S,R,H] of token i + 1, features [S,R,H] of token i -> features [S,R,H].

        positions int64 [S,R]: the target's positions of the features. tree_mask, lengths and
        cache as in the operator `attend`; the cache has one layer.
        """
        x = torch.cat([embeddings, features], -1)
        x = torch.ops.lamplighter.linear(x, self.fc, self.hidden)
        if self.fc_bias:
            x = x + self.bias
        h = torch.ops.lamplighter.rms_norm(x, self.first_norm, self.eps) if self.input_norm else x
        h = torch.ops.lamplighter.linear(h, self.wqkv, self.qkv_width)
        if self.qk_norm:
            torch.ops.lamplighter.norm_heads(
                h, self.qk_norm_weight, self.qk_norm_bias, self.qk_norm_eps
            )
        h = torch.ops.lamplighter.attend(
            h, cache, 0, positions, lengths, tree_mask,
            self.rotary, self.heads, self.kv_heads, self.scale,
        )  # fmt: skip
        h = torch.ops.lamplighter.linear(h, self.wo, self.hidden)
        h = torch.ops.lamplighter.add_rms_norm(x, h, self.ffn_norm, self.eps)
        h = torch.ops.lamplighter.linear(h, self.w13, self.ffn_width)
        h = torch.ops.lamplighter.silu_mul(h)
        return x + torch.ops.lamplighter.linear(h, self.w2, self.hidden)

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return torch.ops.lamplighter.linear(hidden, self.head, self.vocabulary)
