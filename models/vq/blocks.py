"""Blocks of convolutional image tokenizers (VQGAN, Esser et al. 2021), official parameter names."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GROUPS = 32
# A norm by its channels. Norms, and the blocks that hold them, are called with the features and with what
# their norms read besides: nothing, or the latent.
NormOf = Callable[[int], nn.Module]


def group_norm(channels: int, groups: int = GROUPS) -> nn.GroupNorm:
    return nn.GroupNorm(groups, channels, eps=1e-6)


class SpatialNorm(nn.Module):
    """GroupNorm whose scale and shift follow each cell of the latent (MoVQ, Zheng et al. 2022)."""

    def __init__(self, latent: int, channels: int) -> None:
        super().__init__()
        self.norm_layer = group_norm(channels)
        self.conv_y = nn.Conv2d(latent, channels, 1)
        self.conv_b = nn.Conv2d(latent, channels, 1)

    def forward(self, x: Tensor, latent: Tensor) -> Tensor:
        """x [B,C,H,W], latent [B,L,h,w] with H and W multiples of h and w."""
        # 1x1 convolutions of repeated cells are repeated themselves.
        scale, shift = (
            F.interpolate(conv(latent), size=x.shape[-2:], mode="nearest")
            for conv in (self.conv_y, self.conv_b)
        )
        return self.norm_layer(x) * scale + shift


class ResBlock(nn.Module):
    """Two normalised 3x3 convolutions beside a shortcut (1x1 where the width changes)."""

    def __init__(self, channels_in: int, channels_out: int, norm: NormOf = group_norm) -> None:
        super().__init__()
        self.norm1 = norm(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.norm2 = norm(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)
        if channels_in != channels_out:
            self.nin_shortcut = nn.Conv2d(channels_in, channels_out, 1)
        else:
            self.nin_shortcut = None

    def forward(self, x: Tensor, *read: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x, *read)))
        h = self.conv2(F.silu(self.norm2(h, *read)))
        return (x if self.nin_shortcut is None else self.nin_shortcut(x)) + h


class AttnBlock(nn.Module):
    """Single-head self-attention over all pixels, scaled by channels^-0.5."""

    def __init__(self, channels: int, norm: NormOf = group_norm) -> None:
        super().__init__()
        self.norm = norm(channels)
        self.q = nn.Conv2d(channels, channels, 1)
        self.k = nn.Conv2d(channels, channels, 1)
        self.v = nn.Conv2d(channels, channels, 1)
        self.proj_out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, *read: Tensor) -> Tensor:
        n = self.norm(x, *read)
        q, k, v = self.q(n).flatten(2), self.k(n).flatten(2), self.v(n).flatten(2)
        weights = torch.bmm(q.transpose(1, 2), k).mul(x.shape[1] ** -0.5).softmax(-1)
        h = torch.bmm(v, weights.transpose(1, 2)).view_as(x)
        return x + self.proj_out(h)


class PointBranch(nn.Module):
    """A norm and a 1x1 convolution beside a shortcut."""

    def __init__(self, channels: int, norm: NormOf = group_norm) -> None:
        super().__init__()
        self.norm = norm(channels)
        self.conv = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor, *read: Tensor) -> Tensor:
        return x + self.conv(self.norm(x, *read))


class Upsample(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor, *_: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Downsample(nn.Module):
    """Stride 2, padded on the right and the bottom only."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class PatchConv(nn.Conv2d):
    """A 3x3 convolution of patches: one cell for each, which sees it and those around it."""

    def __init__(self, channels_in: int, channels: int, patch: int) -> None:
        super().__init__(channels_in, channels, 3 * patch, stride=patch, padding=patch)


class Level(nn.Module):
    """Blocks of one resolution: residual blocks, attention after each if asked, a resampler.

    name: of the residual blocks in the checkpoint. A convolution of tokenizers of videos may stand in
    front of the resampler.
    """

    def __init__(
        self,
        channels_in: int,
        channels: int,
        blocks: int,
        attention: bool,
        name: str,
        norm: NormOf = group_norm,
    ) -> None:
        super().__init__()
        widths = [channels_in] + [channels] * blocks
        self.name = name
        pairs = zip(widths, widths[1:])
        self.add_module(name, nn.ModuleList(ResBlock(a, b, norm) for a, b in pairs))
        attentive = blocks if attention else 0
        self.attn = nn.ModuleList(AttnBlock(channels, norm) for _ in range(attentive))
        self.temporal: nn.Module | None = None
        self.upsample: nn.Module | None = None
        self.downsample: nn.Module | None = None

    def blocks(self) -> Iterator[nn.Module]:
        for i, block in enumerate(self.get_submodule(self.name).children()):
            yield block
            if i < len(self.attn):
                yield self.attn[i]
        last = (self.temporal, self.upsample, self.downsample)
        yield from (block for block in last if block is not None)


class Trunk(nn.Module):
    """An encoder or decoder: conv_in, its blocks in order, then GroupNorm, SiLU and conv_out; the
    last channels may be pixels of patches."""

    conv_in: nn.Conv2d
    norm_out: nn.Module
    conv_out: nn.Conv2d

    def __init__(self) -> None:
        super().__init__()
        self.shuffle: nn.PixelShuffle | None = None

    def blocks(self) -> Iterator[nn.Module]:
        """ResBlock, AttnBlock, Upsample and Downsample modules in the order they run."""
        raise NotImplementedError

    def forward(self, x: Tensor, *read: Tensor) -> Tensor:
        x = self.conv_in(x)
        for block in self.blocks():
            x = block(x, *read)
        x = self.conv_out(F.silu(self.norm_out(x, *read)))
        return x if self.shuffle is None else self.shuffle(x)


class Codebook(nn.Module):
    """Rows are used as they are stored."""

    unit_latents = False  # whether latents are brought to unit length before rows are compared

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.embedding.weight.data.uniform_(-1.0 / size, 1.0 / size)

    def table(self) -> Tensor:
        """The rows that codes stand for [codes, width]."""
        return self.embedding.weight

    def indices(self, z: Tensor) -> Tensor:
        """Nearest row (L2) of every latent: z [B, width, h, w] -> int64 [B, h, w]."""
        table = self.table()
        half = table.square().sum(-1) / 2
        return (torch.matmul(z.movedim(1, -1), table.t()) - half).argmax(-1)

    def lookup(self, codes: Tensor) -> Tensor:
        """codes [B, h, w] -> rows [B, width, h, w]."""
        return F.embedding(codes, self.table()).permute(0, 3, 1, 2).contiguous()


class ImageTokenizer(nn.Module):
    """Image <-> grid of codes; without `encoder` and `quant_conv` it only decodes."""

    encoder: Trunk
    quant_conv: nn.Conv2d
    quantize: Codebook
    post_quant_conv: nn.Conv2d
    decoder: Trunk

    @property
    def has_encoder(self) -> bool:
        return hasattr(self, "encoder")

    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,H,W] in [-1,1] -> [B, embed, h, w] before quantisation."""
        return self.quant_conv(self.encoder(rgb))

    def encode(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,H,W] in [-1,1] -> int64 codes [B,h,w]."""
        return self.quantize.indices(self.latents(rgb))

    def decode(self, quantized: Tensor) -> Tensor:
        """Rows of the codebook's table [B, embed, h, w] -> rgb [B,3,H,W], not clamped."""
        return self.decoder(self.post_quant_conv(quantized))

    def decode_code(self, codes: Tensor) -> Tensor:
        """codes [B,h,w] -> rgb [B,3,H,W], nominally in [-1,1], not clamped."""
        return self.decode(self.quantize.lookup(codes))
