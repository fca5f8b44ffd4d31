"""TorchScript form of the image encoders: pixels to codes."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .blocks import Downsample, ImageTokenizer, PatchConv
from .image_decoder_module import SCRIPTED, ActiveConv, Conv


class HalvingConv(nn.Module):
    """Convolution with stride 2, padded on the right and the bottom only."""

    def __init__(self, block: Downsample) -> None:
        super().__init__()
        self.register_buffer("weight", block.conv.weight.detach())
        self.register_buffer("bias", block.conv.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(F.pad(x, [0, 1, 0, 1]), self.weight, self.bias, [2, 2])


class PatchedConv(nn.Module):
    """A 3x3 convolution of patches."""

    def __init__(self, conv: PatchConv) -> None:
        super().__init__()
        self.patch: int = conv.stride[0]
        self.register_buffer("weight", conv.weight.detach())
        self.register_buffer("bias", conv.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, self.patch, self.patch)


def encoder_blocks(model: ImageTokenizer, over_time: Iterable[nn.Module] = ()) -> nn.ModuleList:
    """The blocks of an official encoder in the order they run.

    over_time: of tokenizers of videos, blocks in front of the last convolution.
    """
    scripted = {**SCRIPTED, Downsample: HalvingConv, PatchConv: PatchedConv}
    plain = [model.encoder.conv_in, *model.encoder.blocks()]
    blocks: list[nn.Module] = [scripted[type(block)](block) for block in plain]
    blocks.append(ActiveConv(model.encoder.norm_out, model.encoder.conv_out))
    return nn.ModuleList([*blocks, *over_time, Conv(model.quant_conv)])


class ImageEncoderModule(nn.Module):
    """Pixels to codes, in two steps: latents, and the nearest rows of the codebook. Arguments as in
    encoder_blocks."""

    def __init__(self, model: ImageTokenizer, over_time: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        self.blocks = encoder_blocks(model, over_time)
        self.unit: bool = model.quantize.unit_latents
        self.register_buffer("table", model.quantize.table().detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)
        self.table = self.table.to(like)

    @torch.jit.export
    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,h,w] in [-1,1] -> fp32 [B,C,rows,cols] before quantisation."""
        x = rgb
        for block in self.blocks:
            x = block(x)
        return x.float()

    @torch.jit.export
    def nearest(self, latents: Tensor) -> Tensor:
        """latents [B,C,rows,cols] -> codes int64 [B,rows,cols]."""
        z = latents.float().movedim(1, -1)
        table = self.table.float()
        if self.unit:
            return torch.matmul(F.normalize(z, 2.0, -1), table.t()).argmax(-1)
        half = table.square().sum(-1) / 2
        return (torch.matmul(z, table.t()) - half).argmax(-1)
