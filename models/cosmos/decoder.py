"""Cosmos DV8x16x16 for one frame, in plain PyTorch: a network of images (models.cosmos.folding)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from ..vq.blocks import (
    AttnBlock,
    Codebook,
    ImageTokenizer,
    Level,
    PointBranch,
    ResBlock,
    Trunk,
    Upsample,
    group_norm,
)

LEVELS = (8, 8, 8, 5, 5, 5)  # of the latent's channels
PATCH = 4  # pixels a side that a cell of the last level becomes
RGB = 3

whole = partial(group_norm, groups=1)  # a norm over all channels


@dataclass
class CosmosConfig:
    """Sizes of one decoder; the defaults are the published decoder's.

    Level 0 has the full resolution, less PATCH; each halves the one before.
    """

    widths: tuple[int, ...] = (256, 512, 512)
    num_res_blocks: int = 2
    z_channels: int = 16
    levels: tuple[int, ...] = LEVELS
    temporal_levels: tuple[int, ...] = (1,)  # those whose frames are doubled as well

    @property
    def codes(self) -> int:
        return math.prod(self.levels)

    @property
    def downsample(self) -> int:
        return PATCH * int(2 ** (len(self.widths) - 1))


def fsq_table(levels: Sequence[int], codes: int) -> Tensor:
    """The vectors of all codes [codes, channels]: finite scalar quantization (Mentzer et al. 2023), the
    first channel's digit varies fastest."""
    rest, columns = torch.arange(codes), []
    for level in levels:
        columns.append((rest % level - level // 2) / (level // 2))
        rest = rest // level
    return torch.stack(columns, -1)


class Quantizer(Codebook):
    """A table of the first `codes` codes; with `text` ids in front, which all stand for code 0."""

    def __init__(self, levels: Sequence[int], codes: int, text: int = 0) -> None:
        super().__init__(1, len(levels))
        self.text = text
        table = fsq_table(levels, codes)
        table = torch.cat([table[:1].expand(text, -1), table])
        self.embedding = nn.Embedding.from_pretrained(table)


class Decoder(Trunk):
    """Runs from the last level to level 0; num_res_blocks + 1 residual blocks a level; norms over
    all of an image."""

    def __init__(self, config: CosmosConfig) -> None:
        super().__init__()
        widths = config.widths
        self.conv_in = nn.Conv2d(config.z_channels, widths[-1], 3, padding=1)
        self.mid = nn.ModuleDict(
            {
                "block_1": ResBlock(widths[-1], widths[-1], norm=whole),
                "attn_1": AttnBlock(widths[-1], norm=whole),
                "temporal_1": PointBranch(widths[-1], norm=whole),
                "block_2": ResBlock(widths[-1], widths[-1], norm=whole),
            }
        )
        self.up = nn.ModuleList()
        for i, (width, width_in) in enumerate(zip(widths, widths[1:] + widths[-1:], strict=True)):
            level = Level(width_in, width, config.num_res_blocks + 1, False, "block", norm=whole)
            if i in config.temporal_levels:
                level.temporal = nn.Conv2d(width, width, 1)
            if i > 0:
                level.upsample = Upsample(width)
            self.up.append(level)
        self.norm_out = whole(widths[0])
        self.conv_out = nn.Conv2d(widths[0], RGB * PATCH**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(PATCH)

    def blocks(self) -> Iterator[nn.Module]:
        yield from self.mid.values()
        for level in reversed(self.up):
            yield from level.blocks()


class Cosmos(ImageTokenizer):
    """The decoding half."""

    def __init__(self, config: CosmosConfig) -> None:
        super().__init__()
        self.config = config
        self.quantize = Quantizer(config.levels, config.codes)
        self.post_quant_conv = nn.Conv2d(len(config.levels), config.z_channels, 1)
        self.decoder = Decoder(config)
