"""The Tar exporter: what a bundle holds, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun, refused
from safetensors.torch import load_file

from models.archive import archived_tensor
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.common import grid_entry
from models.export.config_file import Section
from models.export.tar.bundle import PUBLISHED_CODES, Names, read_names, scaled_grids
from models.simplear.config import ImageIds

MODEL = Path(__file__).parents[2] / "golden/cases/tar/tar_generate_tiny/model"
FIRST, CODES, SCALE = 308, 40, 305  # ids of the recorded tokenizer


class Files(ExportRun):
    """A copy of the recorded folder, to be changed, and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        shutil.copytree(MODEL, self.model)
        self.settings = folder / "settings.json"
        self.set(sizes=["84x84", "42x42", "28x28"], text_length=150)

    def set(self, **values: Any) -> None:
        self.settings.write_text(json.dumps(values))

    def export(self, *words: object) -> int:
        command = ["tar", "--model", self.model, "--config", self.settings, "--out", self.out]
        return main([*map(str, command), *map(str, words)])

    def change(self, name: str, **values: Any) -> None:
        content = json.loads((self.model / name).read_text(encoding="utf-8"))
        content.update(values)
        (self.model / name).write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["family"] == "tar" and "Apache-2.0" in manifest["licence"]
    assert set(manifest["modules"]) == {"target"} and "decoder" not in manifest
    prompt = manifest["prompt"]
    assert (
        prompt["text"]
        == prompt["negative_text"]
        == (
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
            "<|im_start|>assistant\n<im_start>"
        )
    )
    assert (prompt["length"], prompt["suffix"]) == (151, [])
    grids = [(grid["rows"], grid["columns"], grid["before"]) for grid in manifest["grids"]]
    assert grids == [(6, 6, [SCALE]), (3, 3, [SCALE + 1]), (2, 2, [SCALE + 2])]
    assert manifest["tokens"]["first_image_id"] == FIRST
    assert manifest["tokens"]["codebook_size"] == manifest["target"]["head"] == CODES
    assert manifest["cache"]["max_length"] == 151 + 36
    assert manifest["sampling"] == {
        "cfg_scale": 1.0, "temperature": 1.0, "top_k": 1200, "top_p": 0.95, "order": "ar",
    }  # fmt: skip
    table = load_file(files.model / "model.safetensors")["model.embed_tokens.weight"]
    head = archived_tensor(files.out / "target.pt", "head")
    assert torch.equal(head, table[FIRST : FIRST + CODES])


def test_a_description_of_the_training_program(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its model_type and its ids; a repetition penalty is named."""
    files.change(
        "config.json",
        model_type="llava_qwen",
        image_start_token_id=FIRST,
        scale_start_token_id=SCALE,
    )
    files.change("generation_config.json", repetition_penalty=1.1)
    assert files.export() == 0
    assert "a repetition penalty of 1.1, which is not applied" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("file", "values", "message"),
    [
        ("config.json", {"model_type": "llama"}, "model_type is llama, expected qwen2"),
        ("config.json", {"image_start_token_id": 307}, "image_start_token_id is 307, expected 308"),
        ("config.json", {"scale_start_token_id": 9}, "scale_start_token_id is 9, expected 305"),
        ("config.json", {"use_sliding_window": True}, "use_sliding_window is true, expected false"),
        ("tokenizer.json", {"added_tokens": []}, "no added token <|im_start|>"),
    ],
)  # fmt: skip
def test_contradictions(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    file: str,
    values: dict[str, Any],
    message: str,
) -> None:
    files.change(file, **values)
    assert message in refused(files, capsys, 4)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        (["84x84", "56x56"], "has 4 x 4 codes, expected squares of 6, 3, 2 a side"),
        (["84x84", "42x28"], "has 2 x 3 codes, expected squares"),
        (["80x80"], "expected multiples of 14 pixels"),
        (["364x364"], "take 827 positions, the model has 512"),
    ],
)
def test_sizes(
    files: Files, capsys: pytest.CaptureFixture[str], sizes: list[str], message: str
) -> None:
    files.set(sizes=sizes, text_length=150)
    assert message in refused(files, capsys, 2)


def test_sizes_of_the_published_model() -> None:
    """A coarse one alone has its own scale."""
    names = Names(ImageIds(9, PUBLISHED_CODES), (5, 6, 7))
    (grid,) = scaled_grids([grid_entry(182, 182, 14)], names)
    assert grid["before"] == [6]
    with pytest.raises(ExportError, match="expected squares of 27, 13, 9 a side"):
        scaled_grids([grid_entry(84, 84, 14)], names)


def test_ids_follow_one_another(files: Files) -> None:
    file = files.model / "tokenizer.json"
    content = json.loads(file.read_text(encoding="utf-8"))
    (token,) = (t for t in content["added_tokens"] if t["content"] == "<I7>")
    token["content"] = "<I77>"
    file.write_text(json.dumps(content))
    with pytest.raises(ExportError, match="code 7 has id None, expected 315"):
        read_names(file, Section({}, ""), 400)
