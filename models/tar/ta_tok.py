"""The half of TA-Tok that makes features of codes, with the names of the published state dict."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .config import TaTokConfig


class Codebook(nn.Module):
    """SimVQ: a table and a product of all its rows."""

    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.unit = config.unit_codes
        self.embedding = nn.Embedding(config.codes, config.code_width)
        self.embedding_proj = nn.Linear(config.code_width, config.code_width)

    def table(self) -> Tensor:
        """fp32 [codes,W]."""
        rows = linear(self.embedding.weight.float(), self.embedding_proj)
        return F.normalize(rows, dim=-1) if self.unit else rows


class Bottleneck(nn.Module):
    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.regularizer = Codebook(config)
        self.out_linear = nn.Linear(config.code_width, config.code_width)


class Attention(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            self.add_module(name, nn.Linear(dim, dim))

    def qkv(self) -> tuple[Tensor, Tensor]:
        """Weights [3 dim, dim] and bias of the joined product."""
        parts = [self.get_submodule(f"{name}_proj") for name in "qkv"]
        return torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts])


class FeedForward(nn.Module):
    def __init__(self, dim: int, ffn: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(dim, ffn)
        self.fc2 = nn.Linear(ffn, dim)


class Block(nn.Module):
    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.layer_norm1 = nn.LayerNorm(config.dim, config.NORM_EPS)
        self.self_attn = Attention(config.dim)
        self.layer_norm2 = nn.LayerNorm(config.dim, config.NORM_EPS)
        self.mlp = FeedForward(config.dim, config.ffn)


class Embeddings(nn.Module):
    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.patch_embedding = nn.Linear(config.code_width, config.dim)
        self.position_embedding = nn.Embedding(config.places, config.dim)


class Blocks(nn.Module):
    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Block(config) for _ in range(config.layers))


class Decoder(nn.Module):
    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.embeddings = Embeddings(config)
        self.encoder = Blocks(config)
        self.post_layernorm = nn.LayerNorm(config.dim, config.NORM_EPS)


class TaTok(nn.Module):
    """Weights alone; text_encoder_module.py computes with them."""

    def __init__(self, config: TaTokConfig) -> None:
        super().__init__()
        self.config = config
        self.bottleneck = Bottleneck(config)
        self.decoder = Decoder(config)
        self.decode_task_layer = nn.Sequential(
            nn.Linear(config.dim, config.dim), nn.Tanh(), nn.Linear(config.dim, config.dim)
        )

    def embedded_codes(self) -> Tensor:
        """What the first block gets of every code, without its position: fp32 [codes,H]."""
        rows = linear(self.bottleneck.regularizer.table(), self.bottleneck.out_linear)
        return linear(rows, self.decoder.embeddings.patch_embedding)


def linear(x: Tensor, layer: nn.Linear) -> Tensor:
    return F.linear(x, layer.weight.float(), layer.bias.float())
