"""One block of a decoder for the engine.

Weights are plain buffers in storage precision; `prepare(like)` casts them to the dtype of `like`
and packs them for the device once after loading. The operator library must be loaded
(models.ops.load) before a module is scripted. Shapes: S sequences, R rows of a sequence, H width,
D width of a head.
"""

from dataclasses import dataclass
from typing import Any, Callable

import torch
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed
from .config import DecoderConfig

Read = Callable[[str], Tensor]  # a weight by its name
Keep = Callable[[Tensor], Tensor]  # the copy of a weight that stays in the module


@dataclass(frozen=True)
class LayerShape:
    """Sizes and options of the blocks of one network."""

    dim: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    norm_eps: float
    qk_norm: bool = False  # a LayerNorm of every query and key head, before the rotation
    qk_norm_eps: float = 1e-5
    head_rms: bool = (
        False  # an RMSNorm in its place, one for all query heads and one for all key heads
    )
    qkv_bias: bool = False  # added to queries, keys and values
    swin_norm: bool = False  # norms behind the branches instead of in front of the next one
    branch_norms: bool = False  # norms behind the branches besides those in front (GLM-4)
    int8: bool = False  # weights in bf16 are packed as int8


def layer_shape(config: DecoderConfig, **options: Any) -> LayerShape:
    """The shape of a decoder's blocks; options: fields of LayerShape."""
    return LayerShape(
        config.dim,
        config.n_head,
        config.n_kv_head,
        config.head_dim,
        config.ffn_dim,
        config.norm_eps,
        **options,
    )


class Layer(nn.Module):
    """One block, with q|k|v and w1|w3 joined and features that turn together side by side.

    A norm stands behind each branch, attention and feed-forward: the one in front of the next
    branch, or with swin_norm the branch's own. branch_norms adds one of the branch alone.
    """

    PRODUCTS = ("wqkv", "wo", "w13", "w2")
    qkv_bias: Final[bool]
    qk_norm: Final[bool]
    head_rms: Final[bool]
    swin_norm: Final[bool]
    branch_norms: Final[bool]
    int8: Final[bool]

    def __init__(self, shape: LayerShape, number: int, read: Read) -> None:
        """number: of its part of the cache; `read` knows the names below."""
        super().__init__()
        self.number: int = number
        self.dim: int = shape.dim
        self.heads: int = shape.heads
        self.kv_heads: int = shape.kv_heads
        self.head_dim: int = shape.head_dim
        self.qkv_width: int = (shape.heads + 2 * shape.kv_heads) * shape.head_dim
        self.ffn_width: int = 2 * shape.ffn
        self.eps: float = shape.norm_eps
        self.qk_norm_eps: float = shape.qk_norm_eps
        self.scale: float = shape.head_dim**-0.5
        self.qkv_bias = shape.qkv_bias
        self.qk_norm = shape.qk_norm
        self.head_rms = shape.head_rms
        self.swin_norm = shape.swin_norm
        self.branch_norms = shape.branch_norms
        self.int8 = shape.int8
        none = torch.empty(0)
        self.register_buffer("wqkv", read("wqkv"))
        self.register_buffer("bqkv", read("bqkv") if self.qkv_bias else none)
        for name in ("qk_norm_weight", "qk_norm_bias"):
            self.register_buffer(name, read(name) if self.qk_norm else none)
        for name in ("q_norm", "k_norm"):
            self.register_buffer(name, read(name) if self.head_rms else none)
        for name in ("wo", "attention_norm", "w13", "w2", "feed_norm"):
            self.register_buffer(name, read(name))
        for name in ("attention_out_norm", "feed_out_norm"):
            self.register_buffer(name, read(name) if self.branch_norms else none)

    def prepare(self, like: Tensor) -> None:
        self.wqkv = packed(self.wqkv, like, self.int8)
        self.bqkv = self.bqkv.to(like)
        self.qk_norm_weight = self.qk_norm_weight.to(like)
        self.qk_norm_bias = self.qk_norm_bias.to(like)
        self.q_norm = self.q_norm.to(like)
        self.k_norm = self.k_norm.to(like)
        self.wo = packed(self.wo, like, self.int8)
        self.attention_norm = self.attention_norm.to(like)
        self.w13 = packed(self.w13, like, self.int8)
        self.w2 = packed(self.w2, like, self.int8)
        self.feed_norm = self.feed_norm.to(like)
        self.attention_out_norm = self.attention_out_norm.to(like)
        self.feed_out_norm = self.feed_out_norm.to(like)

    def attend(
        self,
        h: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        rotary: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """The attention's branch of h [S,R,H]."""
        h = lamplighter.linear(h, self.wqkv, self.qkv_width)
        if self.qkv_bias:
            h = h.add_(self.bqkv)
        if self.qk_norm:
            lamplighter.norm_heads(h, self.qk_norm_weight, self.qk_norm_bias, self.qk_norm_eps)
        if self.head_rms:
            h = self.with_normed_heads(h)
        h = lamplighter.attend(
            h,
            cache,
            self.number,
            positions,
            lengths,
            tree_mask,
            rotary,
            self.heads,
            self.kv_heads,
            self.scale,
        )
        h = lamplighter.linear(h, self.wo, self.dim)
        if self.branch_norms:
            h = lamplighter.rms_norm(h, self.attention_out_norm, self.eps)
        return h

    def with_normed_heads(self, qkv: Tensor) -> Tensor:
        """q|k|v [S,R,(heads + 2 kv_heads) D] with an RMSNorm over D of every query and key head."""
        shares = [self.heads, self.kv_heads, self.kv_heads]
        q, k, v = qkv.unflatten(-1, [-1, self.head_dim]).split(shares, -2)
        q = lamplighter.rms_norm(q.contiguous(), self.q_norm, self.eps)
        k = lamplighter.rms_norm(k.contiguous(), self.k_norm, self.eps)
        return torch.cat([q, k, v], -2).flatten(-2)

    def feed(self, h: Tensor) -> Tensor:
        """The feed-forward branch of h [S,R,H]."""
        h = lamplighter.linear(h, self.w13, self.ffn_width)
        h = lamplighter.silu_mul(h)
        h = lamplighter.linear(h, self.w2, self.dim)
        if self.branch_norms:
            h = lamplighter.rms_norm(h, self.feed_out_norm, self.eps)
        return h

    def add(self, residual: Tensor, h: Tensor, norm: Tensor) -> Tensor:
        """Adds a branch to `residual`; gives what the next branch reads."""
        if self.swin_norm:
            return residual.add_(lamplighter.rms_norm(h, norm, self.eps))
        return lamplighter.add_rms_norm(residual, h, norm, self.eps)

    def forward(
        self,
        residual: Tensor,
        h: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        rotary: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """Adds both branches to `residual`; takes and gives what a branch reads."""
        h = self.attend(h, positions, tree_mask, lengths, rotary, cache)
        h = self.add(residual, h, self.attention_norm)
        return self.add(residual, self.feed(h), self.feed_norm)
