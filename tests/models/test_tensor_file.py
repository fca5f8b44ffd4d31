"""Safetensors files that are written piece by piece."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from models.export.command import run_command
from models.tensor_file import TensorFile


def test_pieces_in_any_order(tmp_path: Path) -> None:
    tensors = {
        "a": torch.randn(5, 3, 7).bfloat16(),
        "layers": torch.tensor([1, 4]),
        "b": torch.randint(9, (3, 1), dtype=torch.int32),
        "c": torch.randn(2, 3),
    }
    layout = {name: (tensor.dtype, tensor.shape) for name, tensor in tensors.items()}
    path = tmp_path / "made.safetensors"
    with TensorFile(path, layout) as file:
        for entry in (3, 0, 4, 1, 2):
            file.write("a", tensors["a"][entry], entry)
        for name in ("layers", "b"):
            file.write(name, tensors[name])
        file.write("c", tensors["c"].T.contiguous().T)
        assert not path.exists()
    found = load_file(path)
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())
    assert os.listdir(tmp_path) == [path.name]


def test_other_shapes_and_precisions_are_refused(tmp_path: Path) -> None:
    for value, entry in ((torch.zeros(3), None), (torch.zeros(2, 3).bfloat16(), None),
                         (torch.zeros(2, 3), 0)):  # fmt: skip
        with pytest.raises(ValueError, match=r"a: got .*, expected torch.float32"):
            with TensorFile(tmp_path / "made", {"a": (torch.float32, (2, 3))}) as file:
                file.write("a", value, entry)
        assert not os.listdir(tmp_path)


def test_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the file, and nothing is left."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write() -> None:
        with TensorFile(tmp_path / "made", {"a": (torch.float32, (2, 3))}):
            raise AssertionError("the file has no room")

    monkeypatch.setattr(os, "posix_fallocate", full)
    assert run_command(write) == 7
    assert capsys.readouterr().err == f"error: {tmp_path}/made: No space left on device\n"
    assert not os.listdir(tmp_path)
