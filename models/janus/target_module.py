"""TorchScript form of Janus-Pro: the common decoder with the codes behind the text's ids, and its head."""

import torch
from torch import Tensor
from torch.jit import Final

from ..transformer.decoder import Decoder
from ..transformer.head import TwoLayerHead
from ..transformer.layer import Keep, Read, layer_shape
from ..transformer.rotary import line_table
from .config import JanusConfig
from .network import code_table


class TargetModule(TwoLayerHead, Decoder):
    """The network with one table for text and codes, and a head of two layers with biases."""

    PRODUCTS = (*Decoder.PRODUCTS, "head_in")
    int8_head: Final[bool]

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
        self.int8_head = False
        self.head_width: int = config.head_width
        for name in ("head_in", "head_in_bias", "head_bias"):
            self.register_buffer(name, kept(name))
