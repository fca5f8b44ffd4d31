"""TorchScript form of the demo's image encoder: pixels to codes."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..vq.blocks import ImageTokenizer
from ..vq.image_decoder_module import ActiveConv, Conv
from .training.vq_model import ImageEncoder, Residual


class StridedConv(nn.Module):
    """A convolution whose windows lie side by side."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.side: int = conv.stride[0]
        self.register_buffer("weight", conv.weight.detach())
        self.register_buffer("bias", conv.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, [self.side, self.side])


class Branch(nn.Module):
    """Two normalised convolutions beside their input."""

    def __init__(self, block: Residual) -> None:
        super().__init__()
        self.first = ActiveConv(block.norm1, block.conv1)
        self.second = ActiveConv(block.norm2, block.conv2)

    def prepare(self, like: Tensor) -> None:
        self.first.prepare(like)
        self.second.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(self.first(x))


def scripted(layer: nn.Module) -> nn.Module:
    if isinstance(layer, Residual):
        return Branch(layer)
    assert isinstance(layer, nn.Conv2d)
    return StridedConv(layer) if layer.stride[0] > 1 else Conv(layer)


class DemoEncoderModule(nn.Module):
    """Pixels to codes, in two steps: latents, and the nearest rows of the codebook."""

    def __init__(self, model: ImageTokenizer) -> None:
        super().__init__()
        assert isinstance(model.encoder, ImageEncoder)
        first, *blocks, norm, _, last = model.encoder.net
        self.patch: int = first.downscale_factor
        self.blocks = nn.ModuleList([*map(scripted, blocks), ActiveConv(norm, last)])
        self.register_buffer("table", model.quantize.table().detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)
        self.table = self.table.to(like)

    @torch.jit.export
    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,h,w] in [-1,1] -> fp32 [B,C,rows,cols] before quantisation."""
        x = F.pixel_unshuffle(rgb, self.patch)
        for block in self.blocks:
            x = block(x)
        return x.float()

    @torch.jit.export
    def nearest(self, latents: Tensor) -> Tensor:
        """latents [B,C,rows,cols] -> codes int64 [B,rows,cols]."""
        unit = F.normalize(latents.float().movedim(1, -1), 2.0, -1)
        return torch.matmul(unit, self.table.float().t()).argmax(-1)
