"""Chameleon in plain PyTorch, with weights in the layout of the package.

Shapes: B sequences, L rows, D width of a head.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.rotary import line_table
from .config import QK_NORM_EPS, ChameleonConfig

# Tensors of one block, in their order in `layers.N.`.
LAYER_TENSORS = (
    "wqkv",
    "qk_norm_weight",
    "qk_norm_bias",
    "wo",
    "w13",
    "w2",
    "attention_norm",
    "ffn_norm",
)


def weight_shapes(config: ChameleonConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of all weights, in the order of use."""
    heads, dim = config.n_head * config.head_dim, config.dim
    kv_width = config.n_kv_head * config.head_dim
    block = {
        "wqkv": (heads + 2 * kv_width, dim),
        "qk_norm_weight": (config.normed_heads, config.head_dim),
        "qk_norm_bias": (config.normed_heads, config.head_dim),
        "wo": (dim, heads),
        "w13": (2 * config.ffn_dim, dim),
        "w2": (dim, config.ffn_dim),
        "attention_norm": (dim,),
        "ffn_norm": (dim,),
    }
    shapes: dict[str, tuple[int, ...]] = {"embedding": (config.vocab_size, dim)}
    for layer in range(config.n_layer):
        shapes.update({f"layers.{layer}.{name}": block[name] for name in LAYER_TENSORS})
    return {**shapes, "norm": (dim,), "head": (config.vocab_size, dim)}


def rotate(x: Tensor, rotation: Tensor) -> Tensor:
    """x [B,heads,L,D] with pairs (2i, 2i + 1) turned by rotation [L,D/2,2]."""
    cos, sin = rotation.unbind(-1)
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)


class Block(nn.Module):
    """One block; its weights are plain parameters named as in LAYER_TENSORS."""

    def __init__(self, config: ChameleonConfig, shapes: dict[str, tuple[int, ...]]) -> None:
        super().__init__()
        self.config = config
        for name, shape in shapes.items():
            self.register_parameter(name, nn.Parameter(torch.empty(shape)))

    def attend(self, x: Tensor, rotation: Tensor) -> Tensor:
        config = self.config
        qkv = F.linear(x, self.wqkv).unflatten(-1, (-1, config.head_dim))
        qk = F.layer_norm(qkv[:, :, : config.normed_heads], (config.head_dim,), eps=QK_NORM_EPS)
        qk = rotate((qk * self.qk_norm_weight + self.qk_norm_bias).transpose(1, 2), rotation)
        q, k = qk[:, : config.n_head], qk[:, config.n_head :]
        v = qkv[:, :, config.normed_heads :].transpose(1, 2)
        grouped = config.n_head != config.n_kv_head
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return F.linear(out.transpose(1, 2).flatten(2), self.wo)

    def feed(self, x: Tensor) -> Tensor:
        gate, up = F.linear(x, self.w13).chunk(2, -1)
        return F.linear(F.silu(gate) * up, self.w2)

    def norm(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self.config.norm_eps)

    def forward(self, x: Tensor, rotation: Tensor) -> Tensor:
        if self.config.swin_norm:
            x = x + self.norm(self.attend(x, rotation), self.attention_norm)
            return x + self.norm(self.feed(x), self.ffn_norm)
        x = x + self.attend(self.norm(x, self.attention_norm), rotation)
        return x + self.feed(self.norm(x, self.ffn_norm))


class Chameleon(nn.Module):
    """Decoder-only transformer over text and image ids, positions from 0."""

    def __init__(self, config: ChameleonConfig) -> None:
        super().__init__()
        self.config = config
        shapes = weight_shapes(config)
        block = {name: shapes[f"layers.0.{name}"] for name in LAYER_TENSORS}
        self.layers = nn.ModuleList(Block(config, block) for _ in range(config.n_layer))
        for name in ("embedding", "norm", "head"):
            self.register_parameter(name, nn.Parameter(torch.empty(shapes[name])))

    def reset(self) -> None:
        """Random weights of a size that keeps every layer's output in range."""
        for name, weight in self.named_parameters():
            if name.endswith("norm_weight") or weight.dim() == 1:
                nn.init.normal_(weight, 1.0, 0.1)
            elif name.endswith("norm_bias"):
                nn.init.normal_(weight, 0.0, 0.1)
            else:
                spread = 1.0 if name == "embedding" else weight.shape[1] ** -0.5
                nn.init.normal_(weight, 0.0, spread)

    def trunk(self, ids: Tensor) -> list[Tensor]:
        """Embeddings, the stream after every block but the last, final-norm features: [B,L,dim]."""
        x = F.embedding(ids, self.embedding)
        config = self.config
        rotation = line_table(ids.shape[1], config.head_dim, config.rope_base).to(x.device)
        taken = [x]
        for layer in self.layers:
            x = layer(x, rotation)
            taken.append(x)
        taken[-1] = F.rms_norm(x, x.shape[-1:], self.norm, self.config.norm_eps)
        return taken

    def forward(self, ids: Tensor) -> Tensor:
        """ids int64 [B,L] -> logits [B,L,vocabulary]."""
        return F.linear(self.trunk(ids)[-1], self.head)
