"""TorchScript form of Tar's de-tokenizer: the common decoder with learned positions instead of rotations."""

import torch
from torch import Tensor

from ..ops import lamplighter, packed
from ..transformer.decoder import Decoder
from ..transformer.layer import Read, layer_shape
from .config import DetokenizerConfig


def no_rotation(rows: int, head_dim: int) -> Tensor:
    """A table of rotations that leave queries and keys as they are."""
    table = torch.zeros(rows, head_dim // 2, 2)
    table[..., 0] = 1.0
    return table


class TargetModule(Decoder):
    """Prefix rows come valid rows first; padded rows are zero."""

    PRODUCTS = (*Decoder.PRODUCTS, "condition")

    def __init__(self, config: DetokenizerConfig, rows: int, read: Read) -> None:
        """rows: of the table of rotations; `read` also knows condition, condition_bias and places [positions,H]."""
        rotations = no_rotation(rows, config.head_dim)
        super().__init__(layer_shape(config), config.n_layer, read, rotations)
        self.dim: int = config.dim
        self.last_place: int = config.positions - 1
        for name in ("condition", "condition_bias", "places"):
            self.register_buffer(name, read(name))

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.prepare_layers(like)
        self.prepare_ends(like)
        self.condition = packed(self.condition, like, False)
        self.condition_bias = self.condition_bias.to(like)
        self.places = self.places.to(like)

    def stream(self, x: Tensor, positions: Tensor) -> Tensor:
        """Adds the learned positions; a tree may reach beyond the last one."""
        return x + torch.embedding(self.places, positions.clamp(0, self.last_place))

    @torch.jit.export
    def embed_condition(self, features: Tensor, mask: Tensor) -> Tensor:
        """features [B,T,C], mask int64 [B,T] -> prefix rows [B,T,H]."""
        features = features.to(self.condition_bias).contiguous()
        rows = lamplighter.linear(features, self.condition, self.dim) + self.condition_bias
        return rows * mask.to(rows).unsqueeze(-1)

    @torch.jit.export
    def embed_unconditional(self, mask: Tensor) -> Tensor:
        """What features of zeros give: [B,T,H]."""
        return self.condition_bias * mask.to(self.condition_bias).unsqueeze(-1)
