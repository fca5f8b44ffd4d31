"""The decoder of Emu3's tokenizer for one frame, in plain PyTorch: a network of images (models.emu3.folding)."""

from __future__ import annotations

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
    """What doubling the frames does to the first one."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.conv(x))


class Emu3VQ(MoVQGAN):
    """MoVQGAN's decoding half behind blocks over time, which also change what its norms read."""

    def __init__(self, config: VQGANConfig, blocks: int, doublings: int) -> None:
        super().__init__(config, encoder=False)
        width = config.z_channels
        parts: list[nn.Module] = [TimeBlock(width) for _ in range(blocks)]
        self.over_time = nn.Sequential(*parts, *(TimeConv(width) for _ in range(doublings)))

    def decode(self, quantized: Tensor) -> Tensor:
        latent = self.over_time(self.post_quant_conv(quantized))
        return self.decoder(latent, self.over_time(quantized))
