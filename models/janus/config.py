"""Sizes of a Janus-Pro network and the ids of its tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..transformer.config import DecoderConfig


@dataclass(kw_only=True)
class JanusConfig(DecoderConfig):
    """Sizes of one network; the defaults are Llama's, which published files leave out.

    Ids: text first, then the image's codes.
    """

    text_ids: int  # rows of the text's table
    codes: int  # of the image tokenizer
    code_dim: int  # width of the codes' table
    head_width: int  # width between the two layers of the head
    aligner_depth: int = 2  # linear layers from the codes' table to the network's width
    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    ffn_dim: int = 11008
    vocab_size: int = field(init=False)  # ids of text and codes together
    max_positions: int = 2048
    norm_eps: float = 1e-6

    def __post_init__(self) -> None:
        super().__post_init__()
        self.vocab_size = self.text_ids + self.codes
