"""Drafters in bundles: the exporter's layouts and errors, and the scripted form."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from eagle_files import (
    CHAMELEON,
    CONFIGS,
    LLAMAGEN,
    TARGET,
    Files,
    published_settings,
    random_drafter,
)
from safetensors.torch import load_file
from torch import Tensor

from models.eagle.drafter import Context, Drafter
from models.export.__main__ import main
from models.export.common import SPARE_POSITIONS
from models.export.drafters.eagle import attach_drafter
from models.export.drafters.files import load_drafter
from models.llamagen.gpt import GPT

CAUSAL = torch.empty(0, dtype=torch.int64)


def assert_same(module: torch.jit.ScriptModule, drafter: Drafter, head: Tensor) -> None:
    """The scripted form in two calls against the plain form in one."""
    config, rows = drafter.config, 9
    torch.manual_seed(2)
    ids = torch.randint(config.vocabulary, (2, rows))
    features = torch.randn(2, rows, config.hidden)
    positions = torch.stack([torch.arange(4, 4 + rows), torch.arange(6, 6 + rows)])
    cache = torch.zeros(1, 2, 2, config.kv_heads, rows, config.head_dim)
    out = []
    for part in (slice(0, 5), slice(5, rows)):
        fed = [t[:, part].contiguous() for t in (module.embed(ids), features, positions)]
        out.append(module(*fed, CAUSAL, torch.full((2,), part.start), cache))
    bias = torch.zeros(rows, rows).masked_fill(torch.ones(rows, rows).triu(1) > 0, -torch.inf)
    expected, (keys, values) = drafter(
        drafter.embed_tokens(ids), features, positions, Context(bias)
    )
    torch.testing.assert_close(torch.cat(out, 1), expected, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(cache[0, 1], values, atol=2e-5, rtol=1e-5)
    if config.rotary == "grid":
        torch.testing.assert_close(cache[0, 0], keys, atol=2e-5, rtol=1e-5)
    torch.testing.assert_close(module.logits(expected), expected @ head.T, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("kind", ["llamagen", "chameleon"])
def test_published_folder(files: Files, kind: str, binary: bool) -> None:
    before = files.content()
    drafter = random_drafter(CONFIGS[kind])
    files.save(published_settings(drafter.config), drafter.state_dict(), binary)
    assert files.attach() == 0
    manifest, after = files.manifest(), files.content()
    padding = {"padding": True} if kind == "llamagen" else {}
    assert manifest["drafters"]["eagle"] == {
        "file": "drafter-eagle.pt", "dtype": "float32", "kind": "eagle", "layers": 1,
        "kv_heads": drafter.config.kv_heads, "head_dim": 8, "prompt_id": 0,
        "max_length": 22 + SPARE_POSITIONS, **padding,
    }  # fmt: skip
    assert set(manifest["files"]) == set(after) - {"manifest.json"}
    assert set(after) == {*before, "drafter-eagle.pt"} and after["target.pt"] == before["target.pt"]
    assert_same(files.load(), drafter, files.head)


def test_files_of_others_stay(files: Files) -> None:
    (files.bundle / "notes.txt").write_text("mine")
    (files.bundle / "images").mkdir()
    (files.bundle / "images" / "a.png").write_bytes(b"png")
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    assert files.attach() == 0
    assert (files.bundle / "notes.txt").read_text() == "mine"
    assert (files.bundle / "images" / "a.png").read_bytes() == b"png"
    assert "notes.txt" not in files.manifest()["files"]


def test_norms_shared_by_heads(files: Files) -> None:
    config = replace(CHAMELEON, kv_heads=4)
    state = random_drafter(config).state_dict()
    for part in "qk":
        for kind in ("weight", "bias"):
            name = f"layers.0.self_attn.{part}_norm.{kind}"
            state[name] = state[name][:2].clone()
    files.save(published_settings(config), state)
    assert files.attach() == 0
    assert_same(files.load(), load_drafter(config, state, "drafter"), files.head)


@pytest.mark.parametrize("layout", ["folder", "file", "memory"])
def test_own_layouts(files: Files, layout: str) -> None:
    drafter = random_drafter(CONFIGS["own"])
    if layout == "folder":
        files.save(asdict(drafter.config), drafter.state_dict())
        assert files.attach() == 0
    elif layout == "file":
        file = files.folder / "trained.pt"
        content = {"config": asdict(drafter.config), "model": drafter.state_dict(), "step": 3}
        torch.save(content, file)
        assert files.attach(drafter=file) == 0
    else:
        attach_drafter(files.bundle, "eagle", drafter)
    assert_same(files.load(), drafter, files.head)


def test_storage_precision(files: Files) -> None:
    drafter = random_drafter(LLAMAGEN)
    files.save(published_settings(LLAMAGEN), drafter.state_dict())
    assert files.attach("--dtype", "bf16") == 0
    assert files.manifest()["drafters"]["eagle"]["dtype"] == "bfloat16"
    buffers = dict(torch.jit.load(files.bundle / "drafter-eagle.pt").named_buffers())
    assert buffers["layer.wqkv"].dtype == torch.bfloat16
    assert buffers["head"].dtype == buffers["rotary"].dtype == torch.float32
    rounded = {name: weight.bfloat16().float() for name, weight in drafter.state_dict().items()}
    assert_same(files.load(), load_drafter(LLAMAGEN, rounded, "drafter"), files.head)


def test_recorded_calls_can_be_replayed(files: Files) -> None:
    recorded = {(r["module"], r["method"]) for r in files.manifest()["golden"]["records"]}
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    assert files.attach() == files.attach(name="other") == files.attach("--overwrite") == 0
    records = files.manifest()["golden"]["records"]
    assert {(r["module"], r["method"]) for r in records} == recorded | {
        (name, method) for name in ("eagle", "other") for method in ("embed", "forward", "logits")
    }
    tensors, module, changed = load_file(files.bundle / "golden.safetensors"), files.load(), 0
    for record in (r for r in records if r["module"] == "eagle"):
        inputs = [tensors[name].clone() for name in record["inputs"]]
        (output,) = record["outputs"]
        result = getattr(module, record["method"])(*inputs)
        torch.testing.assert_close(result, tensors[output], atol=record["tolerance"], rtol=0)
        for name in record.get("mutated", []):
            torch.testing.assert_close(inputs[-1], tensors[name], atol=record["tolerance"], rtol=0)
            changed += not torch.equal(tensors[name], tensors[record["inputs"][-1]])
    assert changed == 1


def test_neighbours(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    others = [[j for j in range(40) if j != i] for i in range(40)]
    table = numpy.array(others, dtype=numpy.uint16)
    file = files.folder / "top_39_indices.npy"
    numpy.save(file, table)
    assert files.attach("--neighbours", file) == 0
    assert files.manifest()["neighbours"] == {"file": "neighbours.safetensors"}
    kept = load_file(files.bundle / "neighbours.safetensors")["neighbours"]
    assert kept.dtype == torch.uint16 and numpy.array_equal(kept.numpy(), table)
    before = files.content()
    assert files.attach("--neighbours", file, name="other") == 7
    assert "has neighbours already" in capsys.readouterr().err
    for wrong, message in (
        (table[:39], "got uint16 of shape [39, 39], expected integers [40, K]"),
        (table.astype(numpy.float32), "got float32"),
        (table + 1, "expected codes 0 to 39"),
        (numpy.array([[0]] * 40), "a code is its own neighbour"),
    ):
        numpy.save(file, wrong)
        assert files.attach("--neighbours", file, "--overwrite") == 4
        assert message in capsys.readouterr().err
    assert files.content() == before


@pytest.mark.parametrize(
    ("settings", "tensors", "arguments", "code", "message"),
    [
        ({"hidden_size": 16}, {}, [], 4, "hidden is 16, the bundle's target.features is 32"),
        ({"num_attention_heads": 5}, {}, [], 4, "config.json: num_attention_heads, num_key_value_heads, hidden_size: heads 5"),
        ({"num_attention_heads": None}, {}, [], 4, "num_attention_heads is null"),
        ({}, {"fc.weight": None}, [], 4, "missing keys: fc.weight"),
        ({}, {"fc.weight": torch.zeros(32, 32)}, [], 4, "fc.weight has shape [32, 32], expected [32, 64]"),
        ({}, {"extra": torch.zeros(1)}, [], 4, "unexpected keys: extra"),
        ({}, {"embed_tokens.weight": torch.zeros(39, 32)}, [], 4, "embeds 39 tokens"),
        ({"model_type": "chameleon", "rope_theta": 1e4}, {"embed_tokens.weight": torch.zeros(10240, 32)}, [], 4,
         "embeds 10240 tokens, expected the 40 of the bundle"),
        ({}, {"fc.bias": torch.zeros(32, dtype=torch.int64)}, [], 4, "fc.bias is torch.int64"),
        ({}, {}, ["--name", "target"], 2, "--name target"),
        ({}, {}, ["--name", "../x"], 2, "--name ../x"),
        ({}, {}, ["--neighbours", "none.npy"], 4, "none.npy: no such file"),
    ],
)  # fmt: skip
def test_refused(
    files: Files, capsys: pytest.CaptureFixture[str], settings: dict[str, Any],
    tensors: dict[str, Tensor | None], arguments: list[str], code: int, message: str,
) -> None:  # fmt: skip
    """One line of error, and the bundle is as it was."""
    state = {**random_drafter(LLAMAGEN).state_dict(), **tensors}
    files.save(
        {**published_settings(LLAMAGEN), **settings},
        {name: tensor for name, tensor in state.items() if tensor is not None},
    )
    before, beside = files.content(), set(files.folder.iterdir())
    assert files.attach(*arguments) == code
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1 and message in text
    assert files.content() == before and set(files.folder.iterdir()) == beside


@pytest.mark.parametrize("shape", [(), (8,), (0, 8), (3, 8), (2, 7)])
def test_norms_of_other_shapes_are_refused(
    files: Files, capsys: pytest.CaptureFixture[str], shape: tuple[int, ...]
) -> None:
    name = "layers.0.self_attn.q_norm.weight"
    state = {**random_drafter(CHAMELEON).state_dict(), name: torch.ones(shape)}
    files.save(published_settings(CHAMELEON), state, binary=True)
    assert files.attach() == 4
    assert f"{name} has shape" in capsys.readouterr().err


def test_present_drafter_is_kept_without_overwrite(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    assert files.attach() == 0
    before = files.content()
    assert files.attach() == 7
    assert "has eagle already; give --overwrite" in capsys.readouterr().err
    assert files.content() == before


def test_stage_of_a_published_drafter(
    files: Files, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A drafter for 512 pixels does not go into a bundle that generates 256."""
    torch.save({"model": GPT(replace(TARGET, grid=16)).state_dict()}, tmp_path / "gpt.pt")
    (tmp_path / "shapes.json").write_text(json.dumps({"gpt": {"n_head": 2, "grid": 16}}))
    shapes = ["--gpt", tmp_path / "gpt.pt", "--config", tmp_path / "shapes.json"]
    arguments = [*shapes, "--out", files.bundle, "--overwrite"]
    assert main(["llamagen", *map(str, arguments)]) == 0
    state = random_drafter(LLAMAGEN).state_dict()
    files.save({**published_settings(LLAMAGEN), "input_type": "t2i2"}, state)
    assert files.attach() == 4
    assert "input_type t2i2 is for a grid of 32 x 32" in capsys.readouterr().err
    files.save({**published_settings(LLAMAGEN), "input_type": "t2i"}, state)
    assert files.attach() == 0


def test_no_bundle(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.save(published_settings(LLAMAGEN), random_drafter(LLAMAGEN).state_dict())
    files.bundle = files.folder / "none"
    assert files.attach() == 4
    assert "manifest.json: no such file" in capsys.readouterr().err
