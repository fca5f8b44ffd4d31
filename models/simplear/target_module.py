"""TorchScript form of SimpleAR: the common decoder with biases of queries, keys and values."""

import torch
from torch import Tensor

from ..transformer.decoder import Decoder
from ..transformer.layer import Keep, Read, layer_shape
from ..transformer.rotary import line_table
from .config import ImageIds, SimpleARConfig


class TargetModule(Decoder):
    """The network with the head's rows of the ids that are sampled."""

    def __init__(
        self,
        config: SimpleARConfig,
        ids: ImageIds,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
    ) -> None:
        """positions: rows of the rotary table; `read` as in network.weight_shapes."""

        def kept(name: str) -> Tensor:
            weight = read(name).detach()
            if name == "head":
                weight = weight[ids.first : ids.first + ids.count]
            return keep(weight)

        rotary = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(layer_shape(config, qkv_bias=True), config.n_layer, kept, rotary)
