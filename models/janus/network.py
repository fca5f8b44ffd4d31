"""Janus-Pro in plain PyTorch: what draws, without the part that reads pictures.

Shapes: B sequences, L rows, H width, V codes. Weights have the names of `weight_shapes`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..llamagen.gpt import Block, RMSNorm
from ..transformer.layer import Read
from ..transformer.rotary import line_table
from .config import JanusConfig


def weight_shapes(config: JanusConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights, in the order of use; as in transformer.decoder, and Janus's own."""
    dim, kv_width = config.dim, config.n_kv_head * config.head_dim
    block = {
        "wqkv": (dim + 2 * kv_width, dim),
        "wo": (dim, dim),
        "w13": (2 * config.ffn_dim, dim),
        "w2": (dim, config.ffn_dim),
        "attention_norm": (dim,),
        "ffn_norm": (dim,),
    }
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (config.text_ids, dim),
        "codes": (config.codes, config.code_dim),
    }
    for layer in range(config.aligner_depth):
        shapes[f"aligner.{layer}.weight"] = (dim, dim if layer else config.code_dim)
        shapes[f"aligner.{layer}.bias"] = (dim,)
    for layer in range(config.n_layer):
        shapes.update({f"layers.{layer}.{name}": shape for name, shape in block.items()})
    return {
        **shapes,
        "norm": (dim,),
        "head_in": (config.head_width, dim),
        "head_in_bias": (config.head_width,),
        "head": (config.codes, config.head_width),
        "head_bias": (config.codes,),
    }


@torch.no_grad()
def code_table(config: JanusConfig, read: Read) -> Tensor:
    """What the network is fed for every code, fp32 [V,H]: rows of the codes' table through the aligner."""
    x = read("codes").float()
    for layer in range(config.aligner_depth):
        x = F.gelu(x) if layer else x
        weight, bias = read(f"aligner.{layer}.weight"), read(f"aligner.{layer}.bias")
        x = F.linear(x, weight.float(), bias.float())
    return x


class Janus(nn.Module):
    """The decoder with both tables and the head, positions from 0."""

    def __init__(self, config: JanusConfig, read: Read) -> None:
        """`read` gives the weights of `weight_shapes`, which are kept in fp32."""
        super().__init__()
        self.config = config
        wide = lambda name: nn.Parameter(read(name).float(), requires_grad=False)  # noqa: E731
        self.embedding = wide("embedding")
        self.codes = nn.Parameter(code_table(config, read), requires_grad=False)
        self.layers = nn.ModuleList(Block(config, 0.0, 0.0) for _ in range(config.n_layer))
        for number, layer in enumerate(self.layers):
            block = f"layers.{number}."
            attention, feed = layer.attention, layer.feed_forward
            attention.wqkv.weight, attention.wo.weight = wide(block + "wqkv"), wide(block + "wo")
            halves = read(block + "w13").float().chunk(2)
            feed.w1.weight, feed.w3.weight = (nn.Parameter(half, False) for half in halves)
            feed.w2.weight = wide(block + "w2")
            layer.attention_norm.weight = wide(block + "attention_norm")
            layer.ffn_norm.weight = wide(block + "ffn_norm")
        self.norm = RMSNorm(config.dim, config.norm_eps)
        self.norm.weight = wide("norm")
        for name in ("head_in", "head_in_bias", "head", "head_bias"):
            setattr(self, name, wide(name))

    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [B,L] of text, and of codes behind it -> [B,L,H]."""
        return F.embedding(ids, torch.cat([self.embedding, self.codes]))

    def trunk(self, ids: Tensor, seen: Tensor | None = None, positions: Tensor | None = None
              ) -> list[Tensor]:  # fmt: skip
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

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [...,H] -> [...,V]."""
        inner = F.gelu(F.linear(hidden, self.head_in, self.head_in_bias))
        return F.linear(inner, self.head, self.head_bias)
