"""Sizes of a Janus-Pro network and the ids of its tokens."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class JanusConfig:
    """Sizes of one network; the defaults are Llama's, which published files leave out.

    Ids: text first, then the picture's codes.
    """

    text_ids: int  # rows of the text's table
    codes: int  # of the image tokenizer
    code_dim: int  # width of the codes' table
    head_width: int  # width between the two layers of the head
    aligner_depth: int = 2  # linear layers from the codes' table to the network's width
    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_kv_head: int = 0  # 0: as many as heads
    ffn_dim: int = 11008
    max_positions: int = 2048
    rope_base: float = 10000.0
    norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        self.n_kv_head = self.n_kv_head or self.n_head
        if self.dim % (2 * self.n_head) or self.n_head % self.n_kv_head:
            raise ValueError(
                f"{self.n_head} heads and {self.n_kv_head} key/value heads do not fit a width of "
                f"{self.dim}"
            )

    @property
    def head_dim(self) -> int:
        return self.dim // self.n_head

    @property
    def vocab_size(self) -> int:
        """Ids of text and codes together."""
        return self.text_ids + self.codes
