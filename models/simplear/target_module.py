"""TorchScript form of SimpleAR: the common decoder with biases of queries, keys and values."""

from typing import Callable

import torch
from torch import Tensor

from ..transformer.decoder import Decoder
from ..transformer.layer import LayerShape, Read
from ..transformer.rotary import line_table
from .config import ImageIds, SimpleARConfig

Keep = Callable[[Tensor], Tensor]  # the copy of a weight that stays in the module


def layer_shape(config: SimpleARConfig) -> LayerShape:
    return LayerShape(
        config.dim, config.n_head, config.n_kv_head, config.head_dim, config.ffn_dim,
        config.norm_eps, qkv_bias=True,
    )  # fmt: skip


class TargetModule(Decoder):
    """The network with the head's rows of the ids that are drawn."""

    def __init__(
        self, config: SimpleARConfig, ids: ImageIds, positions: int, read: Read,
        keep: Keep = torch.clone
    ) -> None:  # fmt: skip
        """positions: rows of the rotary table; `read` as in network.weight_shapes."""

        def kept(name: str) -> Tensor:
            weight = read(name).detach()
            if name == "head":
                weight = weight[ids.first : ids.first + ids.count]
            return keep(weight)

        rotary = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(layer_shape(config), config.n_layer, kept, rotary)
