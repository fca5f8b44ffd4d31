"""TorchScript forms of Chameleon: the common decoder with the head's rows of image ids, alone or beside the others."""

import torch
from torch import Tensor

from ..ops import lamplighter, packed
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


class TextTargetModule(TargetModule):
    """The same with the head's other rows, which give text."""

    PRODUCTS = ("head", "text_head")

    def __init__(
        self,
        config: ChameleonConfig,
        ids: TokenIds,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
    ) -> None:
        codes, rows = ids.codes(), []

        def seen(name: str) -> Tensor:
            weight = read(name)
            if name == "head":
                head = weight.detach()
                rows.append(keep(torch.cat([head[: codes.start], head[codes.stop :]])))
            return weight

        super().__init__(config, ids, positions, seen, keep)
        self.register_buffer("text_head", rows[0])
        self.text_rows: int = rows[0].shape[0]

    def prepare_head(self, like: Tensor) -> None:
        self.head = packed(self.head, like, False)
        self.text_head = packed(self.text_head, like, False)

    @torch.jit.export
    def text_logits(self, hidden: Tensor) -> Tensor:
        """hidden [S,R,H] -> [S,R,V - codes]: of the ids that are no codes of images, in order."""
        return lamplighter.linear(hidden, self.text_head, self.text_rows)
