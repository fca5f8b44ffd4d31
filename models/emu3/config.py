"""Sizes of a network of Emu3 or Emu3.5."""

from __future__ import annotations

from dataclasses import dataclass

from ..transformer.config import DecoderConfig


@dataclass(kw_only=True)
class Emu3Config(DecoderConfig):
    """Sizes of one network; the defaults are the published Emu3's and transformers'."""

    vocab_size: int = 184622
    dim: int = 4096
    n_layer: int = 32
    n_head: int = 32
    n_kv_head: int = 8
    ffn_dim: int = 14336
    max_positions: int = 9216
    rope_base: float = 1e6
    norm_eps: float = 1e-5
    head_norms: bool = False  # of queries and keys; Emu3.5 has them
