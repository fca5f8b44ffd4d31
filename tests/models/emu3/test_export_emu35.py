"""The Emu3 exporter and Emu3.5's folders: what a bundle holds, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun, refused
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.archive import archived_tensor
from models.emu3.config import Emu3Config
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.emu3.bundle import Names, size_grid
from models.export.emu3.models import EMU35, TRAINED_GRIDS
from models.export.emu3.weights import weight_shapes

CASE = Path(__file__).parents[2] / "golden/cases/emu3/emu35_generate_tiny"
CODES, HEADS, KEY_HEADS, HEAD_DIM, WIDTH = 40, 4, 2, 16, 32
NORM = "model.layers.1.self_attn.q_norm.weight"


class Files(ExportRun):
    """A copy of the recorded folders, to be changed, and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "bundle"
        self.model, self.vq = folder / "model", folder / "vq"
        shutil.copytree(CASE / "model", self.model)
        shutil.copytree(CASE / "vq", self.vq)
        self.config = folder / "settings.json"
        self.config.write_text(json.dumps({"sizes": ["8x6"], "text_length": 100}))

    def export(self, *words: object) -> int:
        parts = ["--model", self.model, "--vq", self.vq, "--config", self.config]
        return main([*map(str, ["emu3", *parts, "--out", self.out]), *map(str, words)])

    def change(self, **values: Any) -> None:
        file = self.model / "config.json"
        content = json.loads(file.read_text(encoding="utf-8")) | values
        file.write_text(json.dumps({k: v for k, v in content.items() if v is not None}))

    def state(self) -> dict[str, Tensor]:
        return load_file(self.model / "model.safetensors")

    def change_settings(self, old: str, new: str) -> None:
        file = self.vq / "config.yaml"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["licence"] == "see the model card (code: Apache License 2.0)"
    special = json.loads((files.out / "tokenizer.json").read_text(encoding="utf-8"))["added_tokens"]
    ids = {token["content"]: token["id"] for token in special}
    prompt = manifest["prompt"]
    image = "<|extra_100|><|image start|>{rows}*{columns}<|image token|>"
    role = "You are a helpful assistant"
    assert prompt["text"] == f"{role} for t2i task. USER: {{prompt}} ASSISTANT: {image}"
    assert prompt["negative_text"] == f"{role}. USER: {{prompt}} ASSISTANT: {image}"
    assert prompt["negative_prompt"] == ""
    assert prompt["prefix"] == prompt["unconditional"] == [ids["<|extra_203|>"]]
    (grid,) = manifest["grids"]
    assert (grid["rows"], grid["columns"], grid["before"]) == (3, 4, [])
    assert (grid["row_end"], grid["after"]) == ([ids["<|extra_200|>"]], [ids["<|image end|>"]])
    assert manifest["cache"] == {
        "layers": 2, "kv_heads": KEY_HEADS, "head_dim": HEAD_DIM, "max_length": 101 + 3 * 4 + 2,
    }  # fmt: skip
    assert manifest["sampling"] == {
        "cfg_scale": 5.0, "temperature": 1.0, "top_k": 5120, "top_p": 1.0, "order": "ar",
    }  # fmt: skip
    assert manifest["decoder"] == {"codebook_size": CODES, "downsample": 2, "pixels": "truncate"}
    assert "image_encoder" not in manifest["modules"]
    first = ids["<|visual token 000000|>"]
    head = files.state()["lm_head.weight"][first : first + CODES]
    assert torch.equal(archived_tensor(files.out / "target.pt", "head"), head)


def test_licences(files: Files) -> None:
    """Of the image tokenizer alone, and one that the user gives."""
    for words, licence in (
        ([], "see the model card (code: Apache License 2.0)"),
        (["--licence", "x"], "x"),
    ):
        parts = ["emu3", "--vq", files.vq, "--out", files.out, "--overwrite", *words]
        assert main([str(word) for word in parts]) == 0
        assert files.manifest()["licence"] == licence


