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
BF16_TOLERANCE = 0.03  # a few roundings, relative to the largest result


@dataclass
class Call:
    """One call to record: inputs of a module's method; the last one may be written to."""

    method: str
    inputs: Sequence[Tensor]
    mutates_last: bool = False
    tolerance: float = 2e-4


def inputs_in(call: Call, dtype: torch.dtype) -> list[Tensor]:
    """The inputs of a call to a module that is prepared in `dtype`."""
    floats = [t.to(dtype) if t.is_floating_point() else t for t in call.inputs]
    return [tensor.clone().contiguous() for tensor in floats]


@torch.inference_mode()
def made(call: Call, module: nn.Module, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The results of a call."""
    result = getattr(module, call.method)(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def distance(results: Sequence[Tensor], exact: Sequence[Tensor]) -> float:
    """Root of the mean squared difference, relative to that of the exact results."""
    pairs = [(r.double(), e.double()) for r, e in zip(results, exact, strict=True)]
    wrong = sum(float((r - e).square().sum()) for r, e in pairs)
    return float((wrong / max(sum(float(e.square().sum()) for _, e in pairs), 1e-30)) ** 0.5)


class Recorder:
    """Runs modules as the engine would on the CPU, in fp32 or beside rounded weights in bf16, and
    keeps what went in and out."""

    def __init__(self) -> None:
        self.tensors: dict[str, Tensor] = {}
        self.records: list[dict[str, Any]] = []

    @classmethod
    def load(cls, folder: Path, manifest: dict[str, Any], without: str) -> Recorder:
        """The records of a bundle without the ones of a module."""
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
    def record(
        self,
        role: str,
        module: nn.Module,
        calls: Sequence[Call],
        dtype: torch.dtype = torch.float32,
        exact: Sequence[Sequence[Tensor]] = (),
    ) -> None:
        """Makes the calls of a module that is prepared in `dtype`.

        exact: what they give with weights that are not rounded; the entries say how far from it
        the results are.
        """
        for number, call in enumerate(calls):
            prefix = f"{role}.{call.method}.{number}"
            inputs = inputs_in(call, dtype)
            names = [self._keep(f"{prefix}.in{i}", tensor) for i, tensor in enumerate(inputs)]
            results = made(call, module, inputs)
            largest = max(float(r.abs().max()) for r in results)
            entry: dict[str, Any] = {
                "module": role,
                "method": call.method,
                "inputs": names,
                "outputs": [self._keep(f"{prefix}.out{i}", r) for i, r in enumerate(results)],
            }
            if call.mutates_last:
                entry["mutated"] = [self._keep(f"{prefix}.mutated", inputs[-1])]
            tolerance = call.tolerance if dtype == torch.float32 else BF16_TOLERANCE
            entry["tolerance"] = tolerance * max(1.0, largest)
            if exact:
                entry["distance"] = distance(results, exact[number])
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
