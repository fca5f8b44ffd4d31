"""TorchScript form of SimpleAR: the common decoder with biases of queries, keys and values."""

import torch

from ..transformer.codes_target import CodesTarget
from ..transformer.layer import Keep, Read, layer_shape
from .config import ImageIds, SimpleARConfig


class TargetModule(CodesTarget):
    def __init__(
        self,
        config: SimpleARConfig,
        ids: ImageIds,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
    ) -> None:
        """positions: rows of the rotary table; `read` as in network.weight_shapes."""
        shape = layer_shape(config, qkv_bias=True)
        super().__init__(shape, config, ids.first, ids.count, positions, read, keep)
