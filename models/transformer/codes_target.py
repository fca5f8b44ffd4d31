"""Target whose prompts and images are ids of one table: the common decoder with a part of its head."""

import torch
from torch import Tensor

from .config import DecoderConfig
from .decoder import Decoder
from .layer import Keep, LayerShape, Read
from .rotary import line_table


class CodesTarget(Decoder):
    """The network with the whole embedding and the head's rows of the ids that are sampled."""

    def __init__(
        self,
        shape: LayerShape,
        config: DecoderConfig,
        first: int,
        count: int,
        positions: int,
        read: Read,
        keep: Keep = torch.clone,
        table: Tensor | None = None,
    ) -> None:
        """first, count: the ids; positions: rows of the rotary table, or `table` in place of the plain one;
        `read` by names of transformer.decoder."""

        def kept(name: str) -> Tensor:
            weight = read(name).detach()
            return keep(weight[first : first + count] if name == "head" else weight)

        if table is None:
            table = line_table(positions, config.head_dim, config.rope_base)
        super().__init__(shape, config.n_layer, kept, table)
