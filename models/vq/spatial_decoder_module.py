"""TorchScript form of MoVQGAN's decoder, in bands of rows: an image's feature maps are large.

At 768x768 pixels the published one has maps of 0.6 to 1.2 GB. A block keeps its input and its output;
what lies between is computed a band at a time, once for its statistics and once more for use, unless
it is small. Convolutions see the rows around a band, so bands change nothing but the order of sums in
statistics.

Shapes: B images, C channels, H x W pixels of a map, h x w cells of the latent, L its width.
"""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .blocks import AttnBlock, ImageTokenizer, ResBlock, SpatialNorm, Upsample
from .image_decoder_module import Conv, DoublingConv, PixelMix, conv_band

BAND = 12 << 20  # bytes of a band of a map
KEPT = 512 << 20  # bytes of a map that is kept rather than computed twice


def moments(x: Tensor, groups: int) -> Tensor:
    """Sums of x [B,C,R,W] and of its squares by group of channels: fp64 [2,B,groups]."""
    parts = x.unflatten(1, [groups, -1])
    variance, mean = torch.var_mean(parts.float(), [2, 3, 4], correction=0)
    mean = mean.double()
    count = parts.size(2) * parts.size(3) * parts.size(4)
    return torch.stack([mean, variance.double() + mean * mean]) * count


def no_moments(x: Tensor, groups: int) -> Tensor:
    return torch.zeros([2, x.size(0), groups], dtype=torch.double, device=x.device)


