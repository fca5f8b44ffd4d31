"""TorchScript form of Janus-Pro: the common decoder with the codes behind the text's ids, and its head."""

from typing import Callable

import torch
from torch import Tensor

from ..ops import lamplighter, packed
from ..transformer.decoder import Decoder
from ..transformer.layer import LayerShape, Read
from ..transformer.rotary import line_table
from .config import JanusConfig
from .network import code_table

Keep = Callable[[Tensor], Tensor]  # the copy of a weight that stays in the module


def layer_shape(config: JanusConfig) -> LayerShape:
    return LayerShape(
        config.dim, config.n_head, config.n_kv_head, config.head_dim, config.ffn_dim,
        config.norm_eps,
    )  # fmt: skip


class TargetModule(Decoder):
    """The network with one table for text and codes, and a head of two layers with biases."""

    PRODUCTS = (*Decoder.PRODUCTS, "head_in")

    def __init__(
        self, config: JanusConfig, positions: int, read: Read, keep: Keep = torch.clone
    ) -> None:
        """positions: rows of the rotary table; `read` as in network.weight_shapes."""

        def kept(name: str) -> Tensor:
            weight = keep(read(name).detach())
            if name == "embedding":  # text first; each part is rounded by itself, the codes' once
                weight = keep(torch.cat([weight, keep(code_table(config, read))]))
            return weight

        rotary = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(layer_shape(config), config.n_layer, kept, rotary)
        self.head_width: int = config.head_width
        for name in ("head_in", "head_in_bias", "head_bias"):
            self.register_buffer(name, kept(name))

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, False)
        self.head_in = packed(self.head_in, like, False)
        self.head_in_bias = self.head_in_bias.to(like)
        self.head_bias = self.head_bias.to(like)

    @torch.jit.export
    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V]."""
        h = lamplighter.linear(hidden, self.head_in, self.head_width) + self.head_in_bias
        h = lamplighter.linear(lamplighter.gelu(h), self.head, self.vocabulary)
        return h + self.head_bias
