"""The decoder of MAR's latents: stages, images, and the rules of bytes."""

from __future__ import annotations

import sys
from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case, cases_of
from torch import Tensor

from models.export.mar.bundle import image_part
from models.export.mar.weights import read_kl
from models.mar.kl import AutoencoderKL

KINDS = ("continuous/kl16",)


@pytest.fixture(scope="module")
def plain(case: Case) -> AutoencoderKL:
    return read_kl(case.folder / case.info["weights"]["file"])


def case_beside(case: Case) -> Case | None:
    """The case `mar` of the same set."""
    near = [c for c in cases_of("continuous/mar") if c.folder.parent == case.folder.parent]
    same = [c for c in near if c.folder.name == case.folder.name.replace("kl16", "mar")]
    return next(iter(same or near), None)


def sets(case: Case) -> dict[str, Tensor]:
    """Tokens [B,C,h,w] by set; some are of a run of the case `mar` that lies beside this one."""
    found = {}
    for name in sorted({key.partition(".")[0] for key in case.tensors}):
        if case.has(f"{name}.tokens"):
            found[name] = case.tensors[f"{name}.tokens"]
            continue
        beside = case_beside(case)
        if beside is not None:
            tokens = beside.tensors[f"{name.removeprefix('mar_')}.tokens"]
            side = case.tensors[f"{name}.image"].shape[2] // case.info["dims"]["scale_factor"]
            found[name] = tokens.transpose(1, 2).unflatten(2, (side, -1)).contiguous()
    assert found
    return found


def test_sizes(case: Case, plain: AutoencoderKL) -> None:
    facts, config = case.info["dims"], plain.config
    widths = [facts["base_channels"] * factor for factor in facts["channel_multipliers"]]
    assert config.widths == widths
    assert config.z_channels == facts["latent_channels"]
    assert config.num_res_blocks + 1 == facts["res_blocks_per_level_decoder"]
    assert config.downsample == facts["scale_factor"]


@torch.inference_mode()
def test_stages(case: Case, plain: AutoencoderKL) -> None:
    """Of the first image of a set."""
    trunk, allowed = plain.decoder, case.tolerance("image")
    last = len(plain.config.widths) - 1
    stages = {
        "post_quant": plain.post_quant_conv, "conv_in": trunk.conv_in,
        "mid_block_1": trunk.mid.block_1, "mid_attn_1": trunk.mid.attn_1,
        "mid_block_2": trunk.mid.block_2, f"up{last}": trunk.up[last].upsample,
    }  # fmt: skip
    seen: dict[str, Tensor] = {}
    hooks = [
        module.register_forward_hook(lambda _, x, out, name=name: seen.update({name: out}))
        for name, module in stages.items()
    ]
    for name, tokens in sets(case).items():
        image = plain.decode(tokens)
        engine.assert_recorded(case, f"{name}.image", image, allowed)
        for stage, got in seen.items():
            if case.has(f"{name}.{stage}"):
                engine.assert_recorded(case, f"{name}.{stage}", got[:1], allowed)
    for hook in hooks:
        hook.remove()


@torch.inference_mode()
def test_image(case: Case, plain: AutoencoderKL) -> None:
    """The form a bundle has."""
    engine.operators()
    decoder = torch.jit.script(image_part(plain).module)
    decoder.prepare(torch.empty(0))
    for name, tokens in sets(case).items():
        image, expected = decoder.decode(tokens), case.tensors[f"{name}.image"]
        engine.assert_close(name, image, expected, case.tolerance("image"))
        off = (
            bytes_of(image, half_even=True).int() - case.tensors[f"{name}.uint8_eval"].int()
        ).abs()
        assert int(off.max()) <= 1 and int((off > 0).sum()) <= max(10, off.numel() // 5000), name


def bytes_of(image: Tensor, half_even: bool) -> Tensor:
    """The two published rules, on fp32 [B,3,h,w] -> uint8 [B,h,w,3]."""
    level = (image + 1) / 2 * 255
    if half_even:
        level = level.clamp(0, 255).round()
    else:
        level = ((image.clamp(-1, 1) + 1) / 2 * 255 + 0.5).floor()
    return level.to(torch.uint8).permute(0, 2, 3, 1)


def test_bytes(case: Case) -> None:
    for name in sets(case):
        image = case.tensors[f"{name}.image"]
        assert torch.equal(bytes_of(image, True), case.tensors[f"{name}.uint8_eval"])
        assert torch.equal(bytes_of(image, False), case.tensors[f"{name}.uint8_save_image"])


def test_bundle(case: Case, tmp_path: Path) -> None:
    """With the case `mar` of the same set the decoder makes a bundle that the program checks and samples with."""
    beside = case_beside(case)
    if beside is None:
        pytest.skip(f"{case.name}: no case mar lies beside it")
    dims, weights = beside.info["dims"], beside.folder / beside.info["weights"]["file"]
    heads = f"{dims['encoder_heads']},{dims['decoder_heads']}"
    rows, columns = dims["grid"]
    bundle, vae = tmp_path / "bundle", case.folder / case.info["weights"]["file"]
    engine.run(
        sys.executable, "-m", "models.export", "mar", "--model", weights, "--vae", vae,
        "--heads", heads, "--grid", f"{rows}x{columns}", "--respacing", 7, "--out", bundle,
        "--drafter", weights,
    )  # fmt: skip
    program = engine.BUILD / "lamplighter"
    engine.check(bundle)
    for method in (("--steps", 3), ("--method", "cspd")):
        file = tmp_path / f"{method[1]}.png"
        engine.run(program, "generate", "-m", bundle, "--class", 1, *method, "-o", file, "--device", "cpu")  # fmt: skip
        scale = case.info["dims"]["scale_factor"]
        assert pixels.read_png(file).shape == (scale * rows, scale * columns, 3)
