"""SimpleAR in plain PyTorch. Weights have the names of `weight_shapes`."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.layer import Read
from ..transformer.plain import PlainDecoder, layer_shapes
from .config import SimpleARConfig


def weight_shapes(config: SimpleARConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights, in the order of use."""
    table = (config.vocab_size, config.dim)
    blocks = layer_shapes(config, qkv_bias=True)
    return {"embedding": table, **blocks, "norm": (config.dim,), "head": table}


class SimpleAR(PlainDecoder):
    """The decoder with table and head."""

    def __init__(self, config: SimpleARConfig, read: Read) -> None:
        """`read` gives the weights of `weight_shapes`, which are kept in fp32."""
        super().__init__(config, read, qkv_bias=True)
        for name in ("embedding", "head"):
            setattr(self, name, nn.Parameter(read(name).float(), requires_grad=False))

    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [B,L] -> [B,L,H]."""
        return F.embedding(ids, self.embedding)

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [...,H] -> [...,V] of all ids."""
        return F.linear(hidden, self.head)
