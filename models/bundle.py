"""Writes bundles: a folder of TorchScript archives and data files described by manifest.json."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jsonschema
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from . import ops

VERSION = "0.1.0"
SCHEMA_VERSION = 1
SCHEMA_FILE = Path(__file__).resolve().parent.parent / "src" / "bundle" / "manifest.schema.json"
DTYPE_NAMES = {torch.float32: "float32", torch.bfloat16: "bfloat16", torch.float16: "float16"}


@dataclass
class Call:
    """One call to record: inputs of a module's method; the last one may be written to."""

    method: str
    inputs: Sequence[Tensor]
    mutates_last: bool = False
    tolerance: float = 2e-4


@dataclass
class BundleModule:
    """A module to script; the weights are stored in `dtype`, the precision they have already."""

    module: nn.Module
    dtype: torch.dtype
    calls: Sequence[Call] = ()


@dataclass
class Bundle:
    """Content of a bundle. `entries` are further keys of the manifest (prompt, tokens, ...)."""

    name: str
    family: str
    licence: str
    source: str
    modules: dict[str, BundleModule] = field(default_factory=dict)
    drafters: dict[str, BundleModule] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    tensors: dict[str, dict[str, Tensor]] = field(default_factory=dict)
    entries: dict[str, Any] = field(default_factory=dict)

    def write(self, out: Path, overwrite: bool = False) -> None:
        """Writes the folder `out`; it appears complete or not at all."""
        if out.exists() and not overwrite:
            raise FileExistsError(f"{out} exists already")
        ops.load()
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
        try:
            self._fill(folder)
            for path in folder.iterdir():  # temporary files start out private
                path.chmod(0o644)
            folder.chmod(0o755)
            replace_folder(folder, out)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fill(self, folder: Path) -> None:
        for name, path in self.files.items():
            shutil.copyfile(path, folder / name)
        for name, tensors in self.tensors.items():
            save_file(tensors, folder / name)
        recorded = Recorder()
        manifest: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "name": self.name,
            "family": self.family,
            "exporter": {"version": VERSION, "torch": torch.__version__.partition("+")[0]},
            "licence": self.licence,
            "source": self.source,
            "files": {},
        }
        for kind, parts in (("modules", self.modules), ("drafters", self.drafters)):
            manifest[kind] = {}
            for role, part in parts.items():
                file = f"{role}.pt" if kind == "modules" else f"drafter-{role}.pt"
                write_archive(part.module, folder / file)
                manifest[kind][role] = {"file": file, "dtype": DTYPE_NAMES[part.dtype]}
                recorded.record(role, folder / file, part.calls)
        manifest.update(self.entries)
        if recorded.records:
            save_file(recorded.tensors, folder / "golden.safetensors")
            manifest["golden"] = {"file": "golden.safetensors", "records": recorded.records}
        manifest["files"] = {path.name: describe(path) for path in sorted(folder.iterdir())}
        check_manifest(manifest)
        text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
        (folder / "manifest.json").write_text(text, encoding="utf-8")


class Recorder:
    """Runs archives as the engine would, in fp32 on the CPU, and keeps what went in and out."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.records: list[dict[str, Any]] = []

    @torch.inference_mode()
    def record(self, role: str, archive: Path, calls: Sequence[Call]) -> None:
        if not calls:
            return
        module = torch.jit.load(str(archive), map_location="cpu")
        module.prepare(torch.empty(0))
        for number, call in enumerate(calls):
            prefix = f"{role}.{call.method}.{number}"
            inputs = [tensor.contiguous() for tensor in call.inputs]
            names = [self._keep(f"{prefix}.in{i}", tensor) for i, tensor in enumerate(inputs)]
            result = getattr(module, call.method)(*inputs)
            results = list(result) if isinstance(result, tuple) else [result]
            largest = max(float(r.abs().max()) for r in results)
            entry: dict[str, Any] = {
                "module": role,
                "method": call.method,
                "inputs": names,
                "outputs": [self._keep(f"{prefix}.out{i}", r) for i, r in enumerate(results)],
            }
            if call.mutates_last:
                entry["mutated"] = [self._keep(f"{prefix}.mutated", inputs[-1])]
            entry["tolerance"] = call.tolerance * max(1.0, largest)
            self.records.append(entry)

    def _keep(self, name: str, tensor: Tensor) -> str:
        self.tensors[name] = tensor.detach().clone().contiguous()
        return name


def write_archive(module: nn.Module, path: Path) -> None:
    """Scripts and saves a module without the debug files, which name source paths."""
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        full = os.path.join(folder, path.name)
        torch.jit.save(torch.jit.script(module.eval()), full)
        reader = torch._C.PyTorchFileReader(full)
        writer = torch._C.PyTorchFileWriter(str(path))
        version = "version" if reader.has_record("version") else ".data/version"
        writer.set_min_version(int(reader.get_record(version)))
        for name in reader.get_all_records():
            generated = name in ("version", "byteorder") or name.startswith(".data/")
            if not generated and not name.endswith(".debug_pkl"):
                data = reader.get_record(name)
                writer.write_record(name, data, len(data))
        writer.write_end_of_file()


def check_manifest(manifest: dict[str, Any]) -> None:
    """ValueError names the first entry that the schema refuses."""
    schema = json.loads(SCHEMA_FILE.read_text())
    error = jsonschema.exceptions.best_match(
        jsonschema.Draft202012Validator(schema).iter_errors(manifest)
    )
    if error is not None:
        raise ValueError(f"manifest {error.json_path}: {error.message}")


def describe(path: Path) -> dict[str, Any]:
    """Size and SHA-256 of a file."""
    with path.open("rb") as stream:
        return {
            "bytes": path.stat().st_size,
            "sha256": hashlib.file_digest(stream, "sha256").hexdigest(),
        }


def replace_folder(new: Path, out: Path) -> None:
    """Moves the folder `new` to `out`; an old `out` goes away only after that worked."""
    if not out.exists():
        os.rename(new, out)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{out.name}.old.", dir=out.parent))
    os.rename(out, old / out.name)
    os.rename(new, out)
    shutil.rmtree(old)
