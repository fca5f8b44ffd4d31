"""Writes safetensors files a piece at a time, however large their tensors are."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor

NAMES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64", torch.int32: "I32"}
ALIGNMENT = 8  # of the tensors' bytes in the file
Layout = Mapping[str, tuple[torch.dtype, Sequence[int]]]


def header_of(layout: Layout) -> tuple[bytes, dict[str, int]]:
    """The file's header, and where each tensor starts; "" gives the end."""
    entries: dict[str, Any] = {}
    end = 0
    # Wide numbers first, so that all lie aligned.
    for name, (dtype, shape) in sorted(layout.items(), key=lambda e: (-e[1][0].itemsize, e[0])):
        start, end = end, end + torch.Size(shape).numel() * dtype.itemsize
        entries[name] = {"dtype": NAMES[dtype], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    first = ALIGNMENT + len(text)
    starts = {name: first + entry["data_offsets"][0] for name, entry in entries.items()}
    return len(text).to_bytes(ALIGNMENT, "little") + text, {**starts, "": first + end}


class TensorFile:
    """A file of tensors of this layout, filled as a context; it is there once complete, or not at all.

    OSError: the disk is full, which is noticed at the beginning.
    """

    def __init__(self, path: Path, layout: Layout) -> None:
        self.path, self.layout = path, layout
        self.partial = path.with_suffix(".partial")

    def __enter__(self) -> TensorFile:
        header, self.starts = header_of(self.layout)
        self.stream = self.partial.open("wb", buffering=0)
        try:
            os.posix_fallocate(self.stream.fileno(), 0, self.starts[""])
            self.stream.write(header)
        except OSError as error:
            self.__exit__(OSError, error, None)
            raise
        return self

    def write(self, name: str, value: Tensor, entry: int | None = None) -> None:
        """A whole tensor, or one entry of its first dimension."""
        dtype, shape = self.layout[name]
        expected = torch.Size(shape if entry is None else shape[1:])
        if value.shape != expected or value.dtype != dtype:
            raise ValueError(
                f"{name}: got {value.dtype} {value.shape}, expected {dtype} {expected}"
            )
        self.stream.seek(self.starts[name] + (entry or 0) * value.nbytes)
        left = memoryview(value.contiguous().flatten().view(torch.uint8).numpy())
        while left:
            left = left[self.stream.write(left) :]

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stream.close()
        if error is None:
            os.replace(self.partial, self.path)
            return
        self.partial.unlink()
        if isinstance(error, OSError) and not error.filename:
            error.filename = str(self.path)
