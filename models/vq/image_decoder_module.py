"""TorchScript form of the image decoders: codes or latents to pixels."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .blocks import AttnBlock, ImageTokenizer, PointBranch, ResBlock, Trunk, Upsample

QUERIES = 1024  # rows of scores in a tile of attention


def conv_band(band: Tensor, weight: Tensor, bias: Tensor, first: bool, last: bool) -> Tensor:
    """Convolution [B,C,R,W] of a band of an image that has a row of its neighbours at both ends.

    An image's first and last band lack one, and zeros stand for it, as for the columns beside the
    image. Kernels have 2 or 3 rows and columns.
    """
    if first or last:
        band = F.pad(band, [0, 0, int(first), int(last)])
    return F.conv2d(band, weight, bias, [1, 1], [0, 1])


class Conv(nn.Module):
    """Convolution with stride 1 and zero padding that keeps the size (odd kernels)."""

    def __init__(self, conv: nn.Conv2d) -> None:
        super().__init__()
        self.padding: int = conv.kernel_size[0] // 2
        self.register_buffer("weight", conv.weight.detach())
        self.register_buffer("bias", conv.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.conv2d(x, self.weight, self.bias, 1, self.padding)


class Norm(nn.Module):
    """GroupNorm."""

    def __init__(self, norm: nn.GroupNorm) -> None:
        super().__init__()
        self.groups: int = norm.num_groups
        self.eps: float = norm.eps
        self.register_buffer("weight", norm.weight.detach())
        self.register_buffer("bias", norm.bias.detach())

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.groups, self.weight, self.bias, self.eps)


class ActiveConv(nn.Module):
    """GroupNorm, SiLU, convolution."""

    def __init__(self, norm: nn.GroupNorm, conv: nn.Conv2d) -> None:
        super().__init__()
        self.norm = Norm(norm)
        self.conv = Conv(conv)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.conv.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.silu(self.norm(x), inplace=True))


class Residual(nn.Module):
    def __init__(self, block: ResBlock) -> None:
        super().__init__()
        self.first = ActiveConv(block.norm1, block.conv1)
        self.second = ActiveConv(block.norm2, block.conv2)
        self.shortcut = None if block.nin_shortcut is None else Conv(block.nin_shortcut)

    def prepare(self, like: Tensor) -> None:
        self.first.prepare(like)
        self.second.prepare(like)
        if self.shortcut is not None:
            self.shortcut.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        h = self.second(self.first(x))
        if self.shortcut is not None:
            x = self.shortcut(x)
        return h.add_(x)


class PixelMix(nn.Module):
    """Attention over normed pixels, a tile of queries at a time; q, k and v are one product."""

    def __init__(self, block: AttnBlock) -> None:
        super().__init__()
        parts = (block.q, block.k, block.v)
        self.out = Conv(block.proj_out)
        self.tile: int = QUERIES
        self.scale: float = block.q.out_channels**-0.5
        self.register_buffer("weight", torch.cat([p.weight for p in parts]).detach())
        self.register_buffer("bias", torch.cat([p.bias for p in parts]).detach())

    def prepare(self, like: Tensor) -> None:
        self.out.prepare(like)
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)

    def forward(self, x: Tensor) -> Tensor:
        qkv = F.conv2d(x, self.weight, self.bias).flatten(2)
        q, k, v = qkv.chunk(3, 1)
        h = torch.empty_like(x).flatten(2)
        for first in range(0, h.size(2), self.tile):
            last = first + self.tile
            scores = torch.bmm(q[:, :, first:last].transpose(1, 2), k).mul_(self.scale)
            h[:, :, first:last] = torch.bmm(v, scores.softmax(-1).transpose(1, 2))
        return self.out(h.view(x.shape))


class PixelAttention(nn.Module):
    """Single-head self-attention over all pixels."""

    def __init__(self, block: AttnBlock) -> None:
        super().__init__()
        self.norm = Norm(block.norm)
        self.mix = PixelMix(block)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.mix.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return self.mix(self.norm(x)).add_(x)


class NormedConv(nn.Module):
    """Adds a convolution of the normalised input."""

    def __init__(self, block: PointBranch) -> None:
        super().__init__()
        self.norm = Norm(block.norm)
        self.conv = Conv(block.conv)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.conv.prepare(like)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(self.norm(x)).add_(x)


class Shuffle(nn.Module):
    """Every s x s channels of a cell become the pixels of one channel."""

    def __init__(self, shuffle: nn.PixelShuffle) -> None:
        super().__init__()
        self.factor: int = shuffle.upscale_factor

    def prepare(self, like: Tensor) -> None:
        pass

    def forward(self, x: Tensor) -> Tensor:
        return F.pixel_shuffle(x, self.factor)


class DoublingConv(nn.Module):
    """Nearest-neighbour doubling followed by a 3x3 convolution, without the doubled image.

    Each of the four pixels that come from one source pixel sees only 2x2 source pixels, so its 3x3
    kernel folds into a 2x2 kernel: 16 instead of 36 products per source pixel. The four kernels are
    the output channels of one convolution over the zero-padded source; pixel (a, b) of a group
    is found at offset (a, b) of its result.
    """

    def __init__(self, block: Upsample) -> None:
        super().__init__()
        self.channels: int = block.conv.out_channels
        self.register_buffer("weight", block.conv.weight.detach())
        self.register_buffer("bias", block.conv.bias.detach())

    def prepare(self, like: Tensor) -> None:
        if self.weight.size(3) == 3:
            self.weight = self.folded(self.weight.to(like))
            self.bias = self.bias.to(like).repeat(4)

    def folded(self, weight: Tensor) -> Tensor:
        """[O,I,3,3] -> [4*O,I,2,2], pixel (a,b) at rows (2a+b)*O."""
        upper = torch.stack([weight[:, :, 0], weight[:, :, 1] + weight[:, :, 2]], 2)
        lower = torch.stack([weight[:, :, 0] + weight[:, :, 1], weight[:, :, 2]], 2)
        rows = torch.cat([upper, lower])
        left = torch.stack([rows[..., 0], rows[..., 1] + rows[..., 2]], -1)
        right = torch.stack([rows[..., 0] + rows[..., 1], rows[..., 2]], -1)
        half = weight.size(0)
        return torch.cat([left[:half], right[:half], left[half:], right[half:]]).contiguous()

    def forward(self, x: Tensor) -> Tensor:
        return self.spread(F.conv2d(x, self.weight, self.bias, 1, 1))

    def rows(self, x: Tensor, top: int, bottom: int) -> Tensor:
        """Doubles rows top .. bottom - 1 of x."""
        first, last = top == 0, bottom == x.size(2)
        band = x[:, :, max(top - 1, 0) : bottom + 1]
        return self.spread(conv_band(band, self.weight, self.bias, first, last))

    def spread(self, kernels: Tensor) -> Tensor:
        """Results of the four kernels [B,4*O,h+1,w+1] -> [B,O,2*h,2*w]."""
        height, width = kernels.size(2) - 1, kernels.size(3) - 1
        parts = kernels.chunk(4, 1)
        out = torch.empty(
            [kernels.size(0), self.channels, 2 * height, 2 * width],
            dtype=kernels.dtype,
            device=kernels.device,
        )
        out[:, :, 0::2, 0::2] = parts[0][:, :, :height, :width]
        out[:, :, 0::2, 1::2] = parts[1][:, :, :height, 1:]
        out[:, :, 1::2, 0::2] = parts[2][:, :, 1:, :width]
        out[:, :, 1::2, 1::2] = parts[3][:, :, 1:, 1:]
        return out


SCRIPTED = {
    nn.Conv2d: Conv,
    ResBlock: Residual,
    AttnBlock: PixelAttention,
    PointBranch: NormedConv,
    Upsample: DoublingConv,
}


def decoder_blocks(post_quant_conv: nn.Conv2d, decoder: Trunk) -> nn.ModuleList:
    """The blocks of an official decoder in the order they run."""
    plain = [post_quant_conv, decoder.conv_in, *decoder.blocks()]
    blocks: list[nn.Module] = [SCRIPTED[type(block)](block) for block in plain]
    blocks.append(ActiveConv(decoder.norm_out, decoder.conv_out))
    if decoder.shuffle is not None:
        blocks.append(Shuffle(decoder.shuffle))
    return nn.ModuleList(blocks)


class ImageDecoderModule(nn.Module):
    """Codes to pixels."""

    def __init__(self, model: ImageTokenizer) -> None:
        super().__init__()
        self.blocks = decoder_blocks(model.post_quant_conv, model.decoder)
        self.register_buffer("table", model.quantize.table().detach())
        # As trained; tables of neighbours are made from these, the decoder reads its table.
        self.register_buffer("codebook", model.quantize.embedding.weight.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)
        self.table = self.table.to(like)

    @torch.jit.export
    def decode(self, codes: Tensor) -> Tensor:
        """codes int64 [B,rows,cols] -> rgb fp32 [B,3,h,w], nominally [-1,1], not clamped."""
        x = F.embedding(codes, self.table).permute(0, 3, 1, 2).contiguous()
        for block in self.blocks:
            x = block(x)
        return x.float()


class LatentDecoderModule(nn.Module):
    """Continuous tokens to pixels."""

    def __init__(self, post_quant_conv: nn.Conv2d, decoder: Trunk, scale: float) -> None:
        """scale: tokens are latents times this."""
        super().__init__()
        self.scale: float = scale
        self.blocks = decoder_blocks(post_quant_conv, decoder)

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for block in self.blocks:
            block.prepare(like)

    @torch.jit.export
    def decode(self, latents: Tensor) -> Tensor:
        """Tokens [B,C,rows,cols] -> rgb fp32 [B,3,h,w], nominally [-1,1], not clamped."""
        x = latents / self.scale
        for block in self.blocks:
            x = block(x)
        return x.float()
