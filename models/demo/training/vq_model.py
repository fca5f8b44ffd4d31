"""The demo's image tokenizer: a small encoder, and LlamaGen's codebook and decoder."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...llamagen.config import VQConfig, as_json
from ...llamagen.vq import VQModel
from ...precision import mixed

CONFIG = VQConfig(
    ch=32,
    encoder_ch_mult=(1, 1, 2, 4, 4),
    decoder_ch_mult=(1, 1, 2, 4, 4),
    num_res_blocks=0,
    z_channels=64,
    codebook_size=1024,
    codebook_embed_dim=8,
)
PATCH = 16  # pixels per side of the square that one code stands for


class Residual(nn.Module):
    def __init__(self, width: int, kernel: int = 3) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(8, width), nn.GroupNorm(8, width)
        self.conv1 = nn.Conv2d(width, width, kernel, padding=kernel // 2)
        self.conv2 = nn.Conv2d(width, width, kernel, padding=kernel // 2)
        nn.init.normal_(self.conv2.weight, std=0.02)
        nn.init.zeros_(self.conv2.bias)

    def forward(self, x: Tensor) -> Tensor:
        x_ = self.conv1(F.silu(self.norm1(x)))
        return x + self.conv2(F.silu(self.norm2(x_)))


class CodeEncoder(nn.Module):
    """rgb [B, 3, 256, 256] -> [B, 8, 16, 16]. Wide convolutions at 64x64 alone: a code sees little more
    than its own square, so the same square gets the same code nearly everywhere."""

    def __init__(self, width: int = CONFIG.codebook_embed_dim) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.PixelUnshuffle(4),
            nn.Conv2d(48, 64, 3, padding=1),
            Residual(64),
            nn.Conv2d(64, 128, 2, stride=2),
            Residual(128, kernel=1),
            nn.Conv2d(128, 192, 2, stride=2),
            Residual(192, kernel=1),
            nn.GroupNorm(8, 192),
            nn.SiLU(),
            nn.Conv2d(192, width, 1),
        )

    def forward(self, rgb: Tensor) -> Tensor:
        return self.net(rgb)


class ImageEncoder(nn.Module):
    """rgb [B, 3, 256, 256] -> [B, 8, 16, 16], for codes that are fixed already. A code sees the squares around
    its own, because the decoder's pixels depend on the codes around theirs."""

    def __init__(self, width: int = CONFIG.codebook_embed_dim) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.PixelUnshuffle(PATCH),
            nn.Conv2d(3 * PATCH**2, 256, 1),
            Residual(256, kernel=1),
            nn.Conv2d(256, 160, 1),
            Residual(160),
            Residual(160, kernel=1),
            nn.GroupNorm(8, 160),
            nn.SiLU(),
            nn.Conv2d(160, width, 1),
        )

    def forward(self, rgb: Tensor) -> Tensor:
        return self.net(rgb)


class Sketcher(nn.Module):
    """[B, 8, 16, 16] -> rgb [B, 3, 256, 256] at a third of the decoder's cost; trained with the codes
    and then put away."""

    def __init__(self, width: int = CONFIG.codebook_embed_dim) -> None:
        super().__init__()
        self.low = nn.Sequential(
            nn.Conv2d(width, 192, 3, padding=1),
            Residual(192),
            Residual(192),
            nn.Conv2d(192, 512, 1),
        )
        self.high = nn.Sequential(
            Residual(128),
            Residual(128),
            nn.GroupNorm(8, 128),
            nn.SiLU(),
            nn.Conv2d(128, 192, 3, padding=1),
        )

    def forward(self, z: Tensor) -> Tensor:
        return F.pixel_shuffle(self.high(F.pixel_shuffle(self.low(z), 2)), 8)


class DemoTokenizer(nn.Module):
    """256x256 images <-> 16x16 codes. Decoding needs only `vq` (codebook and decoder)."""

    def __init__(self, config: VQConfig = CONFIG) -> None:
        super().__init__()
        self.vq = VQModel(config, encoder=False)
        self.encoder = CodeEncoder(config.codebook_embed_dim)

    @torch.no_grad()
    def encode(self, rgb: Tensor) -> Tensor:
        """rgb [B, 3, 256, 256] in [-1, 1] -> int64 codes [B, 16, 16]."""
        with mixed("cpu"):
            z = self.encoder(rgb)
        return self.vq.quantize.indices(z.float())


def to_rgb(images: Tensor) -> Tensor:
    """uint8 [B, h, w, 3] -> float [B, 3, h, w] in [-1, 1].

    Contiguous, because training is two to three times slower in the channels-last layout.
    """
    return images.permute(0, 3, 1, 2).contiguous().float() / 127.5 - 1


def save_tokenizer(model: DemoTokenizer, path: Path) -> None:
    """{"model": decoder and codebook under the official keys in fp16, "encoder", "config"}."""
    state = {k: v.half() for k, v in model.vq.state_dict().items()}
    part = path.with_suffix(".part")
    saved = {"model": state, "encoder": model.encoder.state_dict()}
    torch.save({**saved, "config": as_json(model.vq.config)}, part)
    part.rename(path)


def load_tokenizer(path: Path) -> DemoTokenizer:
    """The inverse of `save_tokenizer`; fp32."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model = DemoTokenizer(VQConfig(**saved["config"]))
    model.vq.load_state_dict({k: v.float() for k, v in saved["model"].items()})
    model.encoder.load_state_dict(saved["encoder"])
    return model.eval()
