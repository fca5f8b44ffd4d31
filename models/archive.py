"""Writes TorchScript archives."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import nn


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
            records[names[start] + name[len(start) :]] = reader.get_record(name)
    return records
