"""Janus-Pro in plain PyTorch: what generates images, without the part that reads them.

Shapes: B sequences, L rows, H width, V codes. Weights have the names of `weight_shapes`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.head import NAMES, TwoLayers, logits_of
from ..transformer.layer import Read
from ..transformer.plain import PlainDecoder, layer_shapes
from .config import JanusConfig


def weight_shapes(config: JanusConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights, in the order of use; as in transformer.decoder, and Janus's own."""
    dim = config.dim
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (config.text_ids, dim),
        "codes": (config.codes, config.code_dim),
    }
    for layer in range(config.aligner_depth):
        shapes[f"aligner.{layer}.weight"] = (dim, dim if layer else config.code_dim)
        shapes[f"aligner.{layer}.bias"] = (dim,)
    return {
        **shapes,
        **layer_shapes(config),
        "norm": (dim,),
        "head_in": (config.head_width, dim),
        "head_in_bias": (config.head_width,),
        "head": (config.codes, config.head_width),
        "head_bias": (config.codes,),
    }


@torch.no_grad()
def code_table(config: JanusConfig, read: Read) -> Tensor:
    """The input embedding of every code, fp32 [V,H]: rows of the codes' table through the aligner."""
    x = read("codes").float()
    for layer in range(config.aligner_depth):
        x = F.gelu(x) if layer else x
        weight, bias = read(f"aligner.{layer}.weight"), read(f"aligner.{layer}.bias")
        x = F.linear(x, weight.float(), bias.float())
    return x


class Janus(PlainDecoder):
    """The decoder with both tables and the head."""

    def __init__(self, config: JanusConfig, read: Read) -> None:
        """`read` gives the weights of `weight_shapes`, which are kept in fp32."""
        super().__init__(config, read)
        self.codes = nn.Parameter(code_table(config, read), requires_grad=False)
        for name in ("embedding", *NAMES):
            setattr(self, name, nn.Parameter(read(name).float(), requires_grad=False))

    def embed(self, ids: Tensor) -> Tensor:
        """ids int64 [B,L] of text, and of codes behind it -> [B,L,H]."""
        return F.embedding(ids, torch.cat([self.embedding, self.codes]))

    def logits(self, hidden: Tensor) -> Tensor:
        """hidden [...,H] -> [...,V]."""
        return logits_of(hidden, TwoLayers(*(getattr(self, name) for name in NAMES)))
