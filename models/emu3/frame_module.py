"""TorchScript form of what Emu3's image decoder does over time, for SpatialDecoderModule."""

import torch.nn.functional as F
from torch import Tensor, nn

from ..vq.image_decoder_module import Conv
from .decoder import TimeBlock, TimeConv


class TimeResidual(nn.Module):
    def __init__(self, block: TimeBlock) -> None:
        super().__init__()
        self.norm, self.conv1, self.conv2 = Conv(block.norm), Conv(block.conv1), Conv(block.conv2)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.conv1.prepare(like)
        self.conv2.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv2(F.silu(self.conv1(F.silu(self.norm(x)))))


class TimeStep(nn.Module):
    def __init__(self, block: TimeConv) -> None:
        super().__init__()
        self.conv = Conv(block.conv)

    def prepare(self, like: Tensor) -> None:
        self.conv.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(self.conv(x))


def time_module(block: nn.Module) -> nn.Module:
    return TimeResidual(block) if isinstance(block, TimeBlock) else TimeStep(block)
