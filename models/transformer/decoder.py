"""A whole decoder for the engine: embedding, blocks, head."""

from typing import Tuple

import torch
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed
from .layer import Layer, LayerShape, Read


class Decoder(nn.Module):
    """A target, or what a family's target adds its condition to.

    Weights by name: embedding [ids,H], layers.N.NAME, norm, head [V,H]; the names of a block are
    wqkv, wo, w13, w2, attention_norm, ffn_norm, with a bias bqkv, and with norms of the heads
    qk_norm_weight and qk_norm_bias [heads + kv_heads, D] or q_norm and k_norm [D], and with norms behind the
    branches besides attention_out_norm and feed_out_norm. attention_norm and ffn_norm stand in front of their branches, with
    swin_norm behind them.
    """

    PRODUCTS = ("head",)
    swin_norm: Final[bool]

    def __init__(self, shape: LayerShape, layers: int, read: Read, rotary: Tensor) -> None:
        """Weights are read once, one after the other. rotary: see models.transformer.rotary."""
        super().__init__()
        self.eps: float = shape.norm_eps
        self.swin_norm = shape.swin_norm
        none = torch.empty(0)
        self.register_buffer("embedding", read("embedding"))
        self.register_buffer("first_norm", none if self.swin_norm else read(norm_before(0, layers)))
        self.layers = nn.ModuleList(
            Layer(shape, number, block_reader(read, number, layers, shape.swin_norm))
            for number in range(layers)
        )
        self.register_buffer("last_norm", read("norm") if self.swin_norm else none)
        self.register_buffer("head", read("head"))
        self.register_buffer("rotary", rotary)
        self.vocabulary: int = self.head.shape[0]

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_layers(like)
        self.prepare_ends(like)

    def prepare_layers(self, like: Tensor) -> None:
        for layer in self.layers:
            layer.prepare(like)

    def prepare_ends(self, like: Tensor) -> None:
        self.embedding = self.embedding.to(like)
        self.first_norm = self.first_norm.to(like)
        self.last_norm = self.last_norm.to(like)
        self.rotary = self.rotary.to(like.device)
        self.prepare_head(like)

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, False)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return torch.embedding(self.embedding, ids)

    def stream(self, x: Tensor, positions: Tensor) -> Tensor:
        """What the first block gets of embeddings x [S,R,H]: a copy, which the blocks add to."""
        return x.clone()

    def forward(
        self, x: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, cache: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """x [S,R,H] -> (hidden after the final norm [S,R,H], features: the same tensor).

        positions int64 [S,R] rows of the rotary table; lengths int64 [S]; tree_mask and cache as in
        the operator `attend`.
        """
        residual = self.stream(x, positions)
        residual, h = self.run_layers(
            residual, positions, tree_mask, lengths, cache, 0, len(self.layers)
        )
        if self.swin_norm:
            h = lamplighter.rms_norm(residual, self.last_norm, self.eps)
        return h, h

    @torch.jit.export
    def forward_features(
        self,
        x: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
        layers: Tensor,
    ) -> Tuple[Tensor, Tensor]:
        """As forward, with other features [S,R,n*H]: what the blocks layers int64 [n], on the CPU
        and in order, get from those before them, side by side (EAGLE-3, Li et al. 2025)."""
        residual = self.stream(x, positions)
        h = residual
        first = 0
        features = torch.empty([0], dtype=x.dtype, device=x.device)
        for i in range(layers.size(0)):
            end = int(layers[i])
            residual, h = self.run_layers(
                residual, positions, tree_mask, lengths, cache, first, end
            )
            features = residual.clone() if i == 0 else torch.cat([features, residual], -1)
            first = end
        residual, h = self.run_layers(
            residual, positions, tree_mask, lengths, cache, first, len(self.layers)
        )
        if self.swin_norm:
            h = lamplighter.rms_norm(residual, self.last_norm, self.eps)
        return h, features

    @torch.jit.export
    def forward_layers(
        self,
        residual: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
        layers: Tensor,
    ) -> Tuple[Tensor, Tensor]:
        """Runs a part of the blocks; layers int64 [2] on the CPU: the first of them, and the one
        after the last. residual [S,R,H]: rows of `embed`, or what the blocks before left.

        Returns what they leave, and the final norm of it, each [S,R,H]; the rest as in forward.
        """
        first, end = int(layers[0]), int(layers[1])
        residual = self.stream(residual, positions) if first == 0 else residual.clone()
        residual, h = self.run_layers(residual, positions, tree_mask, lengths, cache, first, end)
        if self.swin_norm:
            return residual, lamplighter.rms_norm(residual, self.last_norm, self.eps)
        if end < len(self.layers):
            h = lamplighter.rms_norm(residual, self.layers[-1].feed_norm, self.eps)
        return residual, h

    def run_layers(
        self,
        residual: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
        first: int,
        end: int,
    ) -> Tuple[Tensor, Tensor]:
        """Blocks first .. end - 1: `residual`, which they add to, and what the next branch reads."""
        h = residual
        if not self.swin_norm and first == 0:
            h = lamplighter.rms_norm(residual, self.first_norm, self.eps)
        number = 0
        for layer in self.layers:
            if number == first - 1 and not self.swin_norm:
                h = lamplighter.rms_norm(residual, layer.feed_norm, self.eps)
            if first <= number and number < end:
                h = layer.forward(residual, h, positions, tree_mask, lengths, self.rotary, cache)
            number += 1
        return residual, h

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return lamplighter.linear(hidden, self.head, self.vocabulary)


def norm_before(number: int, layers: int) -> str:
    """Name of the norm in front of a block's attention; behind the last block, of the final one."""
    return f"layers.{number}.attention_norm" if number < layers else "norm"


def block_reader(read: Read, number: int, layers: int, swin_norm: bool) -> Read:
    """Reads a block's weights under the names of Layer, whose norms stand behind the branches."""
    block = f"layers.{number}."
    behind = {
        "attention_norm": block + "ffn_norm",
        "feed_norm": norm_before(number + 1, layers),
    }
    if swin_norm:
        behind = {"attention_norm": block + "attention_norm", "feed_norm": block + "ffn_norm"}
    return lambda name: read(behind.get(name, block + name))
