"""The LlamaGen exporter: what it refuses, and how it says so."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from llamagen_files import CONFIG, Files, failure

from models.export.checkpoint import ExportError, read_file


@pytest.mark.parametrize(
    ("config", "arguments", "code", "message"),
    [
        ({}, [], 2, "expected blocks gpt, vq or t5"),
        ({"gpt": {}}, [], 4, "dim 32 with 2 layers is no published size"),
        ({"gpt": {"n_head": 2}}, [], 2, "give --image-size"),
        ({"gpt": {"n_head": 3, "grid": 4}}, [], 4, "config.json: gpt.n_head 3 does not fit"),
        (
            {"gpt": {"n_head": 2, "grid": 4, "dim": 64}},
            [],
            4,
            "config.json: gpt.dim is 64, expected 32 as in ",
        ),
        (
            {"gpt": {"n_head": 2, "grid": 4, "depth": 2}},
            [],
            2,
            "config.json: unknown key gpt.depth",
        ),
        (
            {"gpt": {"n_head": 2, "grid": [4, 5]}},
            [],
            2,
            "config.json: gpt.grid is [4, 5], expected a",
        ),
        ({"gpt": {"n_head": "2", "grid": 4}}, [], 2, 'config.json: gpt.n_head is "2", expected a'),
        (
            {"gpt": {"n_head": 2, "grid": 4, "rope_base": 0.5}},
            [],
            2,
            "config.json: gpt.rope_base is 0.5",
        ),
        (
            {"gpt": {"n_head": 2, "grid": 4, "norm_eps": -1}},
            [],
            2,
            "config.json: gpt.norm_eps is -1",
        ),
        ({"gpt": {"n_head": 2, "block_size": 0}}, [], 2, "config.json: gpt.block_size is 0"),
        (
            {"gpt": {"n_head": 2, "grid": 4, "prefix_rotation": "x"}},
            [],
            2,
            "config.json: prefix_rotation: got 'x'",
        ),
        ({"gpt": {"n_head": 2, "grid": 4}, "x": {}}, [], 2, "unknown key x"),
        (
            {**CONFIG, "sampling": {"top_k": "all"}},
            [],
            2,
            "config.json: sampling.top_k is all, expected a whole number from 0",
        ),
        (
            {**CONFIG, "sampling": {"topk": 1}},
            [],
            2,
            "config.json: unknown key sampling.topk, expected cfg_scale, temperature, top_k,",
        ),
        (CONFIG, ["--image-size", "256"], 4, "grid disagrees"),
        (CONFIG, ["--stage", "2"], 4, "--image-size (512 px) says 32, gpt.grid of "),
        (CONFIG, ["--size", "XL"], 4, "size XL has dim 1280"),
        (CONFIG, ["--dtype", "int3"], 2, "--dtype int3"),
        (CONFIG, ["--dtype", "vq=fp16"], 2, "--dtype vq=fp16"),
    ],
)
def test_wrong_configurations(
    files: Files, capsys: pytest.CaptureFixture[str], config: Any, arguments: list[str], code: int,
    message: str,
) -> None:  # fmt: skip
    files.write_config(config)
    options = ("--gpt", files.gpt, "--config", files.config, *arguments)
    assert message in failure(files, capsys, code, *options)


def test_published_file_name_fixes_the_grid(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    stage2 = files.gpt.rename(files.folder / "t2i_XL_stage2_512.pt")
    text = failure(files, capsys, 4, "--gpt", stage2, "--config", files.config)
    assert "the published file name (512 px) says 32, gpt.grid of " in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("drop", "missing keys: layers.1.feed_forward.w2.weight"),
        ("add", "unexpected keys: extra.weight"),
        ("shape", "layers.1.ffn_norm.weight has shape [31], expected [32]"),
        ("integer", "norm.weight is torch.int64"),
        (
            "transpose",
            "layers.0.attention.wqkv.weight has shape [32, 96], expected [96, 32], its transpose",
        ),
        (
            "width",
            "layers.0.attention.wqkv.weight has shape [96, 31], expected [rows, 32]: tok_embeddings",
        ),
    ],
)
def test_wrong_tensors(
    files: Files, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    state = dict(files.states["gpt"])
    if change == "drop":
        del state["layers.1.feed_forward.w2.weight"]
    elif change == "add":
        state["extra.weight"] = torch.zeros(1)
    elif change in ("transpose", "width"):
        name = "layers.0.attention.wqkv.weight"
        weight = state[name]
        state[name] = (weight.t() if change == "transpose" else weight[:, :31]).contiguous()
    elif change == "shape":
        state["layers.1.ffn_norm.weight"] = torch.zeros(31)
    else:
        state["norm.weight"] = torch.zeros(32, dtype=torch.int64)
    torch.save({"model": state}, files.gpt)
    options = ("--gpt", files.gpt, "--config", files.config)
    assert message in failure(files, capsys, 4, *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html>", "got an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"", "damaged or no checkpoint: the file is empty"),
        (b"PK\x03\x04 truncated", "damaged or no checkpoint"),
        (b"junk\n", "damaged or no checkpoint: it begins with b'junk', expected what torch.save"),
        (None, "no such file"),
    ],
)
def test_files_that_are_no_checkpoint(
    files: Files, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    files.vq.unlink()
    if content is not None:
        files.vq.write_bytes(content)
    assert message in failure(files, capsys, 4, "--vq", files.vq)


@pytest.mark.parametrize("zipped", [True, False])
def test_foreign_bytes_in_a_checkpoint_are_one_line(tmp_path: Path, zipped: bool) -> None:
    file = tmp_path / "a.pt"
    torch.save({"a": torch.zeros(3)}, file, _use_new_zipfile_serialization=zipped)
    whole, refused = file.read_bytes(), 0
    for seed in range(200):
        dice, content = random.Random(seed), bytearray(whole)
        for _ in range(dice.randint(1, 6)):
            content[dice.randrange(len(content))] = dice.randrange(256)
        file.write_bytes(content)
        try:
            read_file(file)
        except ExportError as error:
            assert str(error).startswith(f"{file}: ") and "\n" not in str(error)
            refused += 1
    assert refused > 20


@pytest.mark.parametrize("zipped", [True, False])
def test_checkpoints_cut_short(
    files: Files, capsys: pytest.CaptureFixture[str], zipped: bool
) -> None:
    """Anywhere: exit code 4 and the file's name, never the advice to run its code."""
    torch.save({"model": files.states["vq"]}, files.vq, _use_new_zipfile_serialization=zipped)
    whole = files.vq.read_bytes()
    for tenth in range(1, 10):
        files.vq.write_bytes(whole[: len(whole) * tenth // 10])
        text = failure(files, capsys, 4, "--vq", files.vq)
        assert f"{files.vq}: damaged or no checkpoint: " in text
        assert "weights_only" not in text


def test_programs_are_no_checkpoints(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), files.vq)
    text = failure(files, capsys, 4, "--vq", files.vq)
    assert "got a TorchScript archive" in text and "weights_only" not in text
    torch.save({"model": Path("x")}, files.vq)
    text = failure(files, capsys, 4, "--vq", files.vq)
    assert "got a checkpoint with objects besides tensors" in text and "option" not in text


def test_checkpoint_code_is_not_run(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    class Payload:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (Path.touch, (files.folder / "ran",))  # type: ignore[return-value]

    torch.save({"model": Payload()}, files.vq)
    failure(files, capsys, 4, "--vq", files.vq)
    assert not (files.folder / "ran").exists()


def test_parts_that_do_not_fit(
    files: Files, capsys: pytest.CaptureFixture[str], spiece: Path
) -> None:
    state = dict(files.states["vq"])
    state["quantize.embedding.weight"] = torch.randn(41, 8)
    torch.save({"model": state}, files.vq)
    options = ("--gpt", files.gpt, "--config", files.config)
    assert "41 codes" in failure(files, capsys, 4, *options, "--vq", files.vq)
    files.save_t5(spiece, **files.states["t5"])
    narrow = json.loads((files.t5 / "config.json").read_text())
    narrow["num_heads"] = 3
    (files.t5 / "config.json").write_text(json.dumps(narrow))
    assert "expected [24, 16]" in failure(files, capsys, 4, "--t5", files.t5)


def test_nothing_to_export(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to export" in failure(files, capsys, 2)


def test_unwritable_output(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.out = files.gpt / "bundle"  # below a file
    assert files.export("--vq", files.vq) == 7
    assert capsys.readouterr().err.count("\n") == 1
