"""TorchScript form of Chameleon: the common decoder, with the head's rows of image ids alone."""

from typing import Callable

import torch
from torch import Tensor

from ..transformer.decoder import Decoder
from ..transformer.layer import LayerShape, Read
from ..transformer.rotary import line_table
from .config import QK_NORM_EPS, ChameleonConfig, TokenIds

Keep = Callable[[Tensor], Tensor]  # the copy of a weight that stays in the module


def layer_shape(config: ChameleonConfig) -> LayerShape:
    return LayerShape(
        config.dim, config.n_head, config.n_kv_head, config.head_dim, config.ffn_dim,
        config.norm_eps, qk_norm=True, qk_norm_eps=QK_NORM_EPS, swin_norm=config.swin_norm,
    )  # fmt: skip


class TargetModule(Decoder):
    """The network with the whole embedding and the rows of the head that belong to image ids."""

    def __init__(
        self, config: ChameleonConfig, ids: TokenIds, positions: int, read: Read,
        keep: Keep = torch.clone,
    ) -> None:  # fmt: skip
        """positions: rows of the rotary table; `read` as in transformer.weight_shapes."""

        def kept(name: str) -> Tensor:
            weight = read(name).detach()
            if name == "head":
                weight = weight[ids.first_image_id : ids.first_image_id + ids.codebook_size]
            return keep(weight)

        rotary = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(layer_shape(config), config.n_layer, kept, rotary)
