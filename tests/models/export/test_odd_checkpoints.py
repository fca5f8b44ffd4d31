"""Checkpoints that people have: what is read, what is refused in one line."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import simplear_files
import torch
from llamagen_files import Files
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.archive import archived_tensor
from models.export.messages import ExportError
from models.export.names import WEIGHTS, unwrap
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


# Names and containers.


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
        token = WEIGHTS.set(wish)
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
        token = WEIGHTS.set(wish)
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
    token = WEIGHTS.set("ema")
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


# Tensors that cannot be exported.


def with_tensor(tensor: Any, name: str = KEY) -> Change:
    return lambda state: {**state, name: tensor(state[name]) if callable(tensor) else tensor}


def broken(value: float) -> Change:
    def change(weight: Tensor) -> Tensor:
        weight = weight.clone()
        weight[0, 0] = value
        return weight

    return with_tensor(change)


ODD_STATES: list[tuple[Change, str]] = [
    (with_tensor(lambda t: t.to(torch.float8_e4m3fn)), "is float8_e4m3fn, quantised; expected bf16"),
    (with_tensor(lambda t: t.to("meta")), "is on the meta device"),
    (with_tensor(lambda t: t.to_sparse()), "is sparse_coo, expected a dense tensor"),
    (with_tensor(lambda t: t.to_sparse_csr()), "is sparse_csr, expected a dense tensor"),
    (with_tensor(lambda t: torch.nested.nested_tensor([t, t])), "nested"),
    (with_tensor(lambda t: t.to(torch.complex64)), "is torch.complex64, expected floating point"),
    (with_tensor(lambda t: t > 0), "is torch.bool, expected floating point"),
    (with_tensor(lambda t: t.to(torch.int8)), "is torch.int8, expected floating point"),
    (with_tensor(lambda t: torch.zeros(1).expand(t.shape)), "more than the 4 bytes that are stored"),
    (with_tensor(torch.zeros(1, 1).expand(10**9, 10**9)), "more than the 4 bytes that are stored"),
    (with_tensor(torch.zeros(0, 32)), "has shape [0, 32], expected"),
    (with_tensor(torch.zeros(0, 32), "tok_embeddings.weight"), "expected no size of zero"),
    (broken(float("nan")), "has values that are NaN or infinite"),
    (broken(float("-inf")), "has values that are NaN or infinite"),
    (lambda s: {**s, 3: s[KEY]}, "key 3 is no text, expected names of tensors"),
    (lambda s: {**s, f"module.{KEY}": s[KEY]}, f"{KEY} is there twice, in and out of wrappers"),
    (lambda s: {**s, KEY.replace("weight", "qweight"): s[KEY]}, "the checkpoint is quantised"),
    (lambda s: {**s, f"{KEY}.quant_state.bitsandbytes__nf4": s[KEY]}, "the checkpoint is quantised"),
    (lambda s: {**s, f"{KEY}_scale_inv": s[KEY]}, "the checkpoint is quantised"),
    (lambda s: {"model.lora_A.weight": s[KEY], "layers.lora_A.weight": s[KEY]}, "merge the adapter"),
    (lambda s: {"_flat_param": s[KEY]}, "got the flat parameters of FSDP"),
    (lambda s: {**s, "layers.\u00b2.x": s[KEY], "a\nb": s[KEY]}, "unexpected keys: a\\nb, layers"),
    (lambda s: [s], "got list, expected a state dict"),
    (lambda s: s[KEY], "got Tensor, expected a state dict"),
    (lambda s: {"model": 3, "epoch": 1}, "no state dict: got keys epoch, model"),
    (lambda s: {}, "no state dict: got keys nothing"),
    (lambda s: {"model": s, "state_dict": s}, "has several models: model, state_dict"),
    (lambda s: Odd(), "got a checkpoint with objects besides tensors, which are code"),
]  # fmt: skip


class Odd:
    """A class that no reader knows."""


@pytest.mark.parametrize(("change", "message"), ODD_STATES, ids=range(len(ODD_STATES)))
def test_odd_states(
    files: Files, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(change(dict(files.states["gpt"])), files.gpt)
    assert files.export_gpt() == 4
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("error: ") and not files.leftovers()


def zipped(content: bytes) -> bytes:
    """The same archive with compressed parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as source:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
            for part in source.infolist():
                target.writestr(part, source.read(part), zipfile.ZIP_DEFLATED)
    return made.getvalue()


def other_files(_: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("weights.npy", b"x")
    return made.getvalue()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (zipped, "its parts are compressed, expected them as torch.save writes them"),
        (other_files, "got a zip archive of other files, expected a checkpoint"),
        (gzip.compress, "it begins with b'\\x1f\\x8b\\x08"),
        (lambda content: b"GGUF" + content, "it begins with b'GGUF', expected what torch.save"),
    ],
)
def test_odd_files(
    files: Files, change: Callable[[bytes], bytes], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files.gpt.write_bytes(change(files.gpt.read_bytes()))
    assert files.export_gpt() == 4
    assert message in capsys.readouterr().err


def test_formats_are_known_by_their_content(files: Files) -> None:
    save_file(files.states["gpt"], files.gpt)  # by the name of a pickle
    assert files.export_gpt() == 0


def test_fp64_is_converted(files: Files) -> None:
    torch.save({n: t.double() for n, t in files.states["gpt"].items()}, files.gpt)
    assert files.export_gpt() == 0
    assert files.manifest()["modules"]["target"]["dtype"] == "float32"


@pytest.mark.parametrize("name", ["output.weight", KEY])
def test_the_widest_precision_is_kept(files: Files, name: str) -> None:
    state = {n: t.bfloat16() for n, t in files.states["gpt"].items()}
    torch.save({**state, name: files.states["gpt"][name]}, files.gpt)
    assert files.export_gpt() == 0
    assert files.manifest()["modules"]["target"]["dtype"] == "float32"


def test_values_beyond_fp16_are_refused(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    torch.save({**files.states["gpt"], KEY: files.states["gpt"][KEY] * 1e7}, files.gpt)
    assert files.export_gpt("--dtype", "fp16") == 4
    error = capsys.readouterr().err
    assert "has values beyond 65504, the largest of fp16" in error and "target: " in error
    assert not files.leftovers()
    assert files.export_gpt("--dtype", "bf16") == 0


@pytest.mark.parametrize(
    "view", [lambda t: torch.imag(torch.complex(t, -t).conj()), lambda t: t.t().contiguous().t()]
)
def test_views_are_read_as_their_values(files: Files, view: Callable[[Tensor], Tensor]) -> None:
    """An archive holds memory as it is."""
    name = "tok_embeddings.weight"
    expected = files.states["gpt"][name]
    torch.save({**files.states["gpt"], name: view(expected)}, files.gpt)
    assert files.export_gpt() == 0
    stored = archived_tensor(files.out / "target.pt", "embedding")
    assert stored is not None and torch.equal(stored, expected)
