"""Reads official checkpoint files: containers, formats, and strict loading."""

from __future__ import annotations

import argparse
import json
import pickle
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

State = dict[str, Tensor]


class ExportError(Exception):
    """What cannot be exported or trained, in one line.

    exit_code as in the command-line program: 4 for checkpoints that are missing or wrong, 2 for
    the command line, 7 for what cannot be written.
    """

    def __init__(self, message: str, exit_code: int = 4) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def read_file(path: Path) -> Any:
    """Content of a .safetensors or a pickled checkpoint, on the CPU; no code of it is run."""
    if not path.is_file():
        raise ExportError(
            f"{path}: {'is a folder, expected a file' if path.is_dir() else 'no such file'}"
        )
    try:
        with path.open("rb") as stream:
            head = stream.read(64).lstrip()
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from error
    if head.startswith((b"<", b"version https://git-lfs")):
        raise ExportError(
            f"{path}: got {'an HTML page' if head.startswith(b'<') else 'a Git LFS pointer'}, "
            "expected a checkpoint; download the file itself"
        )
    if not head:
        raise ExportError(f"{path}: damaged or no checkpoint: the file is empty")
    if is_script(path):
        raise ExportError(
            f"{path}: got a TorchScript archive, which is a program; expected the weights alone, a "
            "state dict"
        )
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        # Training containers carry the command line they were made with.
        with torch.serialization.safe_globals([argparse.Namespace]):
            try:
                return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except RuntimeError:  # written before the zip format, which alone can be mapped
                return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "WeightsUnpickler error" not in str(error):
            raise damaged(path, error) from error
        raise ExportError(
            f"{path}: got a checkpoint with objects besides tensors, which are code; expected the "
            "weights alone, a state dict"
        ) from error
    except (RuntimeError, EOFError, ValueError, OSError, SafetensorError) as error:
        raise damaged(path, error) from error
    except Exception as error:  # an unpickler stumbles over foreign bytes in any way
        raise damaged(path, ValueError("its bytes are no pickle")) from error


def damaged(path: Path, error: Exception) -> ExportError:
    reason = str(error).strip().partition("\n")[0].partition(". ")[0] or "it ends early"
    return ExportError(f"{path}: damaged or no checkpoint: {reason}")


def is_script(path: Path) -> bool:
    """Whether a file is an archive of torch.jit.save."""
    try:
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            return any(name.partition("/")[2] == "constants.pkl" for name in archive.namelist())
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):  # damaged
        return False


def is_state(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and len(value) > 0
        and all(isinstance(v, Tensor) for v in value.values())
    )


def unwrap(content: Any, path: Path, containers: Sequence[str]) -> State:
    """The state dict of a checkpoint: under the first container key there is, or the file itself."""
    if isinstance(content, Mapping):
        for key in containers:
            if is_state(content.get(key)):
                return dict(content[key])
        if is_state(content):
            return dict(content)
        keys = ", ".join(sorted(map(str, content))[:6])
        raise ExportError(
            f"{path}: no state dict: got keys {keys}, expected one of {', '.join(containers)} or "
            "a bare state dict"
        )
    raise ExportError(f"{path}: got {type(content).__name__}, expected a state dict")


def read_folder(folder: Path) -> State:
    """Tensors of a Hugging Face folder: one file or shards, safetensors preferred."""
    for suffix in ("model.safetensors", "pytorch_model.bin"):
        index = folder / f"{suffix}.index.json"
        if index.is_file():
            state: State = {}
            for name in shard_names(index):
                state.update(unwrap(read_file(folder / name), folder / name, ()))
            return state
        if (folder / suffix).is_file():
            return unwrap(read_file(folder / suffix), folder / suffix, ())
    raise ExportError(
        f"{folder}: no weights, expected model.safetensors or pytorch_model.bin (or their index)"
    )


def shard_names(index: Path) -> list[str]:
    """Files that the index of a folder lists; all of them must be there."""
    listed = read_json(index).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise ExportError(f"{index}: expected a weight_map with the file of every tensor")
    names = sorted({Path(str(name)).name for name in listed.values()})
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise ExportError(
            f"{index.parent}: {len(missing)} of {len(names)} shards are missing: "
            f"{', '.join(missing[:3])}{more}"
        )
    return names


def read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ExportError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise ExportError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise ExportError(f"{path}: expected a JSON object, got {type(value).__name__}")
    return value


def without(state: State, ignored: Iterable[str]) -> State:
    """The state less the keys that contain one of the strings in `ignored`."""
    ignored = tuple(ignored)
    return {k: v for k, v in state.items() if not any(part in k for part in ignored)}


def shape_of(state: State, key: str, dims: int, where: str) -> list[int]:
    """Shape of a tensor that must be there with so many dimensions."""
    if key not in state:
        raise ExportError(f"{where}: missing key {key}")
    if state[key].dim() != dims:
        raise ExportError(
            f"{where}: {key} has shape {list(state[key].shape)}, expected {dims} dimensions"
        )
    return list(state[key].shape)


def count_blocks(state: State, prefix: str) -> int:
    """Number of consecutive indices i = 0, 1, ... with keys that start with prefix + i + '.'."""
    rest = (k[len(prefix) :].partition(".")[0] for k in state if k.startswith(prefix))
    numbers = {int(part) for part in rest if part.isdigit()}
    return next(i for i in range(len(numbers) + 1) if i not in numbers)


def check_keys(wanted: Iterable[str], got: Iterable[str], where: str) -> None:
    """ExportError says how many keys are missing or unexpected, and the first three."""
    wanted, got = set(wanted), set(got)
    for title, names in (("missing", wanted - got), ("unexpected", got - wanted)):
        if names:
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            raise ExportError(f"{where}: {title} keys: {', '.join(sorted(names)[:3])}{more}")


def load_strictly(model: nn.Module, state: State, where: str) -> None:
    """Fills a model made on the meta device with exactly the tensors of `state`."""
    wanted = model.state_dict()
    check_keys(wanted, state, where)
    for name, tensor in wanted.items():
        if tensor.shape != state[name].shape:
            raise ExportError(
                f"{where}: {name} has shape {list(state[name].shape)}, "
                f"expected {list(tensor.shape)}"
            )
        if not state[name].is_floating_point():
            raise ExportError(f"{where}: {name} is {state[name].dtype}, expected floating point")
    model.load_state_dict(state, assign=True)
    model.requires_grad_(False)
    model.eval()
