"""Sizes of a SimpleAR network and the ids of its tokens."""

from __future__ import annotations

from dataclasses import dataclass

from ..transformer.config import DecoderConfig


@dataclass(kw_only=True)
class SimpleARConfig(DecoderConfig):
    """Sizes of one network; the defaults are Qwen2's, which published files may leave out.

    Ids: text first, then the image's codes.
    """

    vocab_size: int  # ids of text and codes together
    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_kv_head: int = 32
    ffn_dim: int = 22016
    max_positions: int = 32768
    norm_eps: float = 1e-6


@dataclass(frozen=True)
class ImageIds:
    """The ids that the head gives: the codes, or the whole vocabulary."""

    text: int  # ids of text in front of the codes: the tokenizer's
    codes: int
    all: bool = False  # ids of text have a share, too; sampled ones become code 0

    @property
    def first(self) -> int:
        return 0 if self.all else self.text

    @property
    def count(self) -> int:
        return self.codes + (self.text if self.all else 0)
