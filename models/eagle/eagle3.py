"""The EAGLE-3 drafter in plain PyTorch (Li et al. 2025), with the published weight names.

It reads what several blocks of the target got, side by side, or its own last output, and has a head of its
own over a part of the vocabulary. Shapes: S sequences, R rows, H hidden width, F = width of the target's
features, V codes of an image, D entries of the draft vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..transformer.blocks import RMSNorm
from ..transformer.head import Head
from .batch import Batch
from .config import DrafterConfig
from .drafter import Attention, Context, FeedForward, KeysValues, rotary_table, rotations


@dataclass
class Eagle3Config:
    """layer: sizes and rotations; features F; draft_vocabulary D; layers of the target whose inputs it reads."""

    layer: DrafterConfig
    features: int
    draft_vocabulary: int
    layers: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.layer, dict):
            self.layer = DrafterConfig(**self.layer)
        self.layers = tuple(self.layers)


def default_layers(count: int) -> tuple[int, ...]:
    """The layers that published drafters read, of a target of `count` layers."""
    return (2, count // 2, count - 3)


class MidLayer(nn.Module):
    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        self.self_attn = Attention(config, 2 * config.hidden)
        self.mlp = FeedForward(config)
        self.hidden_norm = RMSNorm(config.hidden, config.norm_eps)
        self.input_layernorm = RMSNorm(config.hidden, config.norm_eps)
        self.post_attention_layernorm = RMSNorm(config.hidden, config.norm_eps)

    def forward(
        self, embeddings: Tensor, x: Tensor, rotation: Tensor, context: Context
    ) -> tuple[Tensor, KeysValues]:
        """As DrafterLayer.forward."""
        joined = torch.cat([self.input_layernorm(embeddings), self.hidden_norm(x)], -1)
        out, own = self.self_attn(joined, rotation, context)
        x = x + out
        return x + self.mlp(self.post_attention_layernorm(x)), own


class Eagle3Drafter(nn.Module):
    def __init__(self, config: Eagle3Config) -> None:
        super().__init__()
        layer = config.layer
        self.config = config
        self.embed_tokens = nn.Embedding(layer.vocabulary, layer.hidden)
        self.fc = nn.Linear(config.features, layer.hidden, bias=False)
        self.midlayer = MidLayer(layer)
        self.norm = RMSNorm(layer.hidden, layer.norm_eps)
        self.lm_head = nn.Linear(layer.hidden, config.draft_vocabulary, bias=False)
        self.register_buffer("d2t", torch.zeros(config.draft_vocabulary, dtype=torch.int64))
        self.register_buffer("t2d", torch.ones(layer.vocabulary, dtype=torch.bool))
        self.register_buffer("rotary", rotary_table(layer), persistent=False)

    def forward(
        self, embeddings: Tensor, features: Tensor, positions: Tensor, context: Context
    ) -> tuple[Tensor, KeysValues]:
        """As Drafter.forward; features [S,R,F] of the target, or [S,R,H] of its own."""
        x = features if features.shape[-1] == self.config.layer.hidden else self.fc(features)
        rotation = rotations(self.rotary, positions)
        return self.midlayer(embeddings, x, rotation, context)

    def read(self, batch: Batch) -> Tensor:
        """The features [S,L,F] of a batch that it reads."""
        assert batch.inner is not None
        return batch.inner

    def guess(self, hidden: Tensor, head: Head) -> Tensor:
        """As Drafter.guess, with its own head; the draft vocabulary is that of the target's head."""
        return self.logits(hidden)

    def logits(self, hidden: Tensor) -> Tensor:
        """[S,R,H] -> [S,R,D]."""
        result: Tensor = self.lm_head(self.norm(hidden))
        return result
