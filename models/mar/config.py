"""Sizes of a MAR network."""

from __future__ import annotations

from dataclasses import dataclass

NORM_EPS = 1e-6
TIME_FEATURES = 256  # width of a time step's sinusoids


@dataclass(frozen=True)
class StackShape:
    """Blocks of the encoder or of the decoder."""

    dim: int
    depth: int
    heads: int
    ffn: int

    def __post_init__(self) -> None:
        if self.heads < 1 or self.dim % self.heads:
            raise ValueError(f"{self.heads} heads do not fit a width of {self.dim}")


@dataclass(frozen=True)
class MARConfig:
    """Sizes of one network."""

    positions: int  # tokens of an image
    channels: int  # of a token
    classes: int
    buffer: int  # slots in front of the tokens, all of which hold the class
    encoder: StackShape
    decoder: StackShape
    head_depth: int
    head_width: int

    def __post_init__(self) -> None:
        if min(self.positions, self.channels, self.classes, self.buffer, self.head_width) < 1:
            raise ValueError(f"a size of {self} is 0")


def square_shape(dim: int, depth: int, heads: int) -> StackShape:
    return StackShape(dim, depth, heads, 4 * dim)
