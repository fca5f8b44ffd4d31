"""Emu3's tokenizer for one frame, in plain PyTorch: a network of images (models.emu3.folding)."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ..chameleon.vqgan import VQGANConfig
from ..lumina2.movqgan import MoVQGAN


class TimeBlock(nn.Module):
    """A residual block over time. Its norms scale and shift; the second one is part of conv1."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.Conv2d(channels, channels, 1)
        self.conv1 = nn.Conv2d(channels, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.silu(self.conv1(F.silu(self.norm(x)))))


class TimeConv(nn.Module):
    """What doubling the frames does to the first one, or halving their number to all; the channels of several
    frames follow one another."""

    def __init__(self, channels_in: int, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels_in, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.conv(x))


def halved_frames(doublings: int) -> Sequence[int]:
    """Frames in front of and behind every halving. The first one reads copies of one frame, which it needs
    once."""
    return [1, *(2**number for number in reversed(range(doublings)))]


class Emu3VQ(MoVQGAN):
    """MoVQGAN's decoder behind blocks over time, which also change what its norms read, and its encoder in
    front of others."""

    def __init__(
        self, config: VQGANConfig, blocks: int, doublings: int, encoder: bool = True
    ) -> None:
        super().__init__(config, encoder)
        width = config.z_channels
        parts: list[nn.Module] = [TimeBlock(width) for _ in range(blocks)]
        self.over_time = nn.Sequential(*parts, *(TimeConv(width, width) for _ in range(doublings)))
        if encoder:
            frames = [width * count for count in halved_frames(doublings)]
            halvings = [TimeConv(*pair) for pair in zip(frames, frames[1:])]
            parts = [TimeBlock(width) for _ in range(blocks)]
            self.encoder_over_time = nn.Sequential(*halvings, *parts)

    def latents(self, rgb: Tensor) -> Tensor:
        return self.quant_conv(self.encoder_over_time(self.encoder(rgb)))

    def decode(self, quantized: Tensor) -> Tensor:
        latent = self.over_time(self.post_quant_conv(quantized))
        return self.decoder(latent, self.over_time(quantized))
