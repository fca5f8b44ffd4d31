"""Layouts of Chameleon's checkpoints: read as one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from chameleon_files import SHAPE, save_model, separate_halves
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.export.chameleon.weights import read_weights
from models.export.messages import ExportError


@pytest.fixture(scope="module")
def even_state(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """All query heads share one norm, and all key heads."""
    even = dict(state)
    for name in [name for name in state if ".qk_norm_" in name]:
        queries, keys = state[name][:1], state[name][-1:]
        rows = [queries.expand(SHAPE.n_head, -1), keys.expand(SHAPE.n_kv_head, -1)]
        even[name] = torch.cat(rows)
    return even


@pytest.mark.parametrize("layout", ["meta", "fork", "lumina", "heads"])
def test_layouts(tmp_path: Path, even_state: dict[str, Tensor], layout: str) -> None:
    weights = read_weights(save_model(tmp_path / "model", SHAPE, even_state, layout, 2))
    assert weights.adjacent == (layout in ("meta", "fork"))
    for name, tensor in even_state.items():
        assert torch.equal(weights.read(name), tensor), name


def test_norms_of_single_heads(tmp_path: Path, state: dict[str, Tensor]) -> None:
    weights = read_weights(save_model(tmp_path / "model", SHAPE, state, "heads"))
    for name, tensor in state.items():
        assert torch.equal(weights.read(name), tensor), name


@pytest.mark.parametrize("layout", ["meta", "lumina"])
def test_norms_of_model_parallel_parts(
    tmp_path: Path, state: dict[str, Tensor], layout: str
) -> None:
    """Two norms, each for one half of the query heads and of the key heads."""
    shared = dict(state)
    for name in [name for name in state if ".qk_norm_" in name]:
        queries, keys = state[name].split([SHAPE.n_head, SHAPE.n_kv_head])
        shared[name] = torch.cat([queries[::2].repeat_interleave(2, 0), keys])
    folder = save_model(tmp_path / "model", SHAPE, state, "heads" if layout == "lumina" else layout)
    file = folder / ("consolidated.pth" if layout == "meta" else "model.safetensors")
    official = torch.load(file) if layout == "meta" else load_file(file)
    for layer in range(SHAPE.n_layer):
        for part in ("weight", "bias"):
            norms = shared[f"layers.{layer}.qk_norm_{part}"]
            two = {"q": norms[: SHAPE.n_head : 2], "k": norms[SHAPE.n_head :]}
            for letter, norm in two.items():
                if layout == "meta":
                    name = f"layers.{layer}.attention.{letter}_normalization.{part}"
                else:
                    name = f"model.layers.{layer}.self_attn.{letter}_norm.{part}"
                    norm = separate_halves(norm.flatten(), len(norm)).view_as(norm)
                official[name] = norm.contiguous()
    torch.save(official, file) if layout == "meta" else save_file(official, file)
    weights = read_weights(folder)
    for name, tensor in shared.items():
        assert torch.equal(weights.read(name), tensor), name


@pytest.mark.parametrize("value", [False, 0, "yes"])
def test_queries_have_norms(tmp_path: Path, even_state: dict[str, Tensor], value: object) -> None:
    folder = save_model(tmp_path / "model", SHAPE, even_state, "meta")
    settings = json.loads((folder / "params.json").read_text())
    settings["model"]["qk_normalization"] = True
    (folder / "params.json").write_text(json.dumps(settings))
    read_weights(folder)
    settings["model"]["qk_normalization"] = value
    (folder / "params.json").write_text(json.dumps(settings))
    with pytest.raises(ExportError, match="model.qk_normalization is .*, expected true"):
        read_weights(folder)


def test_single_files(tmp_path: Path, even_state: dict[str, Tensor]) -> None:
    folders = {layout: tmp_path / layout for layout in ("meta", "heads")}
    for layout, folder in folders.items():
        save_model(folder, SHAPE, even_state, layout)
    for file in (folders["meta"] / "consolidated.pth", folders["heads"] / "model.safetensors"):
        assert torch.equal(read_weights(file).read("head"), even_state["head"])
