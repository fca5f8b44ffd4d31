"""Sizes that the decoders of all families have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class Contradiction(ValueError):
    """Values that do not fit each other; fields: their names."""

    def __init__(self, message: str, *fields: str) -> None:
        super().__init__(message)
        self.fields = fields


@dataclass(kw_only=True)
class DecoderConfig:
    """Sizes of one decoder; a family adds its own and its defaults."""

    HEAD_MULTIPLE: ClassVar[int] = 2  # rotations turn pairs of a head's features

    dim: int
    n_layer: int
    n_head: int
    n_kv_head: int = 0  # 0: as many as heads
    head_size: int = 0  # 0: the heads together are as wide as the network
    ffn_dim: int
    vocab_size: int
    rope_base: float = 10000.0
    norm_eps: float = 1e-5

    def __post_init__(self) -> None:
        self.n_kv_head = self.n_kv_head or self.n_head
        width = self.head_size * self.n_head or self.dim  # of all heads
        if width % (self.HEAD_MULTIPLE * self.n_head) or self.n_head % self.n_kv_head:
            raise Contradiction(
                f"{self.n_head} heads and {self.n_kv_head} key/value heads do not fit a width of "
                f"{self.dim}",
                *("n_head", "n_kv_head", "dim"),
            )

    @property
    def head_dim(self) -> int:
        return self.head_size or self.dim // self.n_head
