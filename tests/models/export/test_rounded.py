"""Bundles whose weights are stored in 8 or 4 bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from llamagen_files import Files, failure
from safetensors.torch import load_file

from models.archive import archived_tensor
from models.rounding import numbers


@pytest.fixture(autouse=True)
def head(files: Files) -> torch.Tensor:
    """A head that is not zero, as that of a new GPT is."""
    weight = torch.randn(files.states["gpt"]["output.weight"].shape) * 0.2
    files.states = {**files.states, "gpt": {**files.states["gpt"], "output.weight": weight}}
    files.save_gpt()
    return weight


@pytest.mark.parametrize(("name", "kind"), [("int8", torch.int8), ("int4", torch.uint8)])
def test_rounded_bundle(files: Files, spiece: Path, name: str, kind: torch.dtype) -> None:
    files.save_t5(spiece, **files.states["t5"])
    assert files.export_gpt("--vq", files.vq, "--t5", files.t5, "--dtype", name) == 0
    manifest = files.manifest()
    found = {role: module["dtype"] for role, module in manifest["modules"].items()}
    assert found == {"target": name, "text_encoder": name, "image_decoder": "float32"}
    target = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    assert target["layers.0.w2"].dtype == target["head"].dtype == target["fc1"].dtype == kind
    assert target["embedding"].dtype == target["layers.1.feed_norm"].dtype == torch.bfloat16
    text = dict(torch.jit.load(files.out / "text_encoder.pt").named_buffers())
    assert kind in {buffer.dtype for buffer in text.values()}


@pytest.mark.parametrize(("name", "most"), [("int8", 0.02), ("int4", 0.3)])
def test_records_are_of_the_rounded_weights(files: Files, name: str, most: float) -> None:
    assert files.export_gpt("--vq", files.vq, "--dtype", f"target={name}") == 0
    manifest, tensors = files.manifest(), load_file(files.out / "golden.safetensors")
    records = manifest["golden"]["records"]
    target = torch.jit.load(files.out / "target.pt")
    target.prepare(torch.empty(0, dtype=torch.bfloat16))
    distances = {}
    for record in records:
        if record["module"] != "target":
            assert "distance" not in record
            continue
        inputs = [tensors[tensor].clone() for tensor in record["inputs"]]
        result = getattr(target, record["method"])(*inputs)
        results = result if isinstance(result, tuple) else (result,)
        for tensor, got in zip(record["outputs"], results, strict=True):
            assert got.dtype == torch.bfloat16 and torch.equal(got, tensors[tensor])
        distances[record["method"]] = record["distance"]
    assert distances["embed"] == 0
    assert 0 < distances["logits"] < most and 0 < distances["forward"] < 2 * most


def test_what_rounded_weights_stand_for(files: Files, head: torch.Tensor) -> None:
    for name, most in (("int8", 0.008), ("int4", 0.15)):
        assert files.export_gpt("--dtype", name, "--overwrite") == 0
        stored = archived_tensor(files.out / "target.pt", "head")
        assert stored is not None
        got = numbers(stored)[:, : head.shape[1]].float()
        assert float((got - head).norm() / head.norm()) < most


def test_image_decoders_are_not_rounded(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    text = failure(files, capsys, 2, "--vq", files.vq, "--dtype", "image_decoder=int8")
    assert "no products" in text
