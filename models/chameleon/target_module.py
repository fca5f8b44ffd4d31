"""TorchScript form of Chameleon: the common decoder, with the head's rows of image ids alone."""

import torch

from ..transformer.codes_target import CodesTarget
from ..transformer.layer import Keep, LayerShape, Read, layer_shape
from .config import QK_NORM_EPS, ChameleonConfig, TokenIds


def block_shape(config: ChameleonConfig) -> LayerShape:
    return layer_shape(config, qk_norm=True, qk_norm_eps=QK_NORM_EPS, swin_norm=config.swin_norm)


class TargetModule(CodesTarget):
    def __init__(
        self,
        config: ChameleonConfig,
        ids: TokenIds,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
    ) -> None:
        """positions: rows of the rotary table; `read` as in transformer.weight_shapes."""
        first, count = ids.first_image_id, ids.codebook_size
        super().__init__(block_shape(config), config, first, count, positions, read, keep)
