"""TorchScript form of Chameleon that calls torch.ops.lamplighter.

The weights are plain buffers in storage precision; `prepare(like)` casts them to the dtype of
`like` and packs them for the device once after loading. The operator library must be loaded
(models.ops.load) before a module is scripted. Shapes: S sequences, R rows of a sequence, H width,
D width of a head.
"""

import copy
from typing import Any, Callable, Iterator, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import packed
from .config import QK_NORM_EPS, ChameleonConfig, TokenIds
from .transformer import rotary_table

Read = Callable[[str], Tensor]  # a weight by its name in transformer.weight_shapes
Keep = Callable[[Tensor], Tensor]  # the copy of a weight that stays in the module


class TargetLayer(nn.Module):
    """One block; `next_norm` is the norm that follows it."""

    def __init__(self, config: ChameleonConfig, number: int, read: Read) -> None:
        super().__init__()
        self.number: int = number
        self.dim: int = config.dim
        self.heads: int = config.n_head
        self.kv_heads: int = config.n_kv_head
        self.qkv_width: int = (config.n_head + 2 * config.n_kv_head) * config.head_dim
        self.ffn_width: int = 2 * config.ffn_dim
        self.eps: float = config.norm_eps
        self.qk_norm_eps: float = QK_NORM_EPS
        self.scale: float = config.head_dim**-0.5
        self.swin_norm: bool = config.swin_norm
        for name in ("wqkv", "qk_norm_weight", "qk_norm_bias", "wo", "ffn_norm", "w13", "w2"):
            self.register_buffer(name, read(f"layers.{number}.{name}"))
        if config.swin_norm:
            following = f"layers.{number}.attention_norm"  # of its own attention's output
        elif number + 1 < config.n_layer:
            following = f"layers.{number + 1}.attention_norm"
        else:
            following = "norm"
        self.register_buffer("next_norm", read(following))

    def prepare(self, like: Tensor) -> None:
        self.wqkv = packed(self.wqkv, like)
        self.qk_norm_weight = self.qk_norm_weight.to(like)
        self.qk_norm_bias = self.qk_norm_bias.to(like)
        self.wo = packed(self.wo, like)
        self.ffn_norm = self.ffn_norm.to(like)
        self.w13 = packed(self.w13, like)
        self.w2 = packed(self.w2, like)
        self.next_norm = self.next_norm.to(like)

    def attend(
        self, h: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, rotary: Tensor,
        cache: Tensor,
    ) -> Tensor:  # fmt: skip
        h = torch.ops.lamplighter.linear(h, self.wqkv, self.qkv_width)
        torch.ops.lamplighter.norm_heads(
            h, self.qk_norm_weight, self.qk_norm_bias, self.qk_norm_eps
        )
        h = torch.ops.lamplighter.attend(
            h, cache, self.number, positions, lengths, tree_mask,
            rotary, self.heads, self.kv_heads, self.scale,
        )  # fmt: skip
        return torch.ops.lamplighter.linear(h, self.wo, self.dim)

    def feed(self, h: Tensor) -> Tensor:
        h = torch.ops.lamplighter.linear(h, self.w13, self.ffn_width)
        h = torch.ops.lamplighter.silu_mul(h)
        return torch.ops.lamplighter.linear(h, self.w2, self.dim)

    def forward(
        self, residual: Tensor, h: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor,
        rotary: Tensor, cache: Tensor,
    ) -> Tensor:  # fmt: skip
        """Adds both branches to `residual`; takes and gives what the attention reads."""
        h = self.attend(h, positions, tree_mask, lengths, rotary, cache)
        if self.swin_norm:
            residual.add_(torch.ops.lamplighter.rms_norm(h, self.next_norm, self.eps))
            h = self.feed(residual)
            residual.add_(torch.ops.lamplighter.rms_norm(h, self.ffn_norm, self.eps))
            return residual
        h = torch.ops.lamplighter.add_rms_norm(residual, h, self.ffn_norm, self.eps)
        h = self.feed(h)
        return torch.ops.lamplighter.add_rms_norm(residual, h, self.next_norm, self.eps)


def sharing(module: nn.Module) -> Any:
    """A module with the same tensors, which may be replaced in it alone."""
    other = copy.copy(module)
    other._buffers, other._modules = dict(module._buffers), dict(module._modules)
    return other


class BlocksOnDemand(nn.Module):
    """Yields copies of blocks, one at a time, prepared like `like`; calls `done` after each."""

    def __init__(self, layers: nn.ModuleList, like: Tensor, done: Callable[[], None]) -> None:
        super().__init__()
        self.layers, self.like, self.done = layers, like, done

    def __iter__(self) -> Iterator[TargetLayer]:
        for layer in self.layers:
            one = sharing(layer)
            one.prepare(self.like)
            yield one
            del one  # before the next one is made
            self.done()


class TargetModule(nn.Module):
    """The network with the whole embedding and the rows of the head that belong to image ids."""

    def __init__(
        self, config: ChameleonConfig, ids: TokenIds, positions: int, read: Read,
        keep: Keep = torch.clone,
    ) -> None:  # fmt: skip
        """positions: rows of the rotary table. Weights are read once, one after the other."""
        super().__init__()

        def kept(name: str) -> Tensor:
            return keep(read(name).detach())

        first = ids.first_image_id
        self.vocabulary: int = ids.codebook_size
        self.eps: float = config.norm_eps
        self.swin_norm: bool = config.swin_norm
        swin, none = config.swin_norm, torch.empty(0)
        self.register_buffer("embedding", kept("embedding"))
        self.register_buffer("first_norm", none if swin else kept("layers.0.attention_norm"))
        self.layers = nn.ModuleList(TargetLayer(config, i, kept) for i in range(config.n_layer))
        self.register_buffer("last_norm", kept("norm") if swin else none)
        rows = read("head").detach()[first : first + ids.codebook_size]
        self.register_buffer("head", keep(rows))
        self.register_buffer("rotary", rotary_table(config, positions))

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for layer in self.layers:
            layer.prepare(like)
        self.prepare_ends(like)

    def prepare_ends(self, like: Tensor) -> None:
        """All but the blocks."""
        self.embedding = self.embedding.to(like)
        self.first_norm = self.first_norm.to(like)
        self.last_norm = self.last_norm.to(like)
        self.head = packed(self.head, like)
        self.rotary = self.rotary.to(like.device)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return F.embedding(ids, self.embedding)

    def forward(
        self, x: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, cache: Tensor
    ) -> Tuple[Tensor, Tensor]:
        """x [S,R,H] -> (hidden after the final norm [S,R,H], features: the same tensor).

        positions int64 [S,R] from each sequence's own first id; lengths int64 [S]; tree_mask and
        cache as in the operator `attend`.
        """
        residual = x.clone()
        h = residual
        if not self.swin_norm:
            h = torch.ops.lamplighter.rms_norm(x, self.first_norm, self.eps)
        for layer in self.layers:
            h = layer(residual, h, positions, tree_mask, lengths, self.rotary, cache)
        if self.swin_norm:
            h = torch.ops.lamplighter.rms_norm(residual, self.last_norm, self.eps)
        return h, h

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V], the image ids alone."""
        return torch.ops.lamplighter.linear(hidden, self.head, self.vocabulary)


def prepared_by_block(
    module: TargetModule, like: Tensor, done: Callable[[], None] = lambda: None
) -> TargetModule:
    """The module prepared like `like`, for use in Python, with one prepared block at a time."""
    other: TargetModule = sharing(module)
    other.layers = BlocksOnDemand(module.layers, like, done)
    other.prepare_ends(like)
    return other