def test_features_of_norms_lie_as_those_of_heads(files: Files) -> None:
    """Those that turn together stand side by side."""
    assert files.export() == 0
    norm = files.state()[NORM]
    layer = getattr(torch.jit.load(str(files.out / "target.pt")).layers, "1")
    assert torch.equal(layer.q_norm, norm.view(2, HEAD_DIM // 2).T.flatten())
    assert layer.wo.shape == (WIDTH, HEADS * HEAD_DIM)


def test_a_nested_description(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """As transformers 5 writes it; nothing may be left out."""
    inner = json.loads((files.model / "config.json").read_text(encoding="utf-8"))
    base = inner.pop("rope_theta")
    inner["rope_parameters"] = {"rope_type": "default", "rope_theta": base}
    files.change(**{name: None for name in inner}, rope_theta=None)
    files.change(model_type="Emu3", text_config=inner)
    assert files.export() == 0
    del inner["rope_parameters"]
    files.change(text_config=inner)
    capsys.readouterr()
    assert files.export("--overwrite") == 4
    assert "rope_theta is missing" in capsys.readouterr().err


def test_a_folder_of_the_tokenizer(files: Files, tmp_path: Path) -> None:
    other = tmp_path / "tokenizer"
    other.mkdir()
    for name in ("emu3.tiktoken", "emu3_vision_tokens.txt"):
        (files.model / name).rename(other / name)
    assert files.export("--tokenizer", other) == 0
    assert (files.out / "tokenizer.json").is_file()


def test_sizes_that_were_trained() -> None:
    """Eight of them; the first is the usual one."""
    ids = dict.fromkeys(EMU35.tags, 5)
    names = Names(CASE, {}, ids, 4, 10, EMU35.codes)
    assert EMU35.published.sizes[0] == (1168, 880)
    found = [size_grid(EMU35, names, *size, 16) for size in EMU35.published.sizes]
    assert [(grid["rows"], grid["columns"]) for grid in found] == list(TRAINED_GRIDS)
    for size in ((1024, 1040), (720, 720), (2048, 2048)):
        with pytest.raises(
            ExportError, match="the model was trained on 1168x880, 1024x1024, 1552x656"
        ):
            size_grid(EMU35, names, *size, 16)


def test_the_published_sizes() -> None:
    """34.1 billion numbers, of which the embedding and the head have 2.9."""
    config = Emu3Config(
        vocab_size=282926, dim=5120, n_layer=64, n_head=64, n_kv_head=8, head_size=128, ffn_dim=25600,
        max_positions=32768, head_norms=True,
    )  # fmt: skip
    sizes = {name: torch.Size(shape).numel() for name, shape in weight_shapes(config).items()}
    assert sizes["layers.63.wo"] == 5120 * 8192 and sizes["layers.63.k_norm"] == 128
    assert round(sum(sizes.values()) / 1e9, 1) == 34.1
    assert round((sizes["embedding"] + sizes["head"]) / 1e9, 1) == 2.9


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "no width": ({"head_dim": None}, "head_dim is missing, expected a whole number"),
    "odd width": ({"head_dim": 15}, "4 heads and 2 key/value heads do not fit"),
    "another width": ({"head_dim": 8}, "q_proj.weight has shape [64, 32], expected [32, 32]"),
    "scaled": ({"rope_scaling": {"type": "linear", "factor": 2.0}}, "rope_scaling"),
    "vocabulary": ({"vocab_size": 100}, "expected [100, 32]"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_contradictions(files: Files, capsys: pytest.CaptureFixture[str], change: str) -> None:
    values, message = CHANGES[change]
    files.change(**values)
    assert message in refused(files, capsys, 4)


def test_tensors(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    state = files.state()
    for tensor, message in (
        (None, f"missing keys: {NORM}"),
        (torch.ones(HEADS, HEAD_DIM), f"{NORM} has shape [4, 16], expected [16]"),
    ):
        changed = {k: v for k, v in state.items() if k != NORM}
        changed |= {} if tensor is None else {NORM: tensor}
        save_file(changed, files.model / "model.safetensors")
        assert message in refused(files, capsys, 4)


def test_image_tokenizers(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Its configuration has to agree with its tensors, and its codes with the model's."""
    files.change_settings("attn_resolutions:\n  - 16", "attn_resolutions:\n  - 32")
    assert "levels [0], expected levels [1]" in refused(files, capsys, 4)
    files.change_settings("attn_resolutions:\n  - 32", "attn_resolutions:\n  - 16")
    files.change_settings("n_embed: 40", "n_embed: 41")
    assert "n_embed is 41, expected 40" in refused(files, capsys, 4)
    (files.vq / "config.yaml").unlink()
    assert "config.yaml: no such file" in refused(files, capsys, 4)
    (files.vq / "model.ckpt").rename(files.vq / "other.ckpt")
    assert "config.json: no such file" in refused(files, capsys, 4)


def test_positions(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.config.write_text(json.dumps({"sizes": ["44x44"], "text_length": 100}))
    assert "takes 505 positions and its prompt 101, the model has 512" in refused(files, capsys, 2)
