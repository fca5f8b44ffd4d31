"""LlamaGen GPT in plain PyTorch, with the official state-dict keys; generate.py samples from it."""

from __future__ import annotations

from typing import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..transformer.blocks import Block, RMSNorm
from ..transformer.rotary import grid_table
from .config import GPTConfig


def rotary_table(config: GPTConfig) -> Tensor:
    """Rotations [prefix + grid^2, head_dim / 2, 2] as (cos, sin) in fp32."""
    return grid_table(
        config.grid, config.head_dim, config.rope_base, config.cls_token_num, config.prefix_rotation
    )


def pad_left(features: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Moves the valid rows of right-padded features [B,T,C] to the end; padding becomes zero."""
    length = mask.shape[1]
    valid = mask.sum(1, keepdim=True)
    index = (torch.arange(length, device=mask.device)[None] + valid) % length
    moved = features.gather(1, index[..., None].expand_as(features))
    left = mask.flip(1)
    return moved * left[..., None].to(moved.dtype), left


class ClassEmbedder(nn.Module):
    """Class table; its last row is the null class."""

    def __init__(self, num_classes: int, dim: int) -> None:
        super().__init__()
        self.embedding_table = nn.Embedding(num_classes + 1, dim)

    def forward(self, classes: Tensor) -> Tensor:
        return self.embedding_table(classes)[:, None]


class CaptionProjection(nn.Module):
    def __init__(self, caption_dim: int, dim: int) -> None:
        super().__init__()
        self.fc1 = nn.Linear(caption_dim, dim, bias=False)
        self.fc2 = nn.Linear(dim, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class CaptionEmbedder(nn.Module):
    """Projection of text features; the null caption is a fixed random table of features."""

    def __init__(self, caption_dim: int, dim: int, length: int) -> None:
        super().__init__()
        self.cap_proj = CaptionProjection(caption_dim, dim)
        null = nn.init.normal_(torch.empty(length, caption_dim), std=caption_dim**-0.5)
        self.register_buffer("uncond_embedding", null)

    def forward(self, features: Tensor) -> Tensor:
        return self.cap_proj(features)


class GPT(nn.Module):
    """Decoder-only transformer over a condition prefix and image tokens in raster order."""

    def __init__(
        self,
        config: GPTConfig,
        token_dropout: float = 0.0,
        resid_dropout: float = 0.0,
        ffn_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.config = config
        if config.model_type == "c2i":
            self.cls_embedding = ClassEmbedder(config.num_classes, config.dim)
        else:
            self.cls_embedding = CaptionEmbedder(
                config.caption_dim, config.dim, config.cls_token_num
            )
        self.tok_embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.token_dropout = nn.Dropout(token_dropout)
        self.layers = nn.ModuleList(
            Block(config, resid_dropout, ffn_dropout) for _ in range(config.n_layer)
        )
        self.norm = RMSNorm(config.dim, config.norm_eps)
        self.output = nn.Linear(config.dim, config.vocab_size, bias=False)
        with torch.device("cpu"):  # also where weights are made without values
            table = torch.view_as_complex(rotary_table(self.config))[:, None]
        self.register_buffer("rotation", table, persistent=False)
        self.apply(self._initialise)
        nn.init.zeros_(self.output.weight)

    @staticmethod
    def _initialise(module: nn.Module) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)

    def _apply(self, fn, recurse: bool = True):  # noqa: ANN001, ANN202
        """Keeps the rotations in complex64 when the weights change their dtype."""
        rotation = self._buffers.pop("rotation")
        super()._apply(fn, recurse)
        self.register_buffer("rotation", rotation.to(self.output.weight.device), persistent=False)
        return self

    def unconditional(self, cond: Tensor) -> Tensor:
        """The null condition in the shape of `cond`."""
        if self.config.model_type == "c2i":
            return torch.full_like(cond, self.config.num_classes)
        return self.cls_embedding.uncond_embedding.to(cond.dtype).expand_as(cond)

    def embed_condition(self, cond: Tensor, drop: Tensor | None = None) -> Tensor:
        """Prefix embeddings [B,T,dim] of left-padded features [B,T,C] or of class ids [B].

        Rows of the bool tensor drop [B] get the null condition.
        """
        if drop is not None:
            drop = drop.view(-1, *[1] * (cond.dim() - 1))
            cond = torch.where(drop, self.unconditional(cond), cond)
        return self.cls_embedding(cond)

    def attention_bias(self, mask: Tensor | None, length: int) -> Tensor:
        """Additive bias [B or 1,1,L,L]: causal, padded prefix columns hidden, diagonal seen."""
        device = self.output.weight.device
        seen = torch.ones(length, length, dtype=torch.bool, device=device).tril()[None]
        if mask is not None:
            columns = F.pad(mask.bool(), (0, length - mask.shape[1]), value=True)
            seen = seen & columns[:, None]
            seen = seen | torch.eye(length, dtype=torch.bool, device=device)
        bias = torch.zeros(seen.shape, device=device).masked_fill_(~seen, -torch.inf)
        return bias[:, None]

    def trunk(
        self, x: Tensor, mask: Tensor | None, return_layers: Sequence[int] = ()
    ) -> tuple[Tensor, list[Tensor]]:
        """Final-norm features [B,L,dim] of embeddings x [B,L,dim] that start with the prefix.

        return_layers: n adds the residual stream after n layers to the list.
        """
        bias = self.attention_bias(mask, x.shape[1])
        rotation = self.rotation[: x.shape[1]]
        taken: dict[int, Tensor] = {}
        for count, layer in enumerate(self.layers, 1):
            x = layer(x, rotation, bias)
            if count in return_layers:
                taken[count] = x
        return self.norm(x), [taken[count] for count in return_layers]

    def forward(
        self,
        idx: Tensor,
        cond: Tensor,
        mask: Tensor | None = None,
        drop: Tensor | None = None,
        return_layers: Sequence[int] = (),
    ) -> Tensor | tuple[Tensor, list[Tensor]]:
        """Logits [B, n+1, vocab] of image tokens 0..n given the first n, idx [B,n].

        cond: left-padded text features [B,T,C] with mask [B,T], or class ids [B]. With
        return_layers also the residual streams [B, T+n, dim] after those layers.
        """
        prefix = self.embed_condition(cond, drop)
        x = self.token_dropout(torch.cat([prefix, self.tok_embeddings(idx)], 1))
        features, taken = self.trunk(x, mask, return_layers)
        logits = self.output(features[:, self.config.cls_token_num - 1 :])
        return (logits, taken) if return_layers else logits
