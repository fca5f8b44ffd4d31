"""The Chameleon exporter: what a bundle holds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from chameleon_files import CONFIG, IDS, SHAPE, Files, piece_of_code, save_model, tokenizer
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.chameleon.vqgan import VQGAN, VQGANConfig


@pytest.fixture
def files(tmp_path: Path, state: dict[str, Tensor]) -> Files:
    files = Files(tmp_path)
    save_model(files.model, SHAPE, state, "heads")
    return files


def test_whole_bundle(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.export_model() == 0
    manifest = files.manifest()
    assert manifest["family"] == "anole" and "Noncommercial research" in manifest["licence"]
    methods = ["forward_layers", "forward_features"]
    entry = {"file": "target.pt", "dtype": "float32", "methods": methods}
    assert manifest["modules"] == {"target": entry}
    assert manifest["prompt"] == {
        "kind": "tokens", "length": 11, "align": "start", "prefix": [0], "text": "{prompt}",
        "suffix": [46], "unconditional": [0],
    }  # fmt: skip
    assert manifest["grids"] == [{
        "width": 64, "height": 64, "rows": 4, "columns": 4, "before": [45], "row_end": [],
        "after": [],
    }]  # fmt: skip
    assert manifest["tokens"] == {"vocabulary": 80, "first_image_id": 4, "codebook_size": 40}
    assert manifest["target"] == {"hidden": 32, "features": 32, "head": 40}
    assert manifest["cache"] == {"layers": 3, "kv_heads": 2, "head_dim": 8, "max_length": 11 + 16}
    assert manifest["sampling"]["cfg_scale"] == 3 and manifest["sampling"]["top_k"] == 2000
    recorded = [(r["module"], r["method"]) for r in manifest["golden"]["records"]]
    assert recorded == [("target", m) for m in ("embed", "forward", "forward", "logits")]
    shown = capsys.readouterr()
    assert "reading weights: 100 %" in shown.out and "recording target: 100 %" in shown.out
    assert "no tokenizer" in shown.err
    assert files.leftovers() == ["bundle"]


def test_weights_in_the_archive(files: Files, state: dict[str, Tensor]) -> None:
    assert files.export_model() == 0
    stored = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    assert torch.equal(stored["embedding"], state["embedding"])
    assert torch.equal(stored["head"], state["head"][4:44])
    assert torch.equal(stored["layers.1.wqkv"], state["layers.1.wqkv"])
    assert len(stored["rotary"]) >= files.manifest()["cache"]["max_length"]


@pytest.mark.parametrize("dtype", ["keep", "bf16", "fp32"])
@pytest.mark.parametrize("kept", [torch.float32, torch.bfloat16])
def test_storage_precision(
    files: Files, state: dict[str, Tensor], dtype: str, kept: torch.dtype
) -> None:
    files.model = files.folder / "typed"
    typed = {name: tensor.to(kept) for name, tensor in state.items()}
    save_model(files.model, SHAPE, typed, "heads")
    assert files.export_model("--dtype", dtype) == 0
    wanted = {"keep": kept, "bf16": torch.bfloat16, "fp32": torch.float32}[dtype]
    assert files.manifest()["modules"]["target"]["dtype"] == str(wanted).removeprefix("torch.")
    stored = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    rotary = stored.pop("rotary")
    assert rotary.dtype == torch.float32
    assert {t.dtype for t in stored.values() if t.numel()} == {wanted}


def test_recorded_calls_can_be_replayed(files: Files) -> None:
    """What was recorded block by block is what the archive gives."""
    assert files.export_model("--dtype", "bf16") == 0
    files.replay_target()


def test_sizes_with_frames(files: Files) -> None:
    """Lumina-mGPT: the height comes first, rows end with an id, the image with two."""
    files.write_config({"tokens": IDS, "text_length": 9, "max_positions": 4096})
    assert files.export_model("--sizes", "96x64,64x32", family="lumina-mgpt") == 0
    manifest = files.manifest()
    assert [(g["width"], g["height"], g["rows"], g["columns"]) for g in manifest["grids"]] == [
        (96, 64, 4, 6), (64, 32, 2, 4),
    ]  # fmt: skip
    assert manifest["grids"][0]["before"] == [45, 50, 51]
    assert manifest["grids"][0]["row_end"] == [47] and manifest["grids"][0]["after"] == [44, 46]
    assert manifest["prompt"]["length"] == 1 + 9 + 3 and manifest["prompt"]["unconditional"] == []
    assert manifest["cache"]["max_length"] == 13 + 24 + 3
    assert manifest["prompt"]["text"].startswith("Generate an image of {width}x{height} according")
    assert manifest["sampling"]["cfg_scale"] == 4


@pytest.mark.parametrize(
    ("positions", "widths", "text"),
    [(1300, [512], 241), (4096, [512, 768], 256), (10240, [512, 768, 1024], 256)],
)
def test_usual_sizes_as_far_as_there_are_positions(
    files: Files, positions: int, widths: list[int], text: int
) -> None:
    files.write_config({"tokens": {**IDS, "size_base": 20}, "max_positions": positions})
    assert files.export_model(family="lumina-mgpt") == 0
    manifest = files.manifest()
    assert [grid["width"] for grid in manifest["grids"]] == widths
    assert manifest["prompt"]["length"] == 1 + text + 3
    assert manifest["cache"]["max_length"] <= positions


def test_tokenizer_beside_the_model(files: Files) -> None:
    path = tokenizer(files.model)
    assert files.export_model() == 0
    entry = files.manifest()["tokenizer"]
    assert entry == {"kind": "bpe", "file": "tokenizer.json", "max_length": 8}
    assert (files.out / "tokenizer.json").read_bytes() == path.read_bytes()


def test_added_pieces_beyond_the_embedding(files: Files) -> None:
    path = tokenizer(files.folder, added={"<|image|>": 80})
    assert files.export_model("--tokenizer", path) == 0
    assert files.manifest()["tokenizer"]["file"] == "tokenizer.json"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"<racm3:break>": 60}, "<racm3:break> has id 60, expected 45"),
        ({piece_of_code(12): 61}, "IMGIMGBCZ has id 61, expected 16"),
        ({"b": 80}, "has ids up to 80, the model embeds 80"),
    ],
)
def test_tokenizers_of_other_models(
    files: Files, capsys: pytest.CaptureFixture[str], changes: dict[str, int], message: str
) -> None:
    path = tokenizer(files.folder, **changes)
    assert files.export_model("--tokenizer", path) == 4
    assert message in capsys.readouterr().err
    assert not files.leftovers()


def add_image_tokenizer(folder: Path, codes: int) -> VQGAN:
    """A tokenizer among the weights of the model, two pixels a code."""
    torch.manual_seed(4)
    config = VQGANConfig(
        ch=32, ch_mult=(1, 1), num_res_blocks=1, z_channels=32, embed_dim=8, n_embed=codes
    )
    model = VQGAN(config, encoder=True)
    file = folder / "model.safetensors"
    part = {f"model.vqmodel.{name}": tensor for name, tensor in model.state_dict().items()}
    save_file({**load_file(file), **part}, file)
    return model


def test_image_decoder_among_the_weights(files: Files) -> None:
    add_image_tokenizer(files.model, codes=40)
    files.write_config({**CONFIG, "sizes": ["8x8", "12x4"]})
    assert files.export_model("--vq", files.model, "--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["decoder"] == {"codebook_size": 40, "downsample": 2, "pixels": "truncate"}
    dtypes = {role: module["dtype"] for role, module in manifest["modules"].items()}
    assert dtypes == {
        "target": "bfloat16", "image_decoder": "float32", "image_encoder": "float32"
    }  # fmt: skip
    shapes = [(grid["rows"], grid["columns"]) for grid in manifest["grids"]]
    assert shapes == [(4, 4), (2, 6)]


def test_image_decoder_with_other_codes(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    add_image_tokenizer(files.model, codes=41)
    assert files.export_model("--vq", files.model) == 4
    assert "has 41 codes, expected the 40 that the model generates" in capsys.readouterr().err
    assert not files.leftovers()


def test_image_tokenizer_alone(files: Files) -> None:
    add_image_tokenizer(files.model, codes=41)
    assert files.export("chameleon", "--vq", files.model) == 0
    assert set(files.manifest()["modules"]) == {"image_decoder", "image_encoder"}


def test_equal_exports_are_equal_bytes(files: Files) -> None:
    assert files.export_model() == 0
    first = (files.out / "manifest.json").read_bytes()
    assert files.export_model("--overwrite") == 0
    assert (files.out / "manifest.json").read_bytes() == first


def test_swin_norms_are_kept(files: Files, state: dict[str, Tensor]) -> None:
    files.model = files.folder / "swin"
    save_model(files.model, replace(SHAPE, swin_norm=True), state, "meta")
    assert files.export_model() == 0
    stored = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    assert torch.equal(stored["layers.2.attention_norm"], state["layers.2.attention_norm"])
    assert torch.equal(stored["last_norm"], state["norm"])
    assert CONFIG["sizes"] == ["64x64"] and files.manifest()["grids"][0]["rows"] == 4
