"""Targets of any size: read weight by weight into mapped files, recorded one prepared block at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from ..bundle import BundleModule, Storage
from ..progress import Steps
from ..transformer.by_block import prepared_by_block
from ..transformer.decoder import Decoder
from ..transformer.layer import Keep, Read
from .common import seeded, target_calls
from .decoder_weights import DecoderWeights
from .mapped import MappedCopies


def mapped_target(
    weights: DecoderWeights,
    count: int,
    make: Callable[[Read, Keep], Decoder],
    storage: Storage,
    scratch: Path,
) -> BundleModule:
    """The target that `make` builds of `count` weights, which then lie in files of the folder `scratch`."""
    copies = MappedCopies(scratch, storage.dtype)
    progress = Steps("reading weights", count)

    def read(name: str) -> Tensor:
        progress.step()
        return weights.read(name)

    module = make(read, copies.keep)
    calls = target_calls(weights.config, 2, seeded())
    passes = sum(call.method == "forward" for call in calls) * (2 if storage.bits else 1)

    def prepared(like: Tensor) -> Decoder:
        progress = Steps("recording target", passes * weights.config.n_layer)
        return prepared_by_block(module, like, progress.step)

    return BundleModule(module, storage.dtype, calls, prepared=prepared, bits=storage.bits)
