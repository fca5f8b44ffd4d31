"""Cosmos' discrete tokenizer of videos for one frame: codes, the folded decoder, and the rule of bytes."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case
from torch import Tensor

from models.cosmos.decoder import PATCH, Cosmos
from models.cosmos.folding import inverse_haar
from models.export.image_decoders.cosmos import load_cosmos

KINDS = ("families/cosmos_dv_decoder",)


@pytest.fixture(scope="module")
def plain(case: Case) -> Cosmos:
    return load_cosmos(case.weights()[0])


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cosmos") / "bundle"
    images = engine.images_of([(64, 64)], 16)
    return engine.export(out, "simplear", images, "--dtype", "fp32", decoder=case.weights()[0])


def sets(case: Case) -> dict[str, Tensor]:
    """Codes [1,h,w] by the number of their set."""
    found = [name for name in case.tensors if name.startswith("indices_")]
    return {name.rpartition("_")[2]: case.long(name) for name in found}


def test_sizes(case: Case, plain: Cosmos) -> None:
    facts, config = case.info["dims"], plain.config
    widths = tuple(facts["channels"] * factor for factor in facts["channels_mult"])
    assert config.widths == widths and config.levels == tuple(facts["levels"])
    assert config.num_res_blocks == facts["num_res_blocks"]
    assert config.z_channels == facts["z_channels"]
    assert config.downsample == facts["spatial_compression"] and facts["patch_size"] == PATCH


def assert_stage(case: Case, name: str, got: Tensor) -> None:
    """Against a recorded [C,1,h,w]; nothing where none is recorded."""
    if case.has(name):
        expected = case.tensors[name][:, 0]
        engine.assert_close(name, got[0], expected, case.info["tolerance"]["image"])


@torch.inference_mode()
def test_stages(case: Case, plain: Cosmos) -> None:
    for number, codes in sets(case).items():
        x = plain.quantize.lookup(codes)
        assert_stage(case, f"codes_{number}", x)
        x = plain.post_quant_conv(x)
        assert_stage(case, f"post_quant_{number}", x)
        x = plain.decoder.conv_in(x)
        assert_stage(case, f"conv_in_{number}", x)
        middle = plain.decoder.mid
        x = middle["block_1"](x)
        assert_stage(case, f"mid_block1_{number}", x)
        x = middle["temporal_1"](middle["attn_1"](x))
        assert_stage(case, f"mid_attn_{number}", x)
        x = middle["block_2"](x)
        assert_stage(case, f"mid_{number}", x)
        for level in reversed(range(len(plain.decoder.up))):
            for block in plain.decoder.up[level].blocks():
                x = block(x)
            assert_stage(case, f"up{level}_{number}", x)
        image = plain.decode_code(codes)[0]
        engine.assert_recorded(case, f"image_{number}", image, "image")


def test_wavelets(case: Case) -> None:
    """Both inverse stages, which the decoder has in its last convolution."""
    recorded = [name for name in case.tensors if name.startswith("conv_out_")]
    for name in recorded:
        image = inverse_haar(inverse_haar(case.tensors[name][:, 0]))
        engine.assert_recorded(case, name.replace("conv_out", "image"), image, 1e-5)


@torch.inference_mode()
def test_image(case: Case, bundle: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for number, codes in sets(case).items():
        got, expected = decoder.decode(codes)[0], case.tensors[f"image_{number}"]
        engine.assert_close(f"image {number}", got, expected, case.info["tolerance"]["image"])


@torch.inference_mode()
def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the script's pixels."""
    for number, codes in sets(case).items():
        (got,) = pixels.decode(bundle, tmp_path, codes[0])
        image, expected = case.tensors[f"image_{number}"], case.tensors[f"image_u8_{number}"]
        pixels.assert_rounded(f"image {number}", got, expected, image, 0.02)


def test_level_to_byte(case: Case, tmp_path: Path) -> None:
    levels, expected = case.tensors["round_in"], case.tensors["round_u8"]
    assert torch.equal(pixels.bytes_of(levels, "round", tmp_path), expected)


def test_check(bundle: Path) -> None:
    engine.check(bundle)
