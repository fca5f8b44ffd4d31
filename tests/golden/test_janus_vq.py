"""Janus-Pro's image tokenizer out of its folder: codes to pixels, and the rule of bytes."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case
from torch import Tensor

from models.export.janus.weights import read_folder
from models.llamagen.vq import VQModel

KINDS = ("families/janus_vq",)


def grids(case: Case) -> dict[str, Tensor]:
    """Codes [B,rows,cols] by set."""
    sets = case.info["sets"]
    return {
        name: case.long(f"{name}.codes").view(-1, entry["rows"], entry["cols"])
        for name, entry in sets.items()
    }


@pytest.fixture(scope="module")
def plain(case: Case) -> VQModel:
    return read_folder(case.published).vq.float()


@pytest.fixture(scope="module")
def bundle(case: Case, plain: VQModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    factor = plain.config.downsample
    sizes = [(factor * g.shape[2], factor * g.shape[1]) for g in grids(case).values()]
    out, images = tmp_path_factory.mktemp("janus") / "bundle", engine.images_of(sizes, 16)
    return engine.export(out, "janus", images, "--dtype", "fp32", model=case.published)


def test_sizes(case: Case, plain: VQModel, bundle: Path) -> None:
    facts, config = case.info["model"], plain.config
    widths = [facts["base_width"] * factor for factor in facts["decoder_ch_mult"]]
    assert [config.ch * factor for factor in config.decoder_ch_mult] == widths
    for name in ("num_res_blocks", "z_channels", "codebook_size", "codebook_embed_dim"):
        assert getattr(config, name) == facts[name], name
    assert engine.manifest(bundle)["decoder"] == {
        "codebook_size": facts["codebook_size"],
        "downsample": facts["downsample"],
        "pixels": "truncate",
    }


@torch.inference_mode()
def test_stages(case: Case, plain: VQModel) -> None:
    for name, codes in grids(case).items():
        rows = plain.quantize.lookup(codes)
        engine.assert_recorded(case, f"{name}.quantized", rows, "intermediates")
        latent = plain.post_quant_conv(rows)
        engine.assert_recorded(case, f"{name}.post_quant_conv", latent, "intermediates")
        x = plain.decoder.conv_in(latent)
        for block in plain.decoder.mid:
            x = block(x)
        engine.assert_recorded(case, f"{name}.decoder_mid", x, "intermediates")
        image, expected = plain.decode(rows), case.tensors[f"{name}.image"]
        engine.assert_close(f"{name} image", image, expected, case.tolerance("image"))


@torch.inference_mode()
def test_image(case: Case, bundle: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for name, codes in grids(case).items():
        engine.assert_recorded(case, f"{name}.image", decoder.decode(codes), "image")


def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the script's pixels."""
    for name, codes in grids(case).items():
        images, expected = case.tensors[f"{name}.image"], case.tensors[f"{name}.image_u8"]
        for number, got in enumerate(pixels.decode(bundle, tmp_path, *codes)):
            what = f"{name} image {number}"
            pixels.assert_truncated(what, got, expected[number], images[number], 0.02)


def test_level_to_byte(case: Case, tmp_path: Path) -> None:
    levels, expected = case.tensors["convert.float"], case.tensors["convert.u8"]
    assert torch.equal(pixels.bytes_of(levels, "truncate", tmp_path), expected)
    assert not torch.equal(pixels.bytes_of(levels, "round", tmp_path / "round"), expected)


def test_check(bundle: Path) -> None:
    engine.check(bundle)
