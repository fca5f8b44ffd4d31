"""Names and containers of checkpoints that people have: what is read, what is refused in one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import simplear_files
import torch
from llamagen_files import Files
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.export.messages import ExportError
from models.export.names import WEIGHTS, Wish, unwrap
from models.export.simplear.weights import read_folder as read_simplear

State = dict[str, Tensor]
Change = Callable[[State], Any]
KEY = "layers.0.attention.wqkv.weight"


@pytest.fixture(scope="module")
def simplear(tmp_path_factory: pytest.TempPathFactory) -> simplear_files.Files:
    folder = tmp_path_factory.mktemp("simplear")
    return simplear_files.Files(
        folder, simplear_files.random_state(simplear_files.SHAPE), "safetensors"
    )


def under(*path: str) -> Change:
    def change(state: State) -> Any:
        for key in reversed(path):
            state = {key: state}  # type: ignore[dict-item]
        return state

    return change


def renamed(change: Callable[[str], str]) -> Change:
    return lambda state: {change(name): tensor for name, tensor in state.items()}


def inserted(part: str) -> Change:
    return renamed(lambda name: name.replace("layers.0.", f"layers.0.{part}."))


WRAPPED: list[tuple[Change, str]] = [
    (under("model"), ""),
    (under("state_dict"), ""),
    (under("params"), ""),
    (under("module", "model"), "takes the tensors under module.model"),
    (under("ema"), "takes the tensors under ema"),
    (under("some_name"), "takes the tensors under some_name"),
    (under("checkpoint", "model", "module"), "takes the tensors under checkpoint.model.module"),
    (lambda s: {"ckpt": {"state_dict": s}, "optimizer": {"state": {0: {"step": torch.ones(1)}}}},
     "takes the tensors under ckpt.state_dict"),
    (renamed(lambda n: f"module.{n}"), "reads the names without module"),
    (renamed(lambda n: f"_orig_mod.{n}"), "reads the names without _orig_mod"),
    (renamed(lambda n: f"module._orig_mod.{n}"), "reads the names without _orig_mod, module"),
    (renamed(lambda n: f"_fsdp_wrapped_module.{n}"), "without _fsdp_wrapped_module"),
    (inserted("_fsdp_wrapped_module"), "without _fsdp_wrapped_module"),
    (inserted("_checkpoint_wrapped_module"), "without _checkpoint_wrapped_module"),
    (renamed(lambda n: f"model.{n}"), "reads the tensors under model."),
    (renamed(lambda n: f"net._orig_mod.{n}"), "reads the names without _orig_mod, reads the tensors under net."),
    (lambda s: {"state_dict": {**renamed(lambda n: f"model.{n}")(s), "loss.w": torch.ones(1)}}, "leaves out loss.w"),
    (lambda s: {**renamed(lambda n: f"module.{n}")(s), "n_averaged": torch.tensor(3)}, "without module"),
    (lambda s: {**s, "epoch": 3}, "leaves out what is no tensor: epoch"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "said"), WRAPPED, ids=range(len(WRAPPED)))
def test_containers_and_prefixes(
    files: Files, change: Change, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = change(files.states["gpt"])
    state = unwrap(content, tmp_path / "x.pt", ("tok_embeddings.weight",))
    assert state.keys() == files.states["gpt"].keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in files.states["gpt"].items())
    notes = capsys.readouterr().out.splitlines()
    assert len(notes) == bool(said) and all(said in line for line in notes)


@pytest.mark.parametrize("form", ["containers", "prefixes"])
def test_averaged_weights_beside_raw_ones(files: Files, form: str, tmp_path: Path) -> None:
    raw = files.states["gpt"]
    averaged = {name: tensor + 1 for name, tensor in raw.items()}
    content: Any = {"model": raw, "ema": averaged, "optimizer": {}, "steps": 3}
    if form == "prefixes":
        content = {f"model.{n}": t for n, t in raw.items()}
        content |= {f"model_ema.{n}": t for n, t in averaged.items()}
    anchors = ("tok_embeddings.weight",)
    with pytest.raises(ExportError, match="give --weights model or --weights ema") as error:
        unwrap(content, tmp_path / "x.pt", anchors)
    assert error.value.exit_code == 2
    for wish, expected in (("ema", averaged), ("model", raw)):
        token = WEIGHTS.set(Wish(wish) if wish else None)
        try:
            state = unwrap(content, tmp_path / "x.pt", anchors)
        finally:
            WEIGHTS.reset(token)
        assert all(torch.equal(state[name], expected[name]) for name in raw)
    assert all(torch.equal(unwrap(content, tmp_path, anchors, "ema")[n], averaged[n]) for n in raw)


def test_other_models_beside_the_one_are_named(
    files: Files, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    raw = files.states["gpt"]
    content = {"model": raw, "best": {name: tensor + 1 for name, tensor in raw.items()}}
    state = unwrap(content, tmp_path / "x.pt", ("tok_embeddings.weight",))
    assert all(torch.equal(state[name], tensor) for name, tensor in raw.items())
    assert "takes the tensors under model, not those under best" in capsys.readouterr().out


def by_key(one: State, other: State) -> Any:
    return {"G": one, "student": other, "steps": 3}


def by_prefix(one: State, other: State) -> Any:
    return {f"G.{n}": t for n, t in one.items()} | {f"net.student.{n}": t for n, t in other.items()}


def beside_usual(one: State, other: State) -> Any:
    return {"model": one, "student": {"state_dict": other}}


@pytest.mark.parametrize("content", [by_key, by_prefix, beside_usual])
def test_several_models_are_chosen_by_name(
    files: Files, content: Callable[[State, State], Any], tmp_path: Path
) -> None:
    one = files.states["gpt"]
    other = {name: tensor + 1 for name, tensor in one.items()}
    both, anchors, path = content(one, other), ("tok_embeddings.weight",), tmp_path / "x.pt"
    first = "model" if content is beside_usual else "G"
    if content is not beside_usual:
        with pytest.raises(ExportError, match="several models: G.*as in --weights G$") as error:
            unwrap(both, path, anchors)
        assert error.value.exit_code == 2
    for wish, expected in ((first, one), ("student", other), ("nobody", one)):
        token = WEIGHTS.set(Wish(wish) if wish else None)
        try:
            if wish == "nobody" and content is not beside_usual:
                with pytest.raises(ExportError, match="has several models: "):
                    unwrap(both, path, anchors)
                continue
            state = unwrap(both, path, anchors)
        finally:
            WEIGHTS.reset(token)
        assert all(torch.equal(state[name], expected[name]) for name in one), wish


def test_a_discriminator_is_no_model(
    files: Files, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    own = files.states["gpt"]
    for content, said in (
        ({"G": own, "D": {"layers.weight": torch.ones(2)}}, "takes the tensors under G"),
        (
            {f"generator.{n}": t for n, t in own.items()} | {"discriminator.w": torch.ones(2)},
            "reads the tensors under generator., leaves out discriminator.w",
        ),
    ):
        state = unwrap(content, tmp_path / "x.pt", ("tok_embeddings.weight",))
        assert all(torch.equal(state[name], own[name]) for name in own)
        assert said in capsys.readouterr().out


def test_weights_that_no_file_has_are_reported(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.export_gpt("--weights", "teacher", "--overwrite") == 0
    assert "--weights teacher: no file has weights of this name" in capsys.readouterr().out


def test_heads_belong_to_their_model(tmp_path: Path) -> None:
    """Averaged weights of an untied model beside raw ones: both have a head."""
    raw = simplear_files.random_state(simplear_files.SHAPE, tied=False)
    folder = simplear_files.save_model(
        tmp_path / "m", simplear_files.SHAPE, raw, "safetensors", tied=False
    )
    state = load_file(folder / "model.safetensors")
    averaged = {f"ema.{name}": tensor + 1 for name, tensor in state.items()}
    save_file({**state, **averaged}, folder / "model.safetensors")
    for wish, added in (("model", 0), ("ema", 1)):
        token = WEIGHTS.set(Wish(wish) if wish else None)
        try:
            weights = read_simplear(folder)
        finally:
            WEIGHTS.reset(token)
        assert torch.equal(weights.read("head"), state["lm_head.weight"] + added)
        assert torch.equal(weights.read("norm"), state["model.norm.weight"] + added)
    save_file(
        {**state, **{n: t for n, t in averaged.items() if "lm_head" not in n}},
        folder / "model.safetensors",
    )
    token = WEIGHTS.set(Wish("ema"))
    try:
        with pytest.raises(ExportError, match="missing keys: lm_head.weight"):
            read_simplear(folder)
    finally:
        WEIGHTS.reset(token)


def test_averaged_weights_without_names_are_named(
    files: Files, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    raw = files.states["gpt"]
    content = {"model": raw, "ema": {"decay": 0.99, "shadow_params": list(raw.values())}}
    state = unwrap(content, tmp_path / "x.pt", ("tok_embeddings.weight",))
    assert state.keys() == raw.keys()
    said = capsys.readouterr().out
    assert "leaves out the averaged weights under ema.shadow_params, which have no names" in said


@pytest.mark.parametrize(
    "rename",
    [
        lambda n: n.removeprefix("model."),
        lambda n: f"module.{n}",
        lambda n: f"base_model.model.{n}",
        lambda n: n.replace("model.", "model.language_model.", 1),
        lambda n: n.replace("layers.1.", "layers.1._fsdp_wrapped_module."),
    ],
)
def test_prefixes_of_hugging_face_folders(
    simplear: simplear_files.Files, rename: Callable[[str], str], tmp_path: Path
) -> None:
    state = load_file(simplear.model / "model.safetensors")
    (tmp_path / "config.json").write_text((simplear.model / "config.json").read_text())
    save_file(
        {rename(name): tensor for name, tensor in state.items()}, tmp_path / "model.safetensors"
    )
    weights = read_simplear(tmp_path)
    assert weights.state.keys() == state.keys()
    assert torch.equal(weights.state["model.norm.weight"], state["model.norm.weight"])
