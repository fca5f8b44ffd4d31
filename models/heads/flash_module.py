"""TorchScript form of a FLASH drafter.

That the results of all groups add up is an attention with every query head once for each group, whose output
weights stand side by side. Shapes: S sequences, R rows, C queries, H width of the target's features, K
features of a pass, V codes of the target's head.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..ops import lamplighter, packed
from ..transformer.head import Head, fitting, keep_head
from ..transformer.rotary import adjacent_pairs
from .flash import Flash, FlashLayer


def query_key_value(layer: FlashLayer, heads: int, groups: int, part: str) -> Tensor:
    """Joined weights or biases (part) of q, once for each group, k and v, rows in the order of `attend`."""
    q, k, v = (getattr(getattr(layer, f"{name}_proj"), part).detach() for name in "qkv")
    if not layer.adjacent:
        q, k = adjacent_pairs(q, heads), adjacent_pairs(k, groups)
    return torch.cat([q] * groups + [k, v])


class FlashModule(nn.Module):
    PRODUCTS = ("fc", "wqkv", "wo", "inner", "outer", "head")

    def __init__(self, flash: Flash, head: Head) -> None:
        """head: the target's."""
        super().__init__()
        config, layer = flash.config.layer, flash.layers
        groups = config.kv_heads
        self.hidden: int = config.hidden
        self.heads_count: int = config.heads * groups
        self.groups: int = groups
        self.qkv_width: int = (self.heads_count + 2 * groups) * config.head_dim
        self.scale: float = config.head_dim**-0.5
        self.inner_width: int = config.ffn
        self.ahead: int = flash.config.heads

        def keep(name: str, tensor: Tensor) -> None:
            self.register_buffer(name, tensor.detach().clone())

        keep("embedding", flash.embed_tokens.weight)
        keep("fc", flash.fc.weight)
        keep("fc_bias", flash.fc.bias)
        keep("wqkv", query_key_value(layer, config.heads, groups, "weight"))
        keep("qkv_bias", query_key_value(layer, config.heads, groups, "bias"))
        keep("wo", layer.o_proj.weight.repeat(1, groups))
        keep("wo_bias", layer.o_proj.bias)
        keep("inner", layer.ar_proj[0].weight)
        keep("inner_bias", layer.ar_proj[0].bias)
        keep("outer", layer.ar_proj[2].weight)
        keep("outer_bias", layer.ar_proj[2].bias)
        keep("queries", flash.queries if flash.config.queries else torch.empty(0))
        keep_head(self, head)
        keep("rotary", flash.rotary)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.embedding = self.embedding.to(like)
        self.fc = packed(self.fc, like, True)
        self.fc_bias = self.fc_bias.to(like)
        self.wqkv = packed(self.wqkv, like, True)
        self.qkv_bias = self.qkv_bias.to(like)
        self.wo = packed(self.wo, like, True)
        self.wo_bias = self.wo_bias.to(like)
        self.inner = packed(self.inner, like, True)
        self.inner_bias = self.inner_bias.to(like)
        self.outer = packed(self.outer, like, True)
        self.outer_bias = self.outer_bias.to(like)
        self.queries = self.queries.to(like.device).float()
        self.prepare_head(like)
        self.rotary = self.rotary.to(like.device)

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, True)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return torch.embedding(self.embedding, ids)

    @torch.jit.export
    def fused(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """Embeddings [S,R,H] of token i + 1 and features [S,R,H] of token i -> [S,R,H]."""
        x = torch.cat([embeddings, features], -1)
        return lamplighter.linear(x, self.fc, self.hidden) + self.fc_bias

    def attend(
        self, x: Tensor, positions: Tensor, tree_mask: Tensor, lengths: Tensor, cache: Tensor
    ) -> Tensor:
        h = lamplighter.linear(x, self.wqkv, self.qkv_width) + self.qkv_bias
        h = lamplighter.attend(
            h,
            cache,
            0,
            positions,
            lengths,
            tree_mask,
            self.rotary,
            self.heads_count,
            self.groups,
            self.scale,
        )
        return lamplighter.linear(h, self.wo, self.hidden) + self.wo_bias

    def forward(
        self,
        embeddings: Tensor,
        features: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """Embeddings [S,R,H] of token i + 1, features [S,R,H] of token i -> what `heads` reads [S,R,H].

        positions int64 [S,R]: the target's positions of the features. tree_mask, lengths and
        cache as in the operator `attend`; the cache has one layer.
        """
        x = self.fused(embeddings, features)
        return self.attend(x, positions, tree_mask, lengths, cache)

    @torch.jit.export
    def compress(self, features: Tensor, last: Tensor) -> Tensor:
        """features [S,N,H] -> [S,C,H]: of rows 1 .. last int64 [S], none if last is 0."""
        rows = features.float()
        row = torch.arange(rows.size(1), device=rows.device)
        seen = (row >= 1) & (row <= last.unsqueeze(1))
        scores = torch.matmul(self.queries, rows.transpose(1, 2))
        scores = scores.masked_fill(seen.logical_not().unsqueeze(1), -1e30)
        return torch.matmul(scores.softmax(-1), rows).to(features.dtype)

    @torch.jit.export
    def forward_compressed(
        self,
        embeddings: Tensor,
        features: Tensor,
        compressed: Tensor,
        positions: Tensor,
        tree_mask: Tensor,
        lengths: Tensor,
        cache: Tensor,
    ) -> Tensor:
        """As forward, with rows [S,C,H] behind the others: positions [S,R + C] -> [S,R + C,H]."""
        x = torch.cat([self.fused(embeddings, features), compressed], 1)
        return self.attend(x, positions, tree_mask, lengths, cache)

    @torch.jit.export
    def ahead_of(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> features [S,R,K,H] of the tokens behind the next."""
        h = F.silu(lamplighter.linear(hidden, self.inner, self.inner_width) + self.inner_bias)
        h = lamplighter.linear(h, self.outer, self.ahead * self.hidden) + self.outer_bias
        return h.view(hidden.size(0), hidden.size(1), self.ahead, self.hidden)

    @torch.jit.export
    def heads(self, hidden: Tensor) -> Tensor:
        """hidden [S,1,H] -> logits [S,K,V] of the tokens behind the next."""
        return self.logits(self.ahead_of(hidden).squeeze(1))

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return lamplighter.linear(hidden, self.head, self.vocabulary)


def flash_module(flash: Flash, head: Head) -> FlashModule:
    """The form that the target's head needs."""
    result: FlashModule = fitting(FlashModule, head)(flash, head)
    return result
