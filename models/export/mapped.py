"""Copies of tensors that lie in files instead of memory."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import torch
from torch import Tensor

SMALL = 1 << 20  # bytes that are not worth a file


class MappedCopies:
    """Keeps tensors in nameless files of a folder, in one precision.

    The system may take their memory back at any time; the files go away with the tensors.
    """

    def __init__(self, folder: Path, dtype: torch.dtype) -> None:
        self.folder, self.dtype = folder, dtype

    def keep(self, tensor: Tensor) -> Tensor:
        """A contiguous copy. OSError: the disk is full."""
        size = tensor.numel() * self.dtype.itemsize
        if size < SMALL:
            return tensor.to(self.dtype, copy=True).contiguous()
        with tempfile.NamedTemporaryFile(dir=self.folder, prefix=".tensor.") as file:
            # Pages of a file without room on the disk would kill the process when written.
            os.posix_fallocate(file.fileno(), 0, size)
            kept = torch.from_file(file.name, shared=True, size=tensor.numel(), dtype=self.dtype)
        return kept.view(tensor.shape).copy_(tensor)
