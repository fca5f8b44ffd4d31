"""Recorded calls: what a bundle's modules take and give, for `lamplighter check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

GOLDEN_FILE = "golden.safetensors"


@dataclass
class Call:
    """One call to record: inputs of a module's method; the last one may be written to."""

    method: str
    inputs: Sequence[Tensor]
    mutates_last: bool = False
    tolerance: float = 2e-4


class Recorder:
    """Runs modules as the engine would, in fp32 on the CPU, and keeps what went in and out."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.records: list[dict[str, Any]] = []

    @classmethod
    def load(cls, folder: Path, manifest: dict[str, Any], without: str) -> Recorder:
        """The records of a bundle less those of one module."""
        recorded = cls()
        if "golden" not in manifest:
            return recorded
        tensors = load_file(folder / manifest["golden"]["file"])
        for record in manifest["golden"]["records"]:
            if record["module"] != without:
                recorded.records.append(record)
                names = (*record["inputs"], *record["outputs"], *record.get("mutated", []))
                recorded.tensors.update({name: tensors[name] for name in names})
        return recorded

    def save(self, folder: Path, manifest: dict[str, Any]) -> None:
        """Writes the records, if any, in place of those the bundle may have."""
        (folder / manifest.pop("golden", {}).get("file", GOLDEN_FILE)).unlink(missing_ok=True)
        if self.records:
            save_tensors(self.tensors, folder / GOLDEN_FILE)
            manifest["golden"] = {"file": GOLDEN_FILE, "records": self.records}

    @torch.inference_mode()
    def record(self, role: str, module: nn.Module, calls: Sequence[Call]) -> None:
        """Makes the calls of a module that is prepared in fp32."""
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


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Writes a safetensors file; OSError: the disk is full."""
    try:
        save_file(tensors, path)
    except SafetensorError as error:
        raise OSError(f"{path.name}: {error}") from error
