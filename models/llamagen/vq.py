"""LlamaGen image tokenizer in plain PyTorch, with the official state-dict keys."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..vq.blocks import (
    AttnBlock,
    Codebook,
    Downsample,
    ImageTokenizer,
    Level,
    ResBlock,
    Trunk,
    Upsample,
    group_norm,
)
from .config import VQConfig


def mid_blocks(channels: int) -> nn.ModuleList:
    return nn.ModuleList(
        [ResBlock(channels, channels), AttnBlock(channels), ResBlock(channels, channels)]
    )


class Encoder(Trunk):
    def __init__(self, config: VQConfig, in_channels: int = 3) -> None:
        super().__init__()
        mult = config.encoder_ch_mult
        blocks = config.encoder_res_blocks or config.num_res_blocks
        width = config.ch
        self.conv_in = nn.Conv2d(in_channels, width, 3, padding=1)
        self.conv_blocks = nn.ModuleList()
        for i, factor in enumerate(mult):
            last = i == len(mult) - 1
            level = Level(width, config.ch * factor, blocks, last, "res")
            width = config.ch * factor if blocks else width
            if not last:
                level.downsample = Downsample(width)
            self.conv_blocks.append(level)
        self.mid = mid_blocks(width)
        self.norm_out = group_norm(width)
        self.conv_out = nn.Conv2d(width, config.z_channels, 3, padding=1)

    def blocks(self) -> Iterator[nn.Module]:
        for level in self.conv_blocks:
            yield from level.blocks()
        yield from self.mid


class Decoder(Trunk):
    """conv_blocks.0 is the lowest resolution; num_res_blocks + 1 residual blocks a level."""

    def __init__(self, config: VQConfig, out_channels: int = 3) -> None:
        super().__init__()
        mult = config.decoder_ch_mult[::-1]
        width = config.ch * mult[0]
        self.conv_in = nn.Conv2d(config.z_channels, width, 3, padding=1)
        self.mid = mid_blocks(width)
        self.conv_blocks = nn.ModuleList()
        for i, factor in enumerate(mult):
            level = Level(width, config.ch * factor, config.num_res_blocks + 1, i == 0, "res")
            width = config.ch * factor
            if i < len(mult) - 1:
                level.upsample = Upsample(width)
            self.conv_blocks.append(level)
        self.norm_out = group_norm(width)
        self.conv_out = nn.Conv2d(width, out_channels, 3, padding=1)

    def blocks(self) -> Iterator[nn.Module]:
        yield from self.mid
        for level in self.conv_blocks:
            yield from level.blocks()


class UnitCodebook(Codebook):
    """Rows are used at unit length; the stored rows need not have it."""

    unit_latents = True

    def __init__(self, size: int, width: int) -> None:
        super().__init__(size, width)
        if not self.embedding.weight.is_meta:
            self.embedding.weight.data = F.normalize(self.embedding.weight.data, dim=-1)

    def table(self) -> Tensor:
        return F.normalize(self.embedding.weight, p=2.0, dim=-1)

    def indices(self, z: Tensor) -> Tensor:
        unit = F.normalize(z.movedim(1, -1), p=2.0, dim=-1)
        return torch.matmul(unit, self.table().t()).argmax(-1)


class VQModel(ImageTokenizer):
    """`encoder=False` leaves the encoder half out."""

    def __init__(self, config: VQConfig, encoder: bool = True) -> None:
        super().__init__()
        self.config = config
        if encoder:
            self.encoder = Encoder(config)
            self.quant_conv = nn.Conv2d(config.z_channels, config.codebook_embed_dim, 1)
        self.quantize = UnitCodebook(config.codebook_size, config.codebook_embed_dim)
        self.post_quant_conv = nn.Conv2d(config.codebook_embed_dim, config.z_channels, 1)
        self.decoder = Decoder(config)
