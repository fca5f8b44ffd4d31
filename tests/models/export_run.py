"""An exporter run over published files, and what it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file


class ExportRun:
    """Files in a folder, the bundle that comes of them, and in subclasses the call."""

    folder: Path
    out: Path

    def export(self, *arguments: object) -> int:
        raise NotImplementedError

    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.out / "manifest.json").read_text()))

    def replay_target(self) -> None:
        """Checks that the target's archive repeats its recorded calls, one of which changes the cache."""
        tensors = load_file(self.out / "golden.safetensors")
        target = torch.jit.load(self.out / "target.pt")
        target.prepare(torch.empty(0))
        changed = 0
        for record in self.manifest()["golden"]["records"]:
            inputs = [tensors[name].clone() for name in record["inputs"]]
            result = getattr(target, record["method"])(*inputs)
            results = result if isinstance(result, tuple) else (result,)
            found = dict(zip(record["outputs"], results, strict=True))
            for name in record.get("mutated", []):
                found[name] = inputs[-1]
                changed += not torch.equal(tensors[name], tensors[record["inputs"][-1]])
            for name, tensor in found.items():
                close = {"atol": record["tolerance"], "rtol": 0}
                torch.testing.assert_close(tensor, tensors[name], **close)
        assert changed == 1

    def leftovers(self) -> list[str]:
        """What an export put beside its inputs."""
        return [p.name for p in self.folder.iterdir() if "bundle" in p.name or p.name[0] == "."]


class PublishedFiles(ExportRun):
    """An exporter run over a folder as published."""

    model: Path

    def change(self, file: str, *path: str, value: Any) -> None:
        """Sets a field of a JSON file of the model's folder; ... takes it away."""
        changed = self.model / file
        content = json.loads(changed.read_text(encoding="utf-8")) if changed.exists() else {}
        inner = content
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        if value is ...:
            del inner[path[-1]]
        changed.write_text(json.dumps(content), encoding="utf-8")


def refused(
    files: ExportRun, capsys: pytest.CaptureFixture[str], code: int, *words: object,
    progress: str | None = None,
) -> str:  # fmt: skip
    """The one error line of an export that must fail and leave nothing behind; lines of progress may precede."""
    assert files.export(*words) == code
    lines = capsys.readouterr().err.splitlines()
    lines = [line for line in lines if progress is None or progress not in line]
    assert len(lines) == 1 and lines[0].startswith("error: "), lines
    assert not files.leftovers()
    return lines[0]


def save_container(folder: Path, state: dict[str, torch.Tensor], container: str) -> None:
    """Weights in a folder. Containers: safetensors, bin, and shards or bin shards with an index."""
    name = "pytorch_model.bin" if "bin" in container else "model.safetensors"
    save = torch.save if "bin" in container else save_file
    if "shards" not in container:
        save(state, folder / name)
        return
    keys, (stem, _, ending) = sorted(state), name.rpartition(".")
    files = {f"{stem}-0000{i + 1}-of-00002.{ending}": keys[i::2] for i in range(2)}
    for file, part in files.items():
        save({key: state[key] for key in part}, folder / file)
    index = {"weight_map": {key: file for file, part in files.items() for key in part}}
    (folder / f"{name}.index.json").write_text(json.dumps(index), encoding="utf-8")
