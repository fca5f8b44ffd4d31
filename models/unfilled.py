"""Modules without values: shapes that a checkpoint's tensors fill."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class _NoInitialisation(TorchFunctionMode):
    """Initialising a tensor on the meta device gives no values, but loads Torch's compiler, which takes a second."""

    def __torch_function__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        if getattr(function, "__module__", None) == "torch.nn.init":
            return arguments[0] if arguments else options["tensor"]
        return function(*arguments, **(options or {}))


@contextmanager
def unfilled() -> Iterator[None]:
    """Modules that are made inside lie on the meta device."""
    with torch.device("meta"), _NoInitialisation():
        yield
