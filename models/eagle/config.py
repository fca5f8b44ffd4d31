"""Sizes and options of an EAGLE drafter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..transformer.config import Contradiction

ROTARY_KINDS = ("grid", "line")


@dataclass
class DrafterConfig:
    """Options of one drafter; the defaults are the published LlamaGen drafters'.

    rotary "grid" turns adjacent pairs by the row and column of token i + 1 (LlamaGen); row p of
    the table belongs to the feature at the target's position p, so it holds the target's angles
    of p + 1. "line" turns the two halves of a head by the position p itself (Chameleon family).
    """

    hidden: int  # width of the target's features, of the embeddings and of the layer
    heads: int
    ffn: int
    vocabulary: int  # rows of the embedding table
    max_length: int  # rows of the rotary table and slots of the cache
    kv_heads: int = 0  # 0: as many as heads
    fc_bias: bool = True
    input_norm: bool = False  # RMSNorm in front of the attention
    qk_norm: bool = False  # LayerNorm of every query and key head, before the rotation
    norm_eps: float = 1e-6
    qk_norm_eps: float = 1e-5
    rotary: str = "grid"
    rope_base: float = 10000.0
    grid: int = 16  # rotary "grid": columns and rows of the image in tokens
    prompt_length: int = 120  # rotary "grid": positions of the target in front of the image
    prefix_rotation: str = "zero"  # rotary "grid": of these positions, "zero" or "identity"
    prompt_id: int = 0  # id whose embedding stands in for prompts that are no tokens
    padding: bool = False  # trained on all rows of left-padded prompts: reads the padding, too

    SHARED_KEYS: ClassVar[bool] = True  # a key head serves as many query heads as every other

    def __post_init__(self) -> None:
        self.kv_heads = self.kv_heads or self.heads
        if self.rotary not in ROTARY_KINDS:
            raise ValueError(f"rotary: got {self.rotary!r}, expected one of {ROTARY_KINDS}")
        shared = not self.SHARED_KEYS or self.heads % self.kv_heads == 0
        if self.hidden % (2 * self.heads) or not shared:
            raise Contradiction(
                f"heads {self.heads}, kv_heads {self.kv_heads} do not fit hidden {self.hidden}",
                *("heads", "kv_heads", "hidden"),
            )
        rows = self.prompt_length - 1 + self.grid * self.grid
        if self.rotary == "grid" and self.max_length < rows:
            raise ValueError(f"max_length: got {self.max_length}, the image ends at {rows}")

    @property
    def head_dim(self) -> int:
        return self.hidden // self.heads
