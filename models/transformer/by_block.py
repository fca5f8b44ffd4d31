"""Runs a decoder in Python that memory cannot hold prepared: one block at a time."""

import copy
from typing import Any, Callable, Iterator

from torch import Tensor, nn

from .decoder import Decoder
from .layer import Layer


def sharing(module: nn.Module) -> Any:
    """A module with the same tensors, which may be replaced in it alone."""
    other = copy.copy(module)
    other._buffers, other._modules = dict(module._buffers), dict(module._modules)
    return other


class BlocksOnDemand(nn.Module):
    """Yields copies of blocks, one at a time, prepared like `like`; calls `done` after each."""

    def __init__(self, layers: nn.ModuleList, like: Tensor, done: Callable[[], None]) -> None:
        super().__init__()
        self.layers, self.like, self.done = layers, like, done

    def __len__(self) -> int:
        return len(self.layers)

    def __iter__(self) -> Iterator[Layer]:
        for layer in self.layers:
            one = sharing(layer)
            one.prepare(self.like)
            yield one
            del one  # before the next one is made
            self.done()


def prepared_by_block(
    module: Decoder, like: Tensor, done: Callable[[], None] = lambda: None
) -> Decoder:
    """The module prepared like `like`, for use in Python, with one prepared block at a time."""
    other: Decoder = sharing(module)
    other.layers = BlocksOnDemand(module.layers, like, done)
    other.prepare_ends(like)
    return other
