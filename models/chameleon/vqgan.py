"""Chameleon's image tokenizer (VQGAN) in plain PyTorch, with the official state-dict keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from torch import nn

from ..vq.blocks import (
    AttnBlock,
    Codebook,
    Downsample,
    ImageTokenizer,
    Level,
    NormOf,
    ResBlock,
    Trunk,
    Upsample,
    group_norm,
)


@dataclass
class VQGANConfig:
    """Dimensions of one tokenizer; the defaults are the published tokenizer's.

    Levels count from 0, the full resolution; each halves the one before.
    """

    ch: int = 128
    ch_mult: tuple[int, ...] = (1, 1, 2, 2, 4)
    num_res_blocks: int = 2
    z_channels: int = 256
    embed_dim: int = 256
    n_embed: int = 8192
    attn_levels: tuple[int, ...] = ()  # levels with attention after every residual block

    @property
    def widths(self) -> list[int]:
        """Channels by level."""
        return [self.ch * factor for factor in self.ch_mult]

    @property
    def downsample(self) -> int:
        return int(2 ** (len(self.ch_mult) - 1))


class Middle(nn.Module):
    """The blocks at the lowest resolution."""

    def __init__(self, channels: int, norm: NormOf = group_norm) -> None:
        super().__init__()
        self.block_1 = ResBlock(channels, channels, norm)
        self.attn_1 = AttnBlock(channels, norm)
        self.block_2 = ResBlock(channels, channels, norm)


class Encoder(Trunk):
    def __init__(self, config: VQGANConfig, features: int | None = None) -> None:
        """features: of its result, by default of a latent."""
        super().__init__()
        self.conv_in = nn.Conv2d(3, config.ch, 3, padding=1)
        self.down = nn.ModuleList()
        width_in = config.ch
        for i, width in enumerate(config.widths):
            level = Level(width_in, width, config.num_res_blocks, i in config.attn_levels, "block")
            if i < len(config.widths) - 1:
                level.downsample = Downsample(width)
            self.down.append(level)
            width_in = width
        self.mid = Middle(width_in)
        self.norm_out = group_norm(width_in)
        self.conv_out = nn.Conv2d(width_in, features or config.z_channels, 3, padding=1)

    def blocks(self) -> Iterator[nn.Module]:
        for level in self.down:
            yield from level.blocks()
        yield from self.mid.children()


class Decoder(Trunk):
    """Runs from the last level to level 0; num_res_blocks + 1 residual blocks a level."""

    def __init__(self, config: VQGANConfig, norm: NormOf = group_norm) -> None:
        super().__init__()
        widths = config.widths
        self.conv_in = nn.Conv2d(config.z_channels, widths[-1], 3, padding=1)
        self.mid = Middle(widths[-1], norm)
        self.up = nn.ModuleList()
        for i, (width, width_in) in enumerate(zip(widths, widths[1:] + widths[-1:], strict=True)):
            level = Level(
                width_in, width, config.num_res_blocks + 1, i in config.attn_levels, "block", norm
            )
            if i > 0:
                level.upsample = Upsample(width)
            self.up.append(level)
        self.norm_out = norm(widths[0])
        self.conv_out = nn.Conv2d(widths[0], 3, 3, padding=1)

    def blocks(self) -> Iterator[nn.Module]:
        yield from self.mid.children()
        for level in reversed(self.up):
            yield from level.blocks()


class VQGAN(ImageTokenizer):
    """`encoder=False` leaves the encoder half out."""

    def __init__(self, config: VQGANConfig, encoder: bool = True) -> None:
        super().__init__()
        self.config = config
        if encoder:
            self.encoder = Encoder(config)
            self.quant_conv = nn.Conv2d(config.z_channels, config.embed_dim, 1)
        self.quantize = Codebook(config.n_embed, config.embed_dim)
        self.post_quant_conv = nn.Conv2d(config.embed_dim, config.z_channels, 1)
        self.decoder = Decoder(config, self.decoder_norm(config))

    def decoder_norm(self, config: VQGANConfig) -> NormOf:
        """Norms of the decoder."""
        return group_norm
