"""Sizes of a GLM-Image network."""

from __future__ import annotations

from dataclasses import dataclass

from ..transformer.config import Contradiction, DecoderConfig


@dataclass(kw_only=True)
class GlmImageConfig(DecoderConfig):
    """Sizes of one network; the defaults are the published one's and transformers'."""

    vocab_size: int = 168064
    dim: int = 4096
    n_layer: int = 40
    n_head: int = 32
    n_kv_head: int = 2
    ffn_dim: int = 13696
    max_positions: int = 131072
    rope_base: float = 10000.0
    norm_eps: float = 1e-5
    turned_share: float = 1.0  # of a head's features, its first ones; the published one's is 0.5
    sections: tuple[int, ...] = (8, 12, 12)  # pairs that turn with time, row and column

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.turned % 2 or 2 * sum(self.sections) != self.turned:
            raise Contradiction(
                f"sections {list(self.sections)} of rotations do not fit the {self.turned} features of a "
                "head that turn",
                *("sections", "turned_share", "n_head", "dim"),
            )

    @property
    def turned(self) -> int:
        """Features of a head that turn."""
        return int(self.head_dim * self.turned_share)
