"""Folders of checkpoints: indices, shards, tied heads, and errors of the whole program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import chameleon_files
import pytest
import simplear_files
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.export.__main__ import main
from models.export.messages import ExportError
from models.export.shards import read_folder
from models.export.simplear.weights import read_folder as read_simplear

State = dict[str, Tensor]


def shard(folder: Path, files: dict[str, State], index: dict[str, str] | None) -> Path:
    for name, state in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        save_file(state, folder / name)
    if index is not None:
        text = json.dumps({"weight_map": index})
        (folder / "model.safetensors.index.json").write_text(text)
    return folder


ONE, TWO = torch.ones(2), torch.zeros(2)
NAMES = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]


def test_a_single_file_goes_before_an_index(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {"model.safetensors": {"a": ONE}, NAMES[0]: {"a": TWO}}
    state = read_folder(shard(tmp_path, parts, {"a": NAMES[0]}))
    assert torch.equal(state["a"], ONE)
    assert "reads model.safetensors, not model.safetensors.index.json" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("first", "second", "index", "message"),
    [
        ({"a": ONE}, {"a": TWO, "b": ONE}, {"a": NAMES[0], "b": NAMES[1]}, f"a differs in {NAMES[0]} and"),
        ({"a": ONE}, {"b": ONE}, {"a": NAMES[1], "b": NAMES[1], "c": NAMES[0]}, f"a is in {NAMES[0]}, model.safe"),
        ({"a": ONE}, {"b": ONE}, {"a": 3}, "weight_map: a has 3, expected a file's name"),
        ({"a": ONE}, {"b": ONE}, {"a": "model-3.safetensors"}, "1 of 1 shards are missing: model-3"),
        ({"a": ONE}, {"b": ONE}, None, "need their index, download it, too"),
    ],
)  # fmt: skip
def test_shards_that_contradict_their_index(
    tmp_path: Path, first: State, second: State, index: dict[str, Any] | None, message: str
) -> None:
    shard(tmp_path, {NAMES[0]: first, NAMES[1]: second}, index)
    with pytest.raises(ExportError, match=message):
        read_folder(tmp_path)


def test_shards_that_no_index_lists_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard(
        tmp_path,
        {NAMES[0]: {"a": ONE}, "model-00003-of-00003.safetensors": {"a": TWO}},
        {"a": NAMES[0]},
    )
    assert torch.equal(read_folder(tmp_path)["a"], ONE)
    said = capsys.readouterr().out
    assert "model.safetensors.index.json, not model-00003-of-00003.safetensors beside it" in said
    shard(
        tmp_path, {"model.safetensors": {"a": TWO}}, None
    )  # beside it the index is named, which has shards
    assert torch.equal(read_folder(tmp_path)["a"], TWO)
    assert capsys.readouterr().out.count("\n") == 1


def test_shards_in_folders_below(tmp_path: Path) -> None:
    names = [f"parts/{name}" for name in NAMES]
    shard(tmp_path, {names[0]: {"a": ONE}, names[1]: {"b": TWO}}, {"a": names[0], "b": names[1]})
    state = read_folder(tmp_path)
    assert torch.equal(state["a"], ONE) and torch.equal(state["b"], TWO)


@pytest.mark.parametrize("folder", ["/elsewhere/", "../", "parts/../"])
def test_paths_that_leave_the_folder_are_names(tmp_path: Path, folder: str) -> None:
    shard(tmp_path, {NAMES[0]: {"a": ONE}}, {"a": folder + NAMES[0]})
    assert torch.equal(read_folder(tmp_path)["a"], ONE)


def test_equal_copies_in_two_shards_are_one_tensor(tmp_path: Path) -> None:
    index = {"a": NAMES[0], "b": NAMES[1]}
    state = read_folder(
        shard(tmp_path, {NAMES[0]: {"a": ONE}, NAMES[1]: {"a": ONE, "b": TWO}}, index)
    )
    assert state.keys() == {"a", "b"}


def test_tensors_that_an_index_and_its_shards_do_not_share_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    index = {"a": NAMES[0], "c": NAMES[1], "d": NAMES[0]}
    shard(tmp_path, {NAMES[0]: {"a": ONE}, NAMES[1]: {"b": TWO}}, index)
    state = read_folder(tmp_path)
    assert state.keys() == {"a", "b"} and torch.equal(state["b"], TWO)
    said = capsys.readouterr().out
    assert "index.json: lists c, d, which no shard has" in said
    assert "index.json: does not list b of the shards, which are read" in said
    shard(tmp_path, {}, {"a": NAMES[0], "b": NAMES[1]})
    read_folder(tmp_path)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("family", ["simplear", "chameleon"])
@pytest.mark.parametrize("copy", ["none", "equal", "other", "head alone"])
def test_tied_heads(
    tmp_path: Path, family: str, copy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """As in transformers the configuration ties them, whatever the file holds; another head is named."""
    if family == "simplear":
        state = simplear_files.random_state(simplear_files.SHAPE)
        folder = simplear_files.save_model(
            tmp_path / "m", simplear_files.SHAPE, state, "safetensors"
        )
        from models.export.simplear.weights import read_folder as read
    else:
        from models.chameleon.transformer import weight_shapes
        from models.export.chameleon.weights import read_weights as read  # type: ignore[assignment]

        shapes = weight_shapes(chameleon_files.SHAPE)
        state = {name: torch.rand(shape) for name, shape in shapes.items()}
        folder = chameleon_files.save_model(tmp_path / "m", chameleon_files.SHAPE, state, "heads")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "tie_word_embeddings": True}))
    tensors = load_file(folder / "model.safetensors")
    table = tensors["model.embed_tokens.weight"]
    tensors.pop("lm_head.weight", None)
    if copy != "none":
        tensors["lm_head.weight"] = table.clone() if copy != "other" else table + 1
    if copy == "head alone":
        del tensors["model.embed_tokens.weight"]
    save_file(tensors, folder / "model.safetensors")
    weights = read(folder)
    assert torch.equal(weights.read("head"), table) and torch.equal(
        weights.read("embedding"), table
    )
    assert ("lm_head.weight differs" in capsys.readouterr().out) == (copy == "other")


def test_configurations_without_a_rule_for_the_head(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state = simplear_files.random_state(simplear_files.SHAPE, tied=False)
    folder = simplear_files.save_model(
        tmp_path / "m", simplear_files.SHAPE, state, "safetensors", tied=False
    )
    config, weights = folder / "config.json", folder / "model.safetensors"
    read_simplear(folder)
    assert "tie_word_embeddings" not in capsys.readouterr().out
    settings = json.loads(config.read_text())
    del settings["tie_word_embeddings"]
    config.write_text(json.dumps(settings))
    tensors = load_file(weights)
    assert torch.equal(read_simplear(folder).read("head"), tensors["lm_head.weight"])
    said = capsys.readouterr().out
    assert "leaves out tie_word_embeddings, which means false: the head is lm_head.weight" in said
    save_file({n: t for n, t in tensors.items() if n != "lm_head.weight"}, weights)
    with pytest.raises(ExportError, match="lm_head.weight.*leaves out tie_word_embeddings, which"):
        read_simplear(folder)


def test_errors_of_the_program_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fail(_: Any) -> None:
        raise ZeroDivisionError("one\ntwo")

    monkeypatch.setattr("models.export.mar.command.run", fail)
    words = ["mar", "--model", "x", "--vae", "y", "--out", str(tmp_path / "out")]
    assert main(words) == 1
    error = capsys.readouterr().err
    assert (
        error.startswith("error: internal error: ZeroDivisionError: one;")
        and error.count("\n") == 1
    )
