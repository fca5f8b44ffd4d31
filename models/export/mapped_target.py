"""Targets of any size: read weight by weight into mapped files, recorded one prepared block at a time."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from ..bundle import Bundle, BundleModule, Storage
from ..progress import Steps
from ..recording import Call
from ..transformer.by_block import prepared_by_block
from ..transformer.decoder import Decoder
from ..transformer.layer import Keep, Read
from .common import SPARE_POSITIONS, STORAGES, seeded, target_calls
from .decoder_weights import DecoderWeights
from .mapped import MappedCopies


def add_target(
    bundle: Bundle,
    options: argparse.Namespace,
    weights: DecoderWeights,
    scratch: Path,
    make: Callable[[int, Read, Keep], Decoder],
) -> None:
    """Adds the target that `make` builds for a number of positions; its weights lie in files of `scratch`."""
    storage = STORAGES.get(options.dtype, Storage(weights.dtype))
    text = bundle.entries.get("text")
    longest = max(bundle.entries["cache"]["max_length"], text["length"] if text else 0)
    positions = longest + SPARE_POSITIONS
    copies = MappedCopies(scratch, storage.dtype)
    progress = Steps("reading weights", weights.count)

    def read(name: str) -> Tensor:
        progress.step()
        return weights.read(name)

    module = make(positions, read, copies.keep)
    calls = target_calls(weights.config, 2, seeded())
    if text:
        calls.append(Call("text_logits", calls[-1].inputs))
    passes = sum(call.method == "forward" for call in calls) * (2 if storage.bits else 1)

    def prepared(like: Tensor) -> Decoder:
        progress = Steps("recording target", passes * weights.config.n_layer)
        return prepared_by_block(module, like, progress.step)

    bundle.modules["target"] = BundleModule(
        module, storage.dtype, calls, prepared=prepared, bits=storage.bits
    )
