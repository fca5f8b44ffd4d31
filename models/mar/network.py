"""MAR in plain PyTorch, with the official state-dict keys.

Shapes: B images, L positions in raster order, V visible ones, E and D widths of encoder and decoder, C
channels of a token, W width of the diffusion head.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import NORM_EPS, TIME_FEATURES, MARConfig, StackShape


class Attention(nn.Module):
    def __init__(self, shape: StackShape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.qkv = nn.Linear(shape.dim, 3 * shape.dim)
        self.proj = nn.Linear(shape.dim, shape.dim)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, shape: StackShape) -> None:
        super().__init__()
        self.fc1 = nn.Linear(shape.dim, shape.ffn)
        self.fc2 = nn.Linear(shape.ffn, shape.dim)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    """A block of a vision transformer: every row sees all rows."""

    def __init__(self, shape: StackShape) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.dim, NORM_EPS)
        self.attn = Attention(shape)
        self.norm2 = nn.LayerNorm(shape.dim, NORM_EPS)
        self.mlp = FeedForward(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def time_features(steps: Tensor) -> Tensor:
    """Cosines, then sines of steps [N] at 128 rates: fp32 [N,256]."""
    half = TIME_FEATURES // 2
    rates = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
    angles = steps[:, None].float() * rates.to(steps.device)
    return torch.cat([angles.cos(), angles.sin()], -1)


class TimeEmbedding(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mlp = nn.Sequential(
            nn.Linear(TIME_FEATURES, width), nn.SiLU(), nn.Linear(width, width)
        )

    def forward(self, steps: Tensor) -> Tensor:
        """Steps of training [N] -> [N,W]."""
        return self.mlp(time_features(steps).to(self.mlp[0].weight))


def modulation(width: int, parts: int) -> nn.Sequential:
    return nn.Sequential(nn.SiLU(), nn.Linear(width, parts * width))


class HeadBlock(nn.Module):
    """A multilayer perceptron whose norm and branch the condition scales and shifts (adaLN)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.in_ln = nn.LayerNorm(width, NORM_EPS)
        self.mlp = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
        self.adaLN_modulation = modulation(width, 3)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale, gate = self.adaLN_modulation(condition).chunk(3, -1)
        return x + gate * self.mlp(self.in_ln(x) * (1 + scale) + shift)


class HeadOutput(nn.Module):
    def __init__(self, width: int, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, features)
        self.adaLN_modulation = modulation(width, 2)

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        shift, scale = self.adaLN_modulation(condition).chunk(2, -1)
        x = F.layer_norm(x, x.shape[-1:], eps=NORM_EPS)
        return self.linear(x * (1 + scale) + shift)


class HeadNetwork(nn.Module):
    """Predicts noise and variance of noisy tokens."""

    def __init__(self, config: MARConfig) -> None:
        super().__init__()
        width = config.head_width
        self.time_embed = TimeEmbedding(width)
        self.cond_embed = nn.Linear(config.decoder.dim, width)
        self.input_proj = nn.Linear(config.channels, width)
        self.res_blocks = nn.ModuleList(HeadBlock(width) for _ in range(config.head_depth))
        self.final_layer = HeadOutput(width, 2 * config.channels)

    def forward(self, x: Tensor, steps: Tensor, z: Tensor) -> Tensor:
        """Tokens [N,C] at steps of training [N] under conditions z [N,D] -> noise and variance [N,2C]."""
        condition = self.time_embed(steps) + self.cond_embed(z)
        x = self.input_proj(x)
        for block in self.res_blocks:
            x = block(x, condition)
        return self.final_layer(x, condition)


class DiffusionHead(nn.Module):
    def __init__(self, config: MARConfig) -> None:
        super().__init__()
        self.net = HeadNetwork(config)


class MAR(nn.Module):
    def __init__(self, config: MARConfig) -> None:
        super().__init__()
        self.config = config
        e, d = config.encoder.dim, config.decoder.dim
        rows = config.buffer + config.positions
        self.class_emb = nn.Embedding(config.classes, e)
        self.fake_latent = nn.Parameter(torch.zeros(1, e))  # the class of no class
        self.z_proj = nn.Linear(config.channels, e)
        self.z_proj_ln = nn.LayerNorm(e, NORM_EPS)
        self.encoder_pos_embed_learned = nn.Parameter(torch.zeros(1, rows, e))
        self.encoder_blocks = nn.ModuleList(
            Block(config.encoder) for _ in range(config.encoder.depth)
        )
        self.encoder_norm = nn.LayerNorm(e, NORM_EPS)
        self.decoder_embed = nn.Linear(e, d)
        self.mask_token = nn.Parameter(torch.zeros(1, 1, d))
        self.decoder_pos_embed_learned = nn.Parameter(torch.zeros(1, rows, d))
        self.decoder_blocks = nn.ModuleList(
            Block(config.decoder) for _ in range(config.decoder.depth)
        )
        self.decoder_norm = nn.LayerNorm(d, NORM_EPS)
        self.diffusion_pos_embed_learned = nn.Parameter(torch.zeros(1, config.positions, d))
        self.diffloss = DiffusionHead(config)

    def label(self, classes: Tensor) -> Tensor:
        """classes int64 [B], config.classes for none -> [B,E]."""
        return F.embedding(classes, torch.cat([self.class_emb.weight, self.fake_latent]))

    def embed(self, latents: Tensor, classes: Tensor) -> Tensor:
        """The encoder's inputs if everything is visible: [B,buffer+L,E]."""
        label = self.label(classes)[:, None].expand(-1, self.config.buffer, -1)
        x = torch.cat([label, self.z_proj(latents)], 1)
        return self.z_proj_ln(x + self.encoder_pos_embed_learned)

    def kept(self, visible: Tensor) -> Tensor:
        """Rows that enter the encoder: bool [B,buffer+L]."""
        return F.pad(visible, (self.config.buffer, 0), value=True)

    def encode(self, latents: Tensor, visible: Tensor, classes: Tensor) -> Tensor:
        """visible bool [B,L], V in every image -> [B,buffer+V,E]."""
        x = self.embed(latents, classes)
        x = x[self.kept(visible)].view(len(x), -1, x.shape[-1])
        for block in self.encoder_blocks:
            x = block(x)
        return self.encoder_norm(x)

    def spread(self, encoded: Tensor, visible: Tensor) -> Tensor:
        """The decoder's inputs: [B,buffer+L,D]."""
        kept = self.kept(visible)
        x = self.mask_token.expand(*kept.shape, -1).clone()
        x[kept] = self.decoder_embed(encoded).flatten(0, 1).to(x.dtype)
        return x + self.decoder_pos_embed_learned

    def decode(self, encoded: Tensor, visible: Tensor) -> Tensor:
        """z [B,L,D]: the conditions of the diffusion head, of use where nothing is visible."""
        x = self.spread(encoded, visible)
        for block in self.decoder_blocks:
            x = block(x)
        x = self.decoder_norm(x)[:, self.config.buffer :]
        return x + self.diffusion_pos_embed_learned

    def context(self, latents: Tensor, visible: Tensor, classes: Tensor) -> Tensor:
        """latents [B,L,C], visible bool [B,L] as many in every image, classes int64 [B] -> z [B,L,D]."""
        return self.decode(self.encode(latents, visible, classes), visible)
