"""TorchScript form of Chameleon: the common decoder, with the head's rows of image ids alone."""

import torch
from torch import Tensor

from ..transformer.decoder import Decoder
from ..transformer.layer import Keep, LayerShape, Read, layer_shape
from ..transformer.rotary import line_table
from .config import QK_NORM_EPS, ChameleonConfig, TokenIds


def block_shape(config: ChameleonConfig) -> LayerShape:
    return layer_shape(config, qk_norm=True, qk_norm_eps=QK_NORM_EPS, swin_norm=config.swin_norm)


class TargetModule(Decoder):
    """The network with the whole embedding and the rows of the head that belong to image ids."""

    def __init__(
        self,
        config: ChameleonConfig,
        ids: TokenIds,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
    ) -> None:
        """positions: rows of the rotary table; `read` as in transformer.weight_shapes."""

        def kept(name: str) -> Tensor:
            weight = read(name).detach()
            if name == "head":
                weight = weight[ids.first_image_id : ids.first_image_id + ids.codebook_size]
            return keep(weight)

        rotary = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(block_shape(config), config.n_layer, kept, rotary)
