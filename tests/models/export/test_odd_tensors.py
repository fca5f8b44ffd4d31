"""Tensors of checkpoints that people have: what is converted, what is refused in one line."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
import torch
from llamagen_files import Files
from safetensors.torch import save_file
from torch import Tensor

from models.archive import archived_tensor

State = dict[str, Tensor]
Change = Callable[[State], Any]
KEY = "layers.0.attention.wqkv.weight"


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
    (with_tensor(lambda t: t.double() * 1e300), f"{KEY} is fp64 with values beyond 3.403e+38, the largest of fp32"),
    (with_tensor(lambda t: t.double() / 0), "has values that are NaN or infinite"),
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
    (lambda s: {"model": s, "state_dict": s}, "has several models: model, state_dict; give --weights"),
    (lambda s: Odd(), "got a checkpoint with objects besides tensors, which are code"),
]  # fmt: skip


class Odd:
    """A class that no reader knows."""


@pytest.mark.parametrize(("change", "message"), ODD_STATES, ids=range(len(ODD_STATES)))
def test_odd_states(
    files: Files, change: Change, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.save(change(dict(files.states["gpt"])), files.gpt)
    assert files.export_gpt() == (2 if "give --weights" in message else 4)
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
