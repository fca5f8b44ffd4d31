"""Reads the tensors of a Hugging Face folder.

The rules:
- safetensors goes before pytorch_model.bin, and a single file before an index with shards, as in
  transformers; what else lies there is named.
- Of shards all that the index lists have to be there, and each tensor in the one that the index names.
  A tensor in two shards is refused unless both are equal: parts of two downloads are mixed.
- A tensor that no shard has is missing only where the model needs it; one that the index does not list is read
  as in transformers. Both are named.
- Shards lie beside the index or in folders below it; of other paths the file's name counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from pathlib import Path, PurePosixPath

import torch
from torch import Tensor

from .json_file import read_json
from .messages import ExportError, listed, note
from .names import contained, settled
from .tensors import State
from .weight_file import read_file

SUFFIXES = ("model.safetensors", "pytorch_model.bin")
SHARD = re.compile(r"-\d{5}-of-\d{5}\.(safetensors|bin)$")


def read_folder(folder: Path, anchors: Sequence[str] = (), base: str = "") -> State:
    """The model's tensors; anchors and base as in names.settled."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    forms = [folder / f"{name}{end}" for name in SUFFIXES for end in ("", ".index.json")]
    present = [path for path in forms if path.is_file()]
    if not present:
        raise ExportError(no_weights(folder))
    first, *others = present
    if others:
        names = ", ".join(path.name for path in others)
        note(f"{folder}: reads {first.name}, not {names} beside it")
    state = read_shards(first) if first.suffix == ".json" else content_of(first, anchors)
    tell_unread(first, others)
    return settled(state, str(folder), anchors, base=base)


def tell_unread(first: Path, others: Sequence[Path]) -> None:
    """Names shards that no index lists: of another download, or of another model."""
    read = set(shard_names(first)) if first.suffix == ".json" else set()
    reported = tuple(f"{path.name.split('.')[0]}-" for path in others if path.suffix == ".json")
    shards = {path.name for path in first.parent.iterdir() if SHARD.search(path.name)}
    if beside := sorted(name for name in shards - read if not name.startswith(reported)):
        note(f"{first.parent}: reads {first.name}, not {listed(beside)} beside it")


def content_of(path: Path, anchors: Sequence[str] = ()) -> State:
    return contained(read_file(path), path, anchors)


def no_weights(folder: Path) -> str:
    text = f"{folder}: no weights, expected model.safetensors or pytorch_model.bin (or their index)"
    shards = [p.name for p in folder.iterdir() if SHARD.search(p.name)]
    if shards:
        text += f"; {listed(sorted(shards))} need their index, download it, too"
    elif (folder / "adapter_model.safetensors").is_file():
        text += "; got an adapter, merge it into its model first"
    return text


def read_shards(index: Path) -> State:
    """Tensors of all shards, each from the one that the index names."""
    listing, folder = weight_map(index), index.parent
    state: State = {}
    origin: dict[str, str] = {}
    for name in shard_names(index):
        for key, tensor in content_of(folder / name).items():
            if key in state and not same(state[key], tensor):
                raise ExportError(
                    f"{folder}: {key} differs in {origin[key]} and {name}; are these parts of two "
                    "downloads? download the folder again"
                )
            if key not in state or listing.get(key) == name:
                state[key], origin[key] = tensor, name
    for key, name in listing.items():
        if origin.get(key, name) != name:
            raise ExportError(
                f"{folder}: {key} is in {origin[key]}, {index.name} lists it in {name}; is the index "
                "of another download?"
            )
    tell_others(index, listing.keys() - state.keys(), state.keys() - listing.keys())
    return state


def tell_others(index: Path, absent: Set[str], unlisted: Set[str]) -> None:
    """Names what only the index has, and what only shards have."""
    if absent:
        note(f"{index}: lists {listed(sorted(absent))}, which no shard has")
    if unlisted:
        note(f"{index}: does not list {listed(sorted(unlisted))} of the shards, which are read")


def same(one: Tensor, other: Tensor) -> bool:
    """Equal bytes, for any dtype."""
    pair = (one, other)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if any(t.is_nested or t.is_meta or t.layout != torch.strided for t in pair):
        return False
    first, second = (t.detach().reshape(-1).contiguous().view(torch.uint8) for t in pair)
    return torch.equal(first, second)


def weight_map(index: Path) -> dict[str, str]:
    """File of every tensor."""
    listing = read_json(index).get("weight_map")
    if not isinstance(listing, dict) or not listing:
        raise ExportError(f"{index}: expected a weight_map with the file of every tensor")
    odd = next((key for key, name in listing.items() if not isinstance(name, str)), None)
    if odd is not None:
        raise ExportError(
            f"{index}: weight_map: {odd} has {listing[odd]!r}, expected a file's name"
        )
    return {key: below(name) for key, name in listing.items()}


def below(name: str) -> str:
    path = PurePosixPath(name)
    return path.name if path.is_absolute() or ".." in path.parts else str(path)


def shard_names(index: Path) -> list[str]:
    """Files that the index of a folder lists; all of them must be there."""
    names = sorted(set(weight_map(index).values()))
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise ExportError(
            f"{index.parent}: {len(missing)} of {len(names)} shards are missing: {listed(missing)}"
        )
    return names
