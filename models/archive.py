"""Writes TorchScript archives, and reads single tensors of them, however large the rest is."""

from __future__ import annotations

import io
import pickle
import re
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

STORAGES = {
    "Float": torch.float32,
    "BFloat16": torch.bfloat16,
    "Half": torch.float16,
    "Char": torch.int8,
    "Byte": torch.uint8,
}
MOST_DEPTH = 32  # of modules in modules
# Torch keeps a class's constants in a set, whose order differs from process to process.
CONSTANTS = re.compile(rb"(?:^  \w+ : Final\[.*\n)+", re.MULTILINE)


class PatientFile:
    """Keeps the first error of a stream for later: torch ends the process when a write fails."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.error: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        try:
            if self.error is None:
                self.stream.write(data)
        except OSError as error:
            self.error = error
        return len(data)

    def flush(self) -> None:
        """torch.save calls this; the stream's owner closes it."""


def write_archive(module: nn.Module, path: Path) -> None:
    """Scripts and saves a module without the debug files, which name source paths.

    Weights go from where they are to the file without a copy. Constant tensors in the code are not
    supported.
    """
    scripted = torch.jit.script(module.eval())
    frame = io.BytesIO()  # the archive without the weights, as torch.package has it
    writer = torch._C.PyTorchFileWriter(frame)
    serializer = torch._C.ScriptModuleSerializer(writer)
    known = serializer.storage_context()
    weights = [t.untyped_storage() for t in (*scripted.parameters(), *scripted.buffers())]
    named = {known.get_or_add_storage(storage): storage for storage in weights}
    serializer.serialize(scripted._c, 0)
    serializer.write_files()
    writer.write_end_of_file()
    frame.seek(0)
    records = archive_records(torch._C.PyTorchFileReader(frame))
    with path.open("wb") as stream:
        output = PatientFile(stream)
        writer = torch._C.PyTorchFileWriter(output)
        writer.set_min_version(torch._C._get_max_operator_version())
        for number, storage in named.items():
            writer.write_record(f"data/{number}.storage", storage, storage.nbytes())
        for name, data in records.items():
            writer.write_record(name, data, len(data))
        writer.write_end_of_file()
        if output.error:
            raise output.error


def archive_records(reader: Any) -> dict[str, bytes]:
    """Records of an archive that torch.package would hold, under the names torch.jit.load reads."""
    names = {".data/ts_code/0/": "", ".data/ts_code/": "", ".data/": "data/"}
    records = {}
    for name in reader.get_all_records():
        generated = name in ("version", "byteorder", ".data/version", ".data/serialization_id")
        if not generated and not name.endswith(".debug_pkl"):
            start = next(start for start in names if name.startswith(start))
            data = reader.get_record(name)
            if name.endswith(".py"):
                data = CONSTANTS.sub(sorted_lines, data)
            records[names[start] + name[len(start) :]] = data
    return records


def sorted_lines(found: re.Match[bytes]) -> bytes:
    return b"".join(sorted(found[0].splitlines(keepends=True)))


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
    """A tensor attribute of the archive's module on the CPU; None when it has none of that name.

    RuntimeError: no TorchScript archive.
    """
    reader, module = read_module(path)
    found = vars(module).get(name)
    if not isinstance(found, Stored) or found.dtype is None:
        return None
    return read_stored(reader, found)


def archived_state(path: Path) -> dict[str, Tensor]:
    """All floating-point tensors of the archive's module and of those in it, by dotted names.

    RuntimeError: no TorchScript archive, or a damaged one.
    """
    reader, module = read_module(path)
    state: dict[str, Tensor] = {}
    open_modules = [("", module, 0)]
    while open_modules:
        prefix, owner, depth = open_modules.pop()
        if depth > MOST_DEPTH:
            raise RuntimeError(f"no scripted module: more than {MOST_DEPTH} modules deep")
        for name, value in vars(owner).items():
            if isinstance(value, Object):
                open_modules.append((f"{prefix}{name}.", value, depth + 1))
            elif isinstance(value, Stored) and value.dtype is not None:
                state[prefix + name] = read_stored(reader, value)
    return state


def read_module(path: Path) -> tuple[Any, Any]:
    """The archive, and its module as an Object."""
    reader = torch._C.PyTorchFileReader(str(path))
    try:
        module = Unpickler(io.BytesIO(reader.get_record("data.pkl"))).load()
    except (pickle.UnpicklingError, TypeError, ValueError, EOFError, LookupError) as error:
        raise RuntimeError(f"no scripted module: {error}") from error
    if not isinstance(module, Object):
        raise RuntimeError("no scripted module")
    return reader, module


def read_stored(reader: Any, found: Stored) -> Tensor:
    if 0 in found.shape:
        return torch.empty(found.shape, dtype=found.dtype)
    try:
        flat = torch.frombuffer(bytearray(reader.get_record(found.record)), dtype=found.dtype)
        return flat.as_strided(found.shape, found.stride, found.offset)
    except (TypeError, ValueError) as error:
        raise RuntimeError(f"{found.record}: {error}") from error
