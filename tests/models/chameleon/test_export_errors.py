"""The Chameleon exporter: what it refuses, and how it says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from chameleon_files import CONFIG, IDS, SHAPE, Files, save_model
from safetensors.torch import load_file, save_file
from torch import Tensor

SHARD = "model-00002-of-00003.safetensors"


@pytest.fixture
def files(tmp_path: Path, state: dict[str, Tensor]) -> Files:
    files = Files(tmp_path)
    save_model(files.model, SHAPE, state, "heads", shards=3)
    return files


def refused(files: Files, capsys: pytest.CaptureFixture[str], code: int, *arguments: object,
            family: str = "anole") -> str:  # fmt: skip
    """The one error line of an export that must fail and leave nothing behind."""
    assert files.export_model(*arguments, family=family) == code
    notes = ("note: no tokenizer",)
    text = capsys.readouterr().err
    lines = [line for line in text.splitlines(True) if not line.startswith(notes)]
    assert len(lines) == 1 and lines[0].startswith("error: ")
    assert not files.leftovers()
    return lines[0]


def change_config(files: Files, **changes: Any) -> None:
    path = files.model / "config.json"
    settings = {**json.loads(path.read_text()), **changes}
    path.write_text(json.dumps({k: v for k, v in settings.items() if v is not ...}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type is llama, expected chameleon"),
        ({"num_attention_heads": 5}, "num_key_value_heads, hidden_size: 5 heads and 2 key/value heads do not fit a width of 32"),
        ({"num_attention_heads": "4"}, 'num_attention_heads is "4", expected a whole number'),
        ({"num_key_value_heads": 4}, "k_proj.weight has shape [16, 32], expected [32, 32] by the config"),
        ({"intermediate_size": 49}, "gate_proj.weight has shape [48, 32], expected [49, 32]"),
        ({"vocab_size": 81}, "embed_tokens.weight has shape [80, 32], expected [81, 32]"),
        ({"num_hidden_layers": 4}, "missing keys: model.layers.3.input_layernorm.weight, model.layers.3.mlp.down_proj.weight, model.layers.3.mlp.gate_proj.weight and 10 more"),
        ({"num_hidden_layers": 2}, "unexpected keys: model.layers.2.input_layernorm.weight, "),
        ({"rope_scaling": {"factor": 2}}, 'rope_scaling is {"factor": 2}, expected rotations of type default'),
        ({"hidden_act": "gelu"}, "hidden_act is gelu, expected silu"),
    ],
)  # fmt: skip
def test_configurations_that_contradict_the_tensors(
    files: Files, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], message: str
) -> None:
    change_config(files, **changes)
    assert message in refused(files, capsys, 4)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html>", "got an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"", "damaged or no checkpoint"),
        (None, f"1 of 3 shards are missing: {SHARD}"),
    ],
)
def test_shards_that_are_none(
    files: Files, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    shard = files.model / SHARD
    shard.unlink()
    if content is not None:
        shard.write_bytes(content)
    text = refused(files, capsys, 4)
    assert message in text and (SHARD in text)


@pytest.mark.parametrize("layout", ["meta", "heads"])
def test_truncated_files(
    files: Files, state: dict[str, Tensor], capsys: pytest.CaptureFixture[str], layout: str
) -> None:
    files.model = save_model(files.folder / "whole", SHAPE, state, layout, 3)
    file = files.model / ("consolidated.pth" if layout == "meta" else SHARD)
    file.write_bytes(file.read_bytes()[:-1000])
    text = refused(files, capsys, 4)
    assert "damaged or no checkpoint" in text and file.name in text


def change_tensors(files: Files, added: dict[str, Tensor], removed: list[str]) -> None:
    for shard in files.model.glob("*.safetensors"):
        kept = {k: v for k, v in load_file(shard).items() if k not in removed}
        save_file({**kept, **(added if shard.name == SHARD else {})}, shard)


@pytest.mark.parametrize(
    ("added", "removed", "message"),
    [
        ({"a": 1, "b": 1, "c": 1, "d": 1}, [], "unexpected keys: a, b, c and 1 more"),
        ({}, ["model.norm.weight"], "missing keys: model.norm.weight\n"),
        ({"model.norm.weight": 31}, ["model.norm.weight"], "has shape [31], expected [32]"),
    ],
)
def test_tensors_that_do_not_fit(
    files: Files, capsys: pytest.CaptureFixture[str], added: dict[str, int], removed: list[str],
    message: str,
) -> None:  # fmt: skip
    tensors = {name: torch.zeros(size) for name, size in added.items()}
    change_tensors(files, tensors, removed)
    assert message in refused(files, capsys, 4)


def test_norms_for_a_share_of_the_heads(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    name = "model.layers.1.self_attn.q_norm.weight"
    change_tensors(files, {name: torch.zeros(3, 8)}, [name])
    assert f"{name} has shape [3, 8], expected [4, 8]" in refused(files, capsys, 4)


def test_image_tokenizers_are_no_part_of_the_target(files: Files) -> None:
    encoder = {"model.vqmodel.encoder.conv_in.weight": torch.zeros(2)}
    change_tensors(files, {**encoder, "rope.freqs": torch.zeros(2)}, [])
    assert files.export_model() == 0


def test_decoder_in_a_folder_without_one(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no image tokenizer" in refused(files, capsys, 4, "--vq", files.model)


@pytest.mark.parametrize(
    ("config", "arguments", "code", "message"),
    [
        ({**CONFIG, "x": 1}, [], 2, "unknown key x, expected tokens, sizes,"),
        ({**CONFIG, "tokens": {"boi": 1}}, [], 2, "unknown key tokens.boi, expected bos,"),
        ({**CONFIG, "sizes": ["64"]}, [], 2, "got '64', expected WIDTHxHEIGHT"),
        ({"tokens": {**IDS, "begin_of_image": 46}}, [], 2,
         "tokens.separator is 46, expected an id of its own, but 46 is tokens.begin_of_image"),
        ({"tokens": {**IDS, "row_end": 43}}, [], 2,
         "tokens.row_end is 43, expected an id of its own, but 43 is a code of images"),
        ({**CONFIG, "sizes": ["64x60"]}, [], 2, "size 64x60: expected multiples of 16 pixels"),
        ({**CONFIG, "sizes": ["128x128"]}, [], 2, "size 128x128 takes 64 positions and its prompt 11, the model has 64"),
        ({**CONFIG, "tokens": {}}, [], 4, "anole uses id 8710, the model has ids 0 to 79"),
        ({**CONFIG, "sampling": {"top_k": "all"}}, [], 2, "config.json: sampling.top_k is all, expected a whole"),
        (CONFIG, ["--tokenizer", "none.json"], 4, "none.json: no such file"),
    ],
)  # fmt: skip
def test_wrong_settings(
    files: Files, capsys: pytest.CaptureFixture[str], config: Any, arguments: list[str], code: int,
    message: str,
) -> None:  # fmt: skip
    files.write_config(config)
    assert message in refused(files, capsys, code, *arguments)


def test_sizes_of_lumina(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.write_config({"tokens": IDS})
    for size in ("48x64", "64x", "0x64", "64x64,x"):
        text = refused(files, capsys, 2, "--sizes", size, family="lumina-mgpt")
        assert "expected multiples of 32 pixels" in text or "expected WIDTHxHEIGHT" in text


def test_folders_of_something_else(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    (files.model / "config.json").rename(files.model / "other.json")
    assert "no Chameleon model, expected config.json" in refused(files, capsys, 4)
    (files.model / "consolidated.00.pth").write_bytes(b"")
    assert "model-parallel parts" in refused(files, capsys, 4)
    files.model = files.folder / "none"
    assert "no such file or folder" in refused(files, capsys, 4)
    assert files.export("anole") == 2
    assert "nothing to export" in capsys.readouterr().err


def test_index_of_something_else(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    index = files.model / "model.safetensors.index.json"
    for content, message in (("{}", "expected a weight_map"), ("[", "not valid JSON")):
        index.write_text(content)
        assert message in refused(files, capsys, 4)


def test_existing_bundle_is_kept_without_overwrite(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.export_model() == 0
    before = (files.out / "manifest.json").read_bytes()
    assert files.export_model("--name", "other") == 7
    (files.model / "config.json").write_text("{}")
    assert files.export_model("--overwrite") == 4
    assert (files.out / "manifest.json").read_bytes() == before
    assert files.leftovers() == ["bundle"]
