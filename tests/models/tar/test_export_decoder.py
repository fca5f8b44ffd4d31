"""The exporter of Tar's de-tokenizer: what a bundle holds, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun, refused

from models.archive import archived_tensor
from models.export.__main__ import main

MODEL = Path(__file__).parents[2] / "golden/cases/tar/tar_decoder_tiny/model"
GPT, TA_TOK, VQ = "ar_dtok_lp_small.pth", "ta_tok.pth", "vq_ds16_t2i.pt"
Change = Callable[[dict[str, Any]], object]  # of what a file has under `model`


class Files(ExportRun):
    """Copies of the recorded files, to be changed, and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        shutil.copytree(MODEL, self.model)
        self.settings = folder / "settings.json"
        self.settings.write_text(json.dumps({"n_head": 4}))

    def export(self, *words: object) -> int:
        files = (
            "--gpt",
            self.model / GPT,
            "--ta-tok",
            self.model / TA_TOK,
            "--vq",
            self.model / VQ,
        )
        command = ("tar-decoder", *files, "--config", self.settings, "--out", self.out, *words)
        return main([*map(str, command)])

    def change(self, name: str, change: Change) -> None:
        content = torch.load(self.model / name, weights_only=True)
        change(content["model"])
        torch.save(content, self.model / name)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export() == 0
    manifest = files.manifest()
    assert manifest["family"] == "tar-decoder"
    assert set(manifest["modules"]) == {"target", "text_encoder", "image_decoder"}
    assert {manifest["modules"][role]["dtype"] for role in ("target", "text_encoder")} == {
        "bfloat16"
    }
    assert manifest["prompt"] == {
        "kind": "text_features", "length": 36, "align": "start", "features": 48,
    }  # fmt: skip
    assert manifest["tokenizer"] == {"kind": "codes", "file": "codes.json", "max_length": 36}
    lists = json.loads((files.out / "codes.json").read_text())
    assert lists == {"codes": 40, "lengths": [4, 9, 36]}
    assert manifest["cache"]["max_length"] == 36 + 16
    assert manifest["sampling"] == {
        "cfg_scale": 4.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "order": "ar",
    }  # fmt: skip


def test_learned_positions(files: Files) -> None:
    assert files.export("--dtype", "fp32") == 0
    stored = torch.load(files.model / GPT, weights_only=True)["model"]["sd"]["abs_pe"]
    assert torch.equal(archived_tensor(files.out / "target.pt", "places"), stored[0].float())


def test_names_of_transformers_5(files: Files) -> None:
    """One word less; the bundle is the same."""
    assert files.export() == 0
    before = archived_tensor(files.out / "text_encoder.pt", "codes")

    def shorten(model: dict[str, Any]) -> None:
        model["sd"] = {
            k.replace("decoder.vision_model.", "decoder."): v for k, v in model["sd"].items()
        }

    files.change(TA_TOK, shorten)
    assert files.export("--overwrite") == 0
    assert torch.equal(archived_tensor(files.out / "text_encoder.pt", "codes"), before)


def set_argument(name: str, value: Any) -> Change:
    return lambda model: model["args"].update({name: value})


def set_tensor(name: str, *shape: int) -> Change:
    return lambda model: model["sd"].update({name: torch.zeros(shape)})


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (GPT, lambda model: model.pop("args"), "no model.args"),
        (GPT, set_argument("model_type", "class_cond"), "model_type is class_cond, expected clip_cond"),
        (GPT, set_argument("frame_prediction", True), "frame_prediction is true, expected false"),
        (GPT, set_argument("cls_token_num", 9), "cls_token_num is 9, expected 36"),
        (GPT, set_argument("max_seq_len", 17), "max_seq_len is 17, expected a square"),
        (GPT, set_tensor("abs_pe", 1, 50, 32), "abs_pe has 50 positions, which leave 35"),
        (GPT, set_tensor("clip_proj.weight", 32, 40), "has features of width 48, expected 40"),
        (GPT, set_tensor("clip_proj.bias", 31), "clip_proj.bias has shape [31], expected [32]"),
        (GPT, set_tensor("layers.0.attention.wo.weight", 32, 31), "wo.weight has shape [32, 31]"),
        (GPT, lambda model: model["sd"].pop("norm.weight"), "missing keys: norm.weight"),
        (GPT, set_tensor("odd", 2, 2), "unexpected keys: odd"),
        (TA_TOK, lambda model: model["args"].pop("bottleneck"), "bottleneck is missing"),
        (
            TA_TOK,
            lambda model: model["args"]["bottleneck"]["args"]["regularizer"].update(name="vq"),
            "regularizer.name is vq, expected simvq",
        ),
        (
            TA_TOK,
            lambda model: model["sd"].pop("decode_task_layer.2.bias"),
            "missing keys: decode_task_layer.2.bias",
        ),
        (
            VQ,
            lambda model: model.update({"quantize.embedding.weight": torch.zeros(59, 8)}),
            "has a number of codes of 59, expected 60",
        ),
    ],
)  # fmt: skip
def test_contradictions(
    files: Files, capsys: pytest.CaptureFixture[str], name: str, change: Change, message: str
) -> None:
    files.change(name, change)
    assert message in refused(files, capsys, 4)


def test_heads_that_are_not_given(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Published sizes have heads of width 64."""
    files.settings.write_text(json.dumps({"n_head": 3}))
    assert "3 heads do not fit a width of 32" in refused(files, capsys, 4)
    files.settings.write_text(json.dumps({"heads": 4}))
    assert "unknown key heads" in refused(files, capsys, 2)
