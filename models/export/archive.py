"""Reads single tensors of a TorchScript archive, however large the rest of it is."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

STORAGES = {"Float": torch.float32, "BFloat16": torch.bfloat16, "Half": torch.float16}


@dataclass
class Stored:
    """A tensor that is still in the archive."""

    record: str
    dtype: torch.dtype | None
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]


class Object:
    """A scripted module; its attributes are what was pickled."""

    def __setstate__(self, attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)


class Unpickler(pickle.Unpickler):
    """Builds modules as objects with attributes and leaves the tensors in their records."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("__torch__"):
            return Object
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return rebuild
        if module == "torch" and name.endswith("Storage"):
            return STORAGES.get(name.removesuffix("Storage"))
        if module == "torch.jit._pickle":
            return lambda value, *_: value
        raise pickle.UnpicklingError(f"no module's attribute: {module}.{name}")

    def persistent_load(self, key: Any) -> Any:
        _, kind, record, *_ = key
        return f"data/{record}", kind


def rebuild(storage: tuple[str, torch.dtype | None], offset: int, *layout: Any) -> Stored:
    return Stored(*storage, offset, tuple(layout[0]), tuple(layout[1]))


def archived_tensor(path: Path, name: str) -> Tensor | None:
    """A tensor attribute of the archive's module on the CPU; None when it has no such tensor.

    RuntimeError: no TorchScript archive.
    """
    reader = torch._C.PyTorchFileReader(str(path))
    try:
        module = Unpickler(io.BytesIO(reader.get_record("data.pkl"))).load()
    except (pickle.UnpicklingError, TypeError, ValueError) as error:
        raise RuntimeError(f"no scripted module: {error}") from error
    found = vars(module).get(name)
    if not isinstance(found, Stored) or found.dtype is None:
        return None
    if 0 in found.shape:
        return torch.empty(found.shape, dtype=found.dtype)
    flat = torch.frombuffer(bytearray(reader.get_record(found.record)), dtype=found.dtype)
    return flat.as_strided(found.shape, found.stride, found.offset)
