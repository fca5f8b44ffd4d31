"""The encoder of Cosmos DV8x16x16 for one frame, in plain PyTorch: a network of images (models.cosmos.folding)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from ..vq.blocks import AttnBlock, Downsample, Level, PatchConv, PointBranch, ResBlock, Trunk
from .decoder import PATCH, RGB, Cosmos, CosmosConfig, whole

MARGIN = 1e-3  # by which the bounds of a level's numbers lie beyond its last ones


class Bound(nn.Module):
    """Bounds latents [B,C,h,w] as finite scalar quantization does, in units of the codes' table."""

    def __init__(self, levels: Sequence[int]) -> None:
        super().__init__()
        count = torch.tensor(levels, dtype=torch.double)
        half = (count - 1) * (1 + MARGIN) / 2
        offset = (count % 2 == 0).double() / 2
        parts = {
            "span": half,
            "offset": offset,
            "shift": (offset / half).atanh(),
            "unit": count // 2,
        }
        for name, part in parts.items():
            self.register_buffer(name, part.float().view(-1, 1, 1))

    def forward(self, latents: Tensor) -> Tensor:
        return (torch.tanh(latents.float() + self.shift) * self.span - self.offset) / self.unit


class Encoder(Trunk):
    """Runs from level 0 to the last level; norms over all of an image."""

    def __init__(self, config: CosmosConfig, width: int) -> None:
        """width: of the first convolution."""
        super().__init__()
        self.conv_in = PatchConv(RGB, width, PATCH)
        self.down = nn.ModuleList()
        for i, wide in enumerate(config.widths):
            level = Level(width, wide, config.num_res_blocks, False, "block", norm=whole)
            if i < len(config.widths) - 1:
                level.downsample = Downsample(wide)
            self.down.append(level)
            width = wide
        self.mid = nn.ModuleDict(
            {
                "block_1": ResBlock(width, width, norm=whole),
                "attn_1": AttnBlock(width, norm=whole),
                "temporal_1": PointBranch(width, norm=whole),
                "block_2": ResBlock(width, width, norm=whole),
            }
        )
        self.norm_out = whole(width)
        self.conv_out = nn.Conv2d(width, config.z_channels, 3, padding=1)

    def blocks(self) -> Iterator[nn.Module]:
        for level in self.down:
            yield from level.blocks()
        yield from self.mid.values()


class CosmosEncoder(Cosmos):
    """Both halves."""

    def __init__(self, config: CosmosConfig, width: int) -> None:
        super().__init__(config)
        self.encoder = Encoder(config, width)
        self.quant_conv = nn.Conv2d(config.z_channels, len(config.levels), 1)
        self.bound = Bound(config.levels)

    def latents(self, rgb: Tensor) -> Tensor:
        return self.bound(super().latents(rgb))
