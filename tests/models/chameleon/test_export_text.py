"""The Chameleon exporter with --text: the head's other rows and what a prompt about an image consists of."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from chameleon_files import CONFIG, IDS, SHAPE, Files, save_model, tokenizer
from torch import Tensor


@pytest.fixture
def files(tmp_path: Path, state: dict[str, Tensor]) -> Files:
    files = Files(tmp_path)
    save_model(files.model, SHAPE, state, "heads")
    files.write_config({**CONFIG, "sizes": ["32x32"], "max_positions": 100})
    return files


def test_entry_and_weights(files: Files, state: dict[str, Tensor]) -> None:
    tokenizer(files.model)
    assert files.export_model("--text") == 0
    manifest = files.manifest()
    assert manifest["text"] == {
        "prefix": [0], "text": "{prompt}{image}", "before_image": [45], "after_image": [44],
        "suffix": [46], "stop": [46, 2], "length": 100,
        "sampling": {"temperature": 0.7, "top_k": 0, "top_p": 0.9},
    }  # fmt: skip
    assert "text_logits" in manifest["modules"]["target"]["methods"]
    recorded = [record["method"] for record in manifest["golden"]["records"]]
    assert recorded == ["embed", "forward", "forward", "logits", "text_logits"]
    stored = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    head = state["head"]
    assert torch.equal(stored["head"], head[4:44])
    assert torch.equal(stored["text_head"], torch.cat([head[:4], head[44:]]))
    assert len(stored["rotary"]) >= 100 > manifest["cache"]["max_length"]


@pytest.mark.parametrize("dtype", ["bf16", "int8"])
def test_recorded_calls_can_be_replayed(files: Files, dtype: str) -> None:
    tokenizer(files.model)
    assert files.export_model("--text", "--dtype", dtype) == 0
    if dtype == "bf16":
        files.replay_target()
    stored = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    assert stored["text_head"].dtype == (torch.bfloat16 if dtype == "bf16" else torch.int8)


def test_images_are_the_same_without_it(files: Files) -> None:
    tokenizer(files.model)
    assert files.export_model("--text") == 0
    text = files.manifest()
    assert files.export_model("--overwrite") == 0
    plain = files.manifest()
    assert "text" not in plain
    for key in ("prompt", "tokens", "grids", "sampling", "target", "cache"):
        assert plain[key] == text[key]


def test_without_a_tokenizer(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.export_model("--text") == 2
    assert "--text: got no tokenizer.json, expected one" in capsys.readouterr().err


def test_without_a_model(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.export("anole", "--vq", files.model, "--text") == 2
    assert "--text: got no --model, expected one" in capsys.readouterr().err


def test_another_end_of_texts(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer(files.model, **{"</s>": 60})
    assert files.export_model("--text") == 4
    assert "</s> has id 60, expected 2" in capsys.readouterr().err


def test_no_room_for_a_text(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    tokenizer(files.model)
    files.write_config({"tokens": IDS, "sizes": ["64x64"], "text_length": 8, "max_positions": 70})
    assert files.export_model("--text") == 2
    assert "an image of 64x64 and a short text take 84 positions, the model has 70" in (
        capsys.readouterr().err
    )


def test_lumina_has_none(files: Files) -> None:
    with pytest.raises(SystemExit):
        files.export_model("--text", family="lumina-mgpt")
