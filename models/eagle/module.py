"""TorchScript form of the EAGLE drafter: one layer of the common decoder.

Halves of a head that turn together are brought side by side here, because `attend` turns adjacent
pairs. Shapes: S sequences, R rows of a sequence, H width of the target's features, V ids of its
head.
"""

import torch
from torch import Tensor, nn
from torch.jit import Final

from ..ops import lamplighter, packed
from ..transformer.head import Head, fitting, keep_head
from ..transformer.layer import Layer, LayerShape, Read
from ..transformer.rotary import adjacent_pairs
from .config import DrafterConfig
from .drafter import Attention, Drafter, DrafterLayer, HeadNorm


def layer_shape(config: DrafterConfig) -> LayerShape:
    return LayerShape(
        config.hidden,
        config.heads,
        config.kv_heads,
        config.head_dim,
        config.ffn,
        config.norm_eps,
        qk_norm=config.qk_norm,
        qk_norm_eps=config.qk_norm_eps,
        int8=True,
    )


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


def weight_reader(layer: DrafterLayer) -> Read:
    """Copies of the layer's weights under the names of models.transformer.layer."""
    norm_weight, norm_bias = head_norms(layer.self_attn)
    weights = {
        "wqkv": projections(layer.self_attn),
        "qk_norm_weight": norm_weight,
        "qk_norm_bias": norm_bias,
        "wo": layer.self_attn.o_proj.weight,
        "attention_norm": layer.post_attention_layernorm.weight,
        "w13": torch.cat([layer.mlp.gate_proj.weight, layer.mlp.up_proj.weight]),
        "w2": layer.mlp.down_proj.weight,
        "feed_norm": torch.empty(0),
    }
    return lambda name: weights[name].detach().clone()


class DrafterModule(nn.Module):
    """One drafter with the target's head; features are the target's hidden states or its own."""

    PRODUCTS = ("fc", "head")

    fc_bias: Final[bool]
    input_norm: Final[bool]

    def __init__(self, drafter: Drafter, head: Head) -> None:
        """head: the target's, of the ids that an image can have."""
        super().__init__()
        config, layer = drafter.config, drafter.layers[0]
        self.hidden: int = config.hidden
        self.eps: float = config.norm_eps
        self.fc_bias = config.fc_bias
        self.input_norm = config.input_norm

        def keep(name: str, tensor: Tensor) -> None:
            self.register_buffer(name, tensor.detach().clone())

        none = torch.empty(0)
        keep("embedding", drafter.embed_tokens.weight)
        keep("fc", drafter.fc.weight)
        keep("bias", drafter.fc.bias if config.fc_bias else none)
        keep("first_norm", layer.input_layernorm.weight if config.input_norm else none)
        self.layer = Layer(layer_shape(config), 0, weight_reader(layer))
        keep_head(self, head)
        keep("rotary", drafter.rotary)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.embedding = self.embedding.to(like)
        self.fc = packed(self.fc, like, True)
        self.bias = self.bias.to(like)
        self.first_norm = self.first_norm.to(like)
        self.layer.prepare(like)
        self.prepare_head(like)
        self.rotary = self.rotary.to(like.device)

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, True)

    @torch.jit.export
    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [S,R] -> [S,R,H]."""
        return torch.embedding(self.embedding, ids)

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
        x = lamplighter.linear(x, self.fc, self.hidden)
        if self.fc_bias:
            x = x + self.bias
        h = x
        if self.input_norm:
            h = lamplighter.rms_norm(x, self.first_norm, self.eps)
        h = self.layer.attend(h, positions, tree_mask, lengths, self.rotary, cache)
        h = self.layer.add(x, h, self.layer.attention_norm)
        return x + self.layer.feed(h)

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        return lamplighter.linear(hidden, self.head, self.vocabulary)


def drafter_module(drafter: Drafter, head: Head) -> DrafterModule:
    """The form that the target's head needs."""
    result: DrafterModule = fitting(DrafterModule, head)(drafter, head)
    return result
