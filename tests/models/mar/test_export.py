"""The MAR exporter: what a bundle holds, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from export_run import refused
from mar_files import (
    DRAFT_SHAPE,
    KL_SHAPE,
    SHAPE,
    Files,
    normal,
    random_model,
    save_checkpoint,
    save_kl,
)
from safetensors.torch import load_file
from torch import Tensor

from models import ops
from models.export.mar.weights import SIZES, read_kl, read_mar
from models.mar.config import MARConfig, square_shape
from models.mar.network import MAR

HEADS = ("--heads", "2,4", "--drafter-heads", 2)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_published_sizes_are_known(tmp_path: Path) -> None:
    """Heads by the width; the averaged weights are taken."""
    config = replace(SHAPE, encoder=square_shape(768, 1, 12), decoder=square_shape(1024, 1, 16))
    model = random_model(config)
    found = read_mar(save_checkpoint(tmp_path / "model.pth", model, num_sampling_steps="25"), None)
    assert found.model.config == config and found.respacing == "25"
    for name, tensor in model.state_dict().items():
        assert torch.equal(found.model.state_dict()[name], tensor), name
    assert {name: size.heads for name, size in SIZES.items()} == {"B": 12, "L": 16, "H": 16}


def test_whole_bundle(files: Files) -> None:
    assert files.export(*HEADS, "--drafter", files.drafter, "--cfg-scale", 3) == 0
    manifest = files.manifest()
    expected = {
        "tokens": {"kind": "continuous", "channels": 4},
        "diffusion": {"steps": 7, "respacing": "7"},
        "prompt": {"kind": "class", "length": 1, "align": "end", "classes": 5},
        "target": {"hidden": 32},
        "sampling": {"cfg_scale": 3.0, "temperature": 1.0, "schedule": {"kind": "linear"}},
        "decoder": {"downsample": 2, "pixels": "round"},
        "drafters": {
            "small": {"file": "drafter-small.pt", "dtype": "float32", "kind": "continuous"}
        },
    }
    assert {key: manifest[key] for key in expected} == expected
    (grid,) = manifest["grids"]
    assert [grid[k] for k in ("width", "height", "rows", "columns")] == [8, 6, 3, 4]
    assert "cache" not in manifest and "tokenizer" not in manifest
    assert manifest["family"] == "mar"
    roles = [(r["module"], r["method"]) for r in manifest["golden"]["records"]]
    network = ["context", "denoise", "denoise"]
    assert roles == [
        *(("target", method) for method in network),
        ("image_decoder", "decode"),
        *(("small", method) for method in network),
    ]


@torch.inference_mode()
def test_archives_are_the_networks(files: Files) -> None:
    assert files.export(*HEADS, "--drafter", files.drafter) == 0
    golden = load_file(files.out / "golden.safetensors")
    for file, role, config, seed in (
        ("target.pt", "target", SHAPE, 3), ("drafter-small.pt", "small", DRAFT_SHAPE, 9),
    ):  # fmt: skip
        module = torch.jit.load(str(files.out / file))
        module.prepare(torch.empty(0))
        inputs = [golden[f"{role}.context.0.in{i}"] for i in range(3)]
        z, plain = module.context(*inputs), random_model(config, seed)
        for i in range(len(z)):
            expected = plain.context(*(t[i : i + 1] for t in inputs))
            torch.testing.assert_close(z[i : i + 1], expected, atol=1e-5, rtol=1e-5)
        assert torch.equal(z, golden[f"{role}.context.0.out0"])
        assert golden[f"{role}.denoise.1.in1"].shape == (0, config.decoder.dim)
    decoder = torch.jit.load(str(files.out / "image_decoder.pt"))
    decoder.prepare(torch.empty(0))
    latents = golden["image_decoder.decode.0.in0"]
    expected = read_kl(files.vae).decode(latents)
    torch.testing.assert_close(decoder.decode(latents), expected, atol=1e-5, rtol=1e-5)


def test_settings_of_the_command_line(files: Files) -> None:
    """The respacing holds for both networks, whatever their files name."""
    save_checkpoint(files.drafter, random_model(DRAFT_SHAPE), num_sampling_steps="9")
    words = (*HEADS, "--drafter", files.drafter, "--cfg-schedule", "constant")
    assert files.export(*words, "--respacing", "3,2") == 0
    assert files.manifest()["diffusion"] == {"steps": 5, "respacing": "3,2"}
    assert files.manifest()["sampling"]["schedule"] == {"kind": "constant"}


@torch.inference_mode()
def test_half_precision_is_storage_alone(files: Files, model: MAR) -> None:
    assert files.export(*HEADS, "--drafter", files.drafter, "--dtype", "fp16") == 0
    manifest = files.manifest()
    parts = [*manifest["modules"].values(), *manifest["drafters"].values()]
    assert {part["dtype"] for part in parts} == {"float16"}
    ops.load()
    module = torch.jit.load(str(files.out / "target.pt"))
    kinds = {name: tensor.dtype for name, tensor in module.named_buffers()}
    assert {name for name, kind in kinds.items() if kind != torch.float16} == {"head.times", "head.tables"}  # fmt: skip
    module.prepare(torch.empty(0))
    latents, classes = normal(1, SHAPE.positions, SHAPE.channels), torch.tensor([1])
    visible = torch.arange(SHAPE.positions)[None] < 5
    z, exact = module.context(latents, visible, classes), model.context(latents, visible, classes)
    assert z.dtype == torch.float32
    torch.testing.assert_close(z, exact, atol=1e-2, rtol=1e-2)
    assert float((z - exact).abs().max()) > 1e-6


@pytest.mark.parametrize(
    ("config", "settings", "message"),
    [
        (replace(DRAFT_SHAPE, channels=3), {}, "channels of a token: got 3, the model's are 4"),
        (replace(DRAFT_SHAPE, positions=9), {}, "tokens of an image: got 9, the model's are 12"),
        (replace(DRAFT_SHAPE, classes=6), {}, "classes: got 6, the model's are 5"),
        (DRAFT_SHAPE, {"num_sampling_steps": "8"}, "denoising steps: got 8, the model's are 7"),
    ],
)
def test_other_drafters(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    config: MARConfig,
    settings: dict[str, str],
    message: str,
) -> None:
    save_checkpoint(files.drafter, random_model(config), **settings)
    line = refused(files, capsys, 4, *HEADS, "--drafter", files.drafter)
    assert line.endswith(f"draft.pth: {message}")


def test_other_command_lines(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "width 24 is none of a published model; give" in refused(files, capsys, 2)
    assert "encoder is 2 x 24, that of MAR-B is 12 x 768" in refused(
        files, capsys, 4, *HEADS, "--size", "B"
    )
    assert "--heads: got '0'" in refused(files, capsys, 2, "--heads", 0)
    assert "5 heads do not fit a width of 24" in refused(files, capsys, 4, "--heads", 5)
    assert "--grid: got '3x5'" in refused(files, capsys, 2, *HEADS, "--grid", "3x5")
    assert "respacing 'x'" in refused(files, capsys, 2, *HEADS, "--respacing", "x")
    assert "--temperature: got nan" in refused(files, capsys, 2, *HEADS, "--temperature", "nan")
    assert "--cfg-scale: got -1.0" in refused(files, capsys, 2, *HEADS, "--cfg-scale", -1)
    files.out.mkdir()
    assert files.export(*HEADS) == 7
    assert "exists already" in capsys.readouterr().err


def test_other_files(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    save_kl(files.vae, replace(KL_SHAPE, z_channels=8))
    assert "latents of 8 channels, the model's have 4" in refused(files, capsys, 4, *HEADS)
    save_kl(files.vae, replace(KL_SHAPE, attn_levels=(1,)))
    assert "attention at level 1, expected none" in refused(files, capsys, 4, *HEADS)
    files.vae.write_bytes(b"<!doctype html>")
    assert "got an HTML page, expected a checkpoint" in refused(files, capsys, 4, *HEADS)
    files.vae.unlink()
    assert "kl16.ckpt: no such file" in refused(files, capsys, 4, *HEADS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask_token": None}, "missing keys: mask_token"),
        ({"extra": torch.zeros(2)}, "unexpected keys: extra"),
        ({"z_proj.weight": None}, "missing key z_proj.weight"),
        ({"class_emb.weight": torch.zeros(5)}, "class_emb.weight has shape [5], expected 2 dimensions"),
        ({"decoder_norm.bias": torch.zeros(3)}, "decoder_norm.bias has shape [3], expected [32]"),
        ({"encoder_pos_embed_learned": torch.zeros(1, 12, 24)}, "a size of"),
    ],
)  # fmt: skip
def test_other_tensors(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    model: MAR,
    change: dict[str, Tensor | None],
    message: str,
) -> None:
    state = {**model.state_dict(), **change}
    kept = {name: tensor for name, tensor in state.items() if tensor is not None}
    torch.save({"model_ema": kept}, files.model)
    assert message in refused(files, capsys, 4, *HEADS)
