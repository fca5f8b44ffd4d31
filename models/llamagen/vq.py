"""LlamaGen image tokenizer in plain PyTorch, with the official state-dict keys."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import VQConfig


def group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(32, channels, eps=1e-6)


class ResBlock(nn.Module):
    """Two normalised 3x3 convolutions beside a shortcut (1x1 where the width changes)."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.norm1 = group_norm(channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels_out, 3, padding=1)
        self.norm2 = group_norm(channels_out)
        self.conv2 = nn.Conv2d(channels_out, channels_out, 3, padding=1)
        if channels_in != channels_out:
            self.nin_shortcut = nn.Conv2d(channels_in, channels_out, 1)
        else:
            self.nin_shortcut = None

    def forward(self, x: Tensor) -> Tensor:
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.conv2(F.silu(self.norm2(h)))
        return (x if self.nin_shortcut is None else self.nin_shortcut(x)) + h


class AttnBlock(nn.Module):
    """Single-head self-attention over all pixels, scaled by channels^-0.5."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = group_norm(channels)
        self.q = nn.Conv2d(channels, channels, 1)
        self.k = nn.Conv2d(channels, channels, 1)
        self.v = nn.Conv2d(channels, channels, 1)
        self.proj_out = nn.Conv2d(channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        n = self.norm(x)
        q, k, v = self.q(n).flatten(2), self.k(n).flatten(2), self.v(n).flatten(2)
        weights = torch.bmm(q.transpose(1, 2), k).mul(x.shape[1] ** -0.5).softmax(-1)
        h = torch.bmm(v, weights.transpose(1, 2)).view_as(x)
        return x + self.proj_out(h)


class Upsample(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Downsample(nn.Module):
    """Stride 2, padded on the right and the bottom only."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x, (0, 1, 0, 1)))


class Level(nn.Module):
    """Blocks of one resolution: residual blocks, attention after each if asked, a resampler."""

    def __init__(self, channels_in: int, channels: int, blocks: int, attention: bool) -> None:
        super().__init__()
        widths = [channels_in] + [channels] * blocks
        self.res = nn.ModuleList(ResBlock(a, b) for a, b in zip(widths, widths[1:]))
        self.attn = nn.ModuleList(AttnBlock(channels) for _ in range(blocks if attention else 0))
        self.upsample: nn.Module | None = None
        self.downsample: nn.Module | None = None

    def forward(self, x: Tensor) -> Tensor:
        for i, block in enumerate(self.res):
            x = block(x)
            if i < len(self.attn):
                x = self.attn[i](x)
        if self.upsample is not None:
            x = self.upsample(x)
        if self.downsample is not None:
            x = self.downsample(x)
        return x


def mid_blocks(channels: int) -> nn.ModuleList:
    return nn.ModuleList(
        [ResBlock(channels, channels), AttnBlock(channels), ResBlock(channels, channels)]
    )


class Encoder(nn.Module):
    def __init__(self, config: VQConfig, in_channels: int = 3) -> None:
        super().__init__()
        mult = config.encoder_ch_mult
        width = config.ch
        self.conv_in = nn.Conv2d(in_channels, width, 3, padding=1)
        self.conv_blocks = nn.ModuleList()
        for i, factor in enumerate(mult):
            last = i == len(mult) - 1
            level = Level(width, config.ch * factor, config.num_res_blocks, attention=last)
            width = config.ch * factor if config.num_res_blocks else width
            if not last:
                level.downsample = Downsample(width)
            self.conv_blocks.append(level)
        self.mid = mid_blocks(width)
        self.norm_out = group_norm(width)
        self.conv_out = nn.Conv2d(width, config.z_channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.conv_in(x)
        for level in self.conv_blocks:
            x = level(x)
        for block in self.mid:
            x = block(x)
        return self.conv_out(F.silu(self.norm_out(x)))


class Decoder(nn.Module):
    """conv_blocks.0 is the lowest resolution; num_res_blocks + 1 residual blocks a level."""

    def __init__(self, config: VQConfig, out_channels: int = 3) -> None:
        super().__init__()
        mult = config.decoder_ch_mult[::-1]
        width = config.ch * mult[0]
        self.conv_in = nn.Conv2d(config.z_channels, width, 3, padding=1)
        self.mid = mid_blocks(width)
        self.conv_blocks = nn.ModuleList()
        for i, factor in enumerate(mult):
            level = Level(width, config.ch * factor, config.num_res_blocks + 1, attention=i == 0)
            width = config.ch * factor
            if i < len(mult) - 1:
                level.upsample = Upsample(width)
            self.conv_blocks.append(level)
        self.norm_out = group_norm(width)
        self.conv_out = nn.Conv2d(width, out_channels, 3, padding=1)

    @property
    def last_layer(self) -> Tensor:
        return self.conv_out.weight

    def forward(self, z: Tensor) -> Tensor:
        x = self.conv_in(z)
        for block in self.mid:
            x = block(x)
        for level in self.conv_blocks:
            x = level(x)
        return self.conv_out(F.silu(self.norm_out(x)))


class Codebook(nn.Module):
    """Rows are used at unit length; the stored rows need not have it."""

    def __init__(self, size: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.embedding.weight.data.uniform_(-1.0 / size, 1.0 / size)
        self.embedding.weight.data = F.normalize(self.embedding.weight.data, dim=-1)

    def table(self) -> Tensor:
        """Unit rows [codes, width]."""
        return F.normalize(self.embedding.weight, p=2.0, dim=-1)

    def indices(self, z: Tensor) -> Tensor:
        """Nearest code of every latent: z [B, width, h, w] -> int64 [B, h, w]."""
        unit = F.normalize(z.movedim(1, -1), p=2.0, dim=-1)
        return torch.matmul(unit, self.table().t()).argmax(-1)

    def lookup(self, codes: Tensor) -> Tensor:
        """codes [B, h, w] -> unit rows [B, width, h, w]."""
        return F.embedding(codes, self.table()).permute(0, 3, 1, 2).contiguous()


class VQModel(nn.Module):
    """Picture <-> grid of codes. `encoder=False` leaves the encoder half out."""

    def __init__(self, config: VQConfig, encoder: bool = True) -> None:
        super().__init__()
        self.config = config
        if encoder:
            self.encoder = Encoder(config)
            self.quant_conv = nn.Conv2d(config.z_channels, config.codebook_embed_dim, 1)
        self.quantize = Codebook(config.codebook_size, config.codebook_embed_dim)
        self.post_quant_conv = nn.Conv2d(config.codebook_embed_dim, config.z_channels, 1)
        self.decoder = Decoder(config)

    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,H,W] in [-1,1] -> [B, embed, h, w] before normalisation and quantisation."""
        return self.quant_conv(self.encoder(rgb))

    def encode(self, rgb: Tensor) -> Tensor:
        """rgb [B,3,H,W] in [-1,1] -> int64 codes [B,h,w]."""
        return self.quantize.indices(self.latents(rgb))

    def decode(self, quantized: Tensor) -> Tensor:
        """Unit codebook rows [B, embed, h, w] -> rgb [B,3,H,W], not clamped."""
        return self.decoder(self.post_quant_conv(quantized))

    def decode_code(self, codes: Tensor) -> Tensor:
        """codes [B,h,w] -> rgb [B,3,H,W], nominally in [-1,1], not clamped."""
        return self.decode(self.quantize.lookup(codes))