def bands(height: int, row_bytes: int, band: int) -> list[int]:
    """Edges of bands of rows, 2 or more each where there are as many: 0, .., height."""
    count = max(1, min(-(-height * row_bytes // band), height // 2))
    return [height * i // count for i in range(count + 1)]


class ModulatedNorm(nn.Module):
    """GroupNorm, then scale and shift by the latent, computed at its size; then SiLU if asked."""

    def __init__(self, norm: SpatialNorm, active: bool = True) -> None:
        super().__init__()
        self.groups: int = norm.norm_layer.num_groups
        self.eps: float = norm.norm_layer.eps
        self.active: bool = active
        self.register_buffer("weight", norm.norm_layer.weight.detach())
        self.register_buffer("bias", norm.norm_layer.bias.detach())
        self.scale = Conv(norm.conv_y)
        self.shift = Conv(norm.conv_b)

    def prepare(self, like: Tensor) -> None:
        self.weight = self.weight.to(like)
        self.bias = self.bias.to(like)
        self.scale.prepare(like)
        self.shift.prepare(like)

    def by_channel(self, sums: Tensor, pixels: int) -> Tensor:
        """GroupNorm's scale and shift [2,B,C,1,1] of a map of this number of pixels with these moments."""
        each = self.weight.size(0) // self.groups
        mean, square = (sums / (pixels * each)).unbind(0)
        spread = (square - mean * mean).clamp_min(0).add(self.eps).rsqrt()
        inner = spread.repeat_interleave(each, 1) * self.weight
        outer = self.bias - mean.repeat_interleave(each, 1) * inner
        return torch.stack([inner, outer]).to(self.weight)[..., None, None]

    def rows(self, x: Tensor, top: int, height: int, channels: Tensor, latent: Tensor) -> Tensor:
        """Rows x [B,C,R,W] of a map of `height` rows, the first of them `top`, normed."""
        size = height // latent.size(2)
        first, last = top // size, (top + x.size(2) - 1) // size + 1
        cells = latent[:, :, first:last]
        scale = self.scale(cells)
        shift = torch.addcmul(self.shift(cells), scale, channels[1])
        scale = scale * channels[0]
        index = torch.arange(top, top + x.size(2), device=x.device).floor_divide(size) - first
        scale, shift = scale.index_select(2, index), shift.index_select(2, index)
        parts = x.unflatten(3, [latent.size(3), size])
        out = torch.addcmul(shift.unsqueeze(4), parts, scale.unsqueeze(4)).flatten(3)
        return F.silu(out, inplace=True) if self.active else out

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        """A whole map."""
        channels = self.by_channel(moments(x, self.groups), x.size(2) * x.size(3))
        return self.rows(x, 0, x.size(2), channels, latent)


class BandedResidual(nn.Module):
    """A residual block behind a doubling, if there is one."""

    def __init__(self, block: ResBlock, doubling: Upsample | None, size: int) -> None:
        """size: pixels of the map along a side of a cell."""
        super().__init__()
        self.size: int = size
        self.band: int = BAND
        self.kept: int = KEPT
        self.channels: int = block.conv1.out_channels
        self.norm1, self.norm2 = ModulatedNorm(block.norm1), ModulatedNorm(block.norm2)
        self.conv1, self.conv2 = Conv(block.conv1), Conv(block.conv2)
        self.shortcut = None if block.nin_shortcut is None else Conv(block.nin_shortcut)
        self.doubling = None if doubling is None else DoublingConv(doubling)

    def prepare(self, like: Tensor) -> None:
        self.norm1.prepare(like)
        self.norm2.prepare(like)
        self.conv1.prepare(like)
        self.conv2.prepare(like)
        if self.shortcut is not None:
            self.shortcut.prepare(like)
        if self.doubling is not None:
            self.doubling.prepare(like)

    def source(self, x: Tensor, height: int, top: int, bottom: int) -> Tensor:
        """Rows of the block's input: x, or x doubled."""
        if self.doubling is not None and x.size(2) != height:
            half = top // 2
            rows = self.doubling.rows(x, half, (bottom + 1) // 2)
            return rows[:, :, top - 2 * half : bottom - 2 * half]
        return x[:, :, top:bottom]

    def hidden(
        self, x: Tensor, height: int, top: int, bottom: int, channels: Tensor, latent: Tensor
    ) -> Tensor:
        """Rows of the first convolution."""
        start, end = max(top - 1, 0), min(bottom + 1, height)
        rows = self.source(x, height, start, end)
        rows = self.norm1.rows(rows, start, height, channels, latent)
        conv = self.conv1
        return conv_band(rows, conv.weight, conv.bias, top == 0, bottom == height)

    def doubled(self, x: Tensor, height: int, edges: list[int]) -> Tensor:
        """The whole input."""
        whole = [x.size(0), x.size(1), height, 2 * x.size(3)]
        out = torch.empty(whole, dtype=x.dtype, device=x.device)
        for top, bottom in zip(edges[:-1], edges[1:]):
            out[:, :, top:bottom] = self.source(x, height, top, bottom)
        return out

    def source_moments(self, x: Tensor, height: int, edges: list[int]) -> Tensor:
        sums = no_moments(x, self.norm1.groups)
        for top, bottom in zip(edges[:-1], edges[1:]):
            sums += moments(self.source(x, height, top, bottom), self.norm1.groups)
        return sums

    def hidden_moments(
        self, x: Tensor, hidden: Tensor, edges: list[int], channels: Tensor, latent: Tensor
    ) -> Tensor:
        """The map `hidden` is filled unless it is empty."""
        sums = no_moments(x, self.norm2.groups)
        for top, bottom in zip(edges[:-1], edges[1:]):
            rows = self.hidden(x, edges[-1], top, bottom, channels, latent)
            sums += moments(rows, self.norm2.groups)
            if hidden.numel() > 0:
                hidden[:, :, top:bottom] = rows
        return sums

    def second(
        self,
        x: Tensor,
        rows: Tensor,
        height: int,
        top: int,
        bottom: int,
        channels: Tensor,
        latent: Tensor,
    ) -> Tensor:
        """Rows of the block's output, by the rows of the first convolution that they read."""
        rows = self.norm2.rows(rows, max(top - 1, 0), height, channels, latent)
        conv = self.conv2
        rows = conv_band(rows, conv.weight, conv.bias, top == 0, bottom == height)
        source = self.source(x, height, top, bottom)
        if self.shortcut is not None:
            source = self.shortcut(source)
        return rows.add_(source)

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        """x may be overwritten."""
        height, width = self.size * latent.size(2), self.size * latent.size(3)
        row_bytes = x.size(0) * max(x.size(1), self.channels) * width * x.element_size()
        edges = bands(height, row_bytes, self.band)
        if x.size(2) != height and 4 * x.numel() * x.element_size() <= self.kept:
            x = self.doubled(x, height, edges)
        sums = self.source_moments(x, height, edges)
        channels1 = self.norm1.by_channel(sums, height * width)

        # A new map holds what the first convolution gives until it is read.
        apart = self.shortcut is not None or x.size(2) != height
        whole = [x.size(0), self.channels, height, width]
        if not apart and x.numel() * x.element_size() > self.kept:
            whole = [0]
        hidden = torch.empty(whole, dtype=x.dtype, device=x.device)
        sums = self.hidden_moments(x, hidden, edges, channels1, latent)
        channels2 = self.norm2.by_channel(sums, height * width)

        out = hidden if apart else x
        done, first = x[:, :, :0], 0  # rows above those at hand, which see what they replace
        for top, bottom in zip(edges[:-1], edges[1:]):
            start, end = max(top - 1, 0), min(bottom + 1, height)
            if hidden.numel() > 0:
                rows = hidden[:, :, start:end]
            else:
                rows = self.hidden(x, height, start, end, channels1, latent)
            rows = self.second(x, rows, height, top, bottom, channels2, latent)
            if top > 0:
                out[:, :, first:top] = done
            done, first = rows, top
        out[:, :, first:] = done
        return out


class SpatialAttention(nn.Module):
    """Attention over all pixels at the latent's size."""

    def __init__(self, block: AttnBlock) -> None:
        super().__init__()
        self.norm = ModulatedNorm(block.norm, active=False)
        self.mix = PixelMix(block)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.mix.prepare(like)

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        return self.mix(self.norm(x, latent)).add_(x)


class BandedOut(nn.Module):
    """The last norm and convolution."""

    def __init__(self, norm: SpatialNorm, conv: nn.Conv2d) -> None:
        super().__init__()
        self.band: int = BAND
        self.norm, self.conv = ModulatedNorm(norm), Conv(conv)

    def prepare(self, like: Tensor) -> None:
        self.norm.prepare(like)
        self.conv.prepare(like)

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        height = x.size(2)
        edges = bands(height, x[:, :, 0].numel() * x.element_size(), self.band)
        sums = no_moments(x, self.norm.groups)
        for top, bottom in zip(edges[:-1], edges[1:]):
            sums += moments(x[:, :, top:bottom], self.norm.groups)
        channels = self.norm.by_channel(sums, height * x.size(3))
        conv, parts = self.conv, [x[:, :0, :0]]
        for top, bottom in zip(edges[:-1], edges[1:]):
            start, end = max(top - 1, 0), min(bottom + 1, height)
            rows = self.norm.rows(x[:, :, start:end], start, height, channels, latent)
            parts.append(conv_band(rows, conv.weight, conv.bias, top == 0, bottom == height))
        return torch.cat(parts[1:], 2)


class SpatialDecoderModule(nn.Module):
    """The blocks of the official decoder in the order they run.

    over_time: of tokenizers of videos, blocks behind the first convolution that the latent passes, too.
    """

    def __init__(self, model: ImageTokenizer, over_time: Iterable[nn.Module] = ()) -> None:
        super().__init__()
        self.over_time = nn.ModuleList(over_time)
        decoder = model.decoder
        self.first = nn.ModuleList([Conv(model.post_quant_conv), Conv(decoder.conv_in)])
        blocks: list[nn.Module] = []
        doubling, size = None, 1
        for block in decoder.blocks():
            if isinstance(block, Upsample):
                doubling, size = block, 2 * size
            elif isinstance(block, ResBlock):
                blocks.append(BandedResidual(block, doubling, size))
                doubling = None
            else:
                blocks.append(SpatialAttention(block))
        blocks.append(BandedOut(decoder.norm_out, decoder.conv_out))
        self.blocks = nn.ModuleList(blocks)
        self.register_buffer("codebook", model.quantize.embedding.weight.detach())

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        for conv in self.first:
            conv.prepare(like)
        for block in self.over_time:
            block.prepare(like)
        for block in self.blocks:
            block.prepare(like)

    @torch.jit.export
    def decode(self, codes: Tensor) -> Tensor:
        """codes int64 [B,rows,cols] -> rgb fp32 [B,3,h,w], nominally [-1,1], not clamped."""
        latent = F.embedding(codes, self.codebook.to(self.first[0].weight))
        latent = latent.permute(0, 3, 1, 2).contiguous()
        x = self.first[0](latent)
        for block in self.over_time:
            x, latent = block(x), block(latent)
        x = self.first[1](x)
        for block in self.blocks:
            x = block(x, latent)
        return x.float()
