"""Sizes of a SimpleAR network and the ids of its tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class SimpleARConfig:
    """Sizes of one network; the defaults are Qwen2's, which published files may leave out.

    Ids: text first, then the picture's codes.
    """

    vocab_size: int  # ids of text and codes together
    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_kv_head: int = 32
    ffn_dim: int = 22016
    max_positions: int = 32768
    rope_base: float = 10000.0
    norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        if self.dim % (2 * self.n_head) or self.n_head % self.n_kv_head:
            raise ValueError(
                f"{self.n_head} heads and {self.n_kv_head} key/value heads do not fit a width of "
                f"{self.dim}"
            )

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_head


@dataclass(frozen=True)
class ImageIds:
    """The ids that the head gives: those of codes, or all of the vocabulary."""

    text: int  # ids of text in front of the codes: the tokenizer's
    codes: int
    all: bool = False  # the law counts ids of text, too; those that are drawn become code 0

    @property
    def first(self) -> int:
        return 0 if self.all else self.text

    @property
    def count(self) -> int:
        return self.codes + (self.text if self.all else 0)
