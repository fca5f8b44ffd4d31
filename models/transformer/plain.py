"""The decoder that families share in plain PyTorch: what their official programs compute.

Shapes: B sequences, L rows, H width. Weights have the names of transformer.decoder.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .blocks import Block, RMSNorm
from .config import DecoderConfig
from .layer import Read
from .rotary import line_table


def layer_shapes(
    config: DecoderConfig,
    qkv_bias: bool = False,
    branch_norms: bool = False,
    head_rms: bool = False,
) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the weights of all blocks, in the order of use."""
    dim, qkv = config.dim, (config.n_head + 2 * config.n_kv_head) * config.head_dim
    block: dict[str, tuple[int, ...]] = {"wqkv": (qkv, dim)}
    if qkv_bias:
        block["bqkv"] = (qkv,)
    block |= {
        "wo": (dim, config.n_head * config.head_dim),
        "w13": (2 * config.ffn_dim, dim),
        "w2": (dim, config.ffn_dim),
        "attention_norm": (dim,),
        "ffn_norm": (dim,),
    }
    if head_rms:
        block |= {"q_norm": (config.head_dim,), "k_norm": (config.head_dim,)}
    if branch_norms:
        block |= {"attention_out_norm": (dim,), "feed_out_norm": (dim,)}
    numbers = range(config.n_layer)
    return {f"layers.{layer}.{name}": shape for layer in numbers for name, shape in block.items()}


class PlainDecoder(nn.Module):
    """Blocks and the norm behind them, positions from 0; a family adds tables and head."""

    def __init__(self, config: DecoderConfig, read: Read, qkv_bias: bool = False) -> None:
        """`read` gives the weights of `layer_shapes` and `norm`, which are kept in fp32."""
        super().__init__()
        self.config = config
        wide = lambda name: nn.Parameter(read(name).float(), requires_grad=False)  # noqa: E731
        self.layers = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        for number, layer in enumerate(self.layers):
            block = f"layers.{number}."
            attention, feed = layer.attention, layer.feed_forward
            attention.wqkv.weight, attention.wo.weight = wide(block + "wqkv"), wide(block + "wo")
            if qkv_bias:
                attention.wqkv.bias = wide(block + "bqkv")
            halves = read(block + "w13").float().chunk(2)
            feed.w1.weight, feed.w3.weight = (nn.Parameter(half, False) for half in halves)
            feed.w2.weight = wide(block + "w2")
            layer.attention_norm.weight = wide(block + "attention_norm")
            layer.ffn_norm.weight = wide(block + "ffn_norm")
        self.norm = RMSNorm(config.dim, config.norm_eps)
        self.norm.weight = wide("norm")

    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [B,L] -> [B,L,H]."""
        raise NotImplementedError

    def trunk(
        self, ids: Tensor, seen: Tensor | None = None, positions: Tensor | None = None
    ) -> list[Tensor]:
        """The stream in front of every block and behind the last, then the final norm: [B,L,H] each.

        seen: bool [L,L], which rows a row sees, by default those before it and itself; positions
        int64 [L], by default from 0.
        """
        config, length = self.config, ids.shape[1]
        if seen is None:
            seen = torch.ones(length, length, dtype=torch.bool).tril()
        if positions is None:
            positions = torch.arange(length)
        bias = torch.zeros(seen.shape).masked_fill(~seen, -torch.inf)[None, None]
        table = line_table(int(positions.max()) + 1, config.head_dim, config.rope_base)
        rotation = torch.view_as_complex(table)[positions, None]
        taken = [self.embed(ids)]
        for layer in self.layers:
            taken.append(layer(taken[-1], rotation, bias))
        return [*taken, self.norm(taken[-1])]
