"""Sizes of Tar's de-tokenizer."""

from __future__ import annotations

from dataclasses import dataclass

from ..transformer.config import DecoderConfig

SCALES = 3  # of codes; their sides are the finest one's over 1, 2 and 3


@dataclass(kw_only=True)
class DetokenizerConfig(DecoderConfig):
    """The network that makes an image's codes of TA-Tok's features."""

    features: int  # width of the condition
    prompt_side: int  # codes a side of the finest condition
    side: int  # codes a side of the image

    @property
    def prompt_length(self) -> int:
        return self.prompt_side**2

    @property
    def positions(self) -> int:
        """Learned ones: the last code is never read."""
        return self.prompt_length + self.side**2 - 1

    @property
    def lengths(self) -> list[int]:
        """How many codes a condition may have, ascending."""
        sides = {self.prompt_side // scale for scale in range(1, SCALES + 1)}
        return [side**2 for side in sorted(sides) if side > 0]


@dataclass(kw_only=True)
class TaTokConfig:
    """The half of TA-Tok that makes features of codes."""

    HEADS = 12  # the published class takes the default of Siglip2VisionConfig
    NORM_EPS = 1e-6

    codes: int
    code_width: int
    dim: int
    layers: int
    ffn: int
    places: int  # learned positions, a square
    unit_codes: bool  # whether rows of the codebook have unit length
