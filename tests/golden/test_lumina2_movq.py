"""Lumina-mGPT 2.0's image tokenizer out of its checkpoint: codes to pixels and back, and the rule of bytes."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_lumina2 as lumina2
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case
from torch import Tensor

from models.export.image_decoders.movqgan import load_movqgan
from models.lumina2.movqgan import MoVQGAN
from models.vq import spatial_decoder_module

KINDS = ("families/lumina2_movq",)


def checkpoint(case: Case) -> Path:
    (file,) = case.weights()
    return file


def sets(case: Case) -> dict[str, Tensor]:
    """Codes [1,h,w] by the end of the tensors' names."""
    names = [name for name in case.tensors if name.startswith("codes_")]
    return {name.removeprefix("codes"): case.long(name)[None] for name in names}


@pytest.fixture(scope="module")
def plain(case: Case) -> MoVQGAN:
    return load_movqgan(checkpoint(case)).float()


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lumina2") / "bundle"
    return lumina2.export(out, None, checkpoint(case), [(64, 64)])


def test_sizes(case: Case, plain: MoVQGAN, bundle: Path) -> None:
    facts, config = case.info["dims"], plain.config
    assert config.widths == [facts["ch"] * factor for factor in facts["ch_mult"]]
    for name in ("num_res_blocks", "z_channels", "embed_dim", "n_embed", "downsample"):
        assert getattr(config, name) == facts[name], name
    sides = [facts["resolution"] // 2**level for level in range(len(facts["ch_mult"]))]
    attentive = tuple(i for i, side in enumerate(sides) if side in facts["attn_resolutions"])
    assert config.attn_levels == attentive
    assert engine.manifest(bundle)["decoder"] == {
        "codebook_size": facts["n_embed"],
        "downsample": facts["downsample"],
        "pixels": "nearest",
    }


@torch.inference_mode()
def test_stages(case: Case, plain: MoVQGAN) -> None:

    def compare(name: str, got: Tensor) -> None:
        if case.has(name):
            engine.assert_recorded(case, name, got[0], "image")

    for end, codes in sets(case).items():
        latent = plain.quantize.lookup(codes)
        compare(f"latent{end}", latent)
        inner = plain.post_quant_conv(latent)
        compare(f"post_quant{end}", inner)
        decoder = plain.decoder
        x = decoder.conv_in(inner)
        compare(f"conv_in{end}", x)
        compare(f"spatial_norm{end}", decoder.mid.block_1.norm1(x, latent))
        after = {decoder.mid.block_2: "mid", decoder.up[-1].upsample: f"up{len(decoder.up) - 1}"}
        for block in decoder.blocks():
            x = block(x, latent)
            if block in after:
                compare(f"{after[block]}{end}", x)
        compare(f"image{end}", plain.decode(latent))


@torch.inference_mode()
def test_image(case: Case, bundle: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for end, codes in sets(case).items():
        engine.assert_recorded(case, f"image{end}", decoder.decode(codes)[0], "image")


@torch.inference_mode()
@pytest.mark.parametrize("kept", [1 << 30, 0], ids=["kept", "computed twice"])
def test_bands(case: Case, plain: MoVQGAN, monkeypatch: pytest.MonkeyPatch, kept: int) -> None:
    """In bands of few rows, each map kept or computed once more."""
    monkeypatch.setattr(spatial_decoder_module, "BAND", 1 << 12)
    monkeypatch.setattr(spatial_decoder_module, "KEPT", kept)
    decoder = torch.jit.script(spatial_decoder_module.SpatialDecoderModule(plain))
    decoder.prepare(torch.empty(0))
    for end, codes in sets(case).items():
        engine.assert_recorded(case, f"image{end}", decoder.decode(codes)[0], "image")


def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the script's pixels."""
    found = sets(case)
    for end, got in zip(found, pixels.decode(bundle, tmp_path, *(c[0] for c in found.values()))):
        expected, image = case.tensors[f"image_u8{end}"], case.tensors[f"image{end}"]
        pixels.assert_rounded(end, got, expected, image, 0.01)


def test_level_to_byte(case: Case, tmp_path: Path) -> None:
    levels, expected = case.tensors["round_in"], case.tensors["round_u8"]
    assert torch.equal(pixels.bytes_of(levels, "nearest", tmp_path), expected)
    assert not torch.equal(pixels.bytes_of(levels, "truncate", tmp_path / "other"), expected)


@torch.inference_mode()
@pytest.mark.parametrize("exported", [False, True])
def test_encoder(case: Case, bundle: Path, plain: MoVQGAN, exported: bool) -> None:
    """The codes are the official ones wherever the two nearest rows are clearly apart."""
    if not case.has("enc_z"):
        pytest.skip("no recorded latents")
    module = engine.load_module(bundle, "image_encoder") if exported else plain
    rgb = case.tensors["enc_image_u8"].double() / 255 * 2 - 1
    latents = module.latents(rgb.float().permute(2, 0, 1)[None].contiguous())
    engine.assert_recorded(case, "enc_z", latents[0], "latents")
    sure = case.tensors["enc_margin"] > 1e-3
    codes = (module.nearest(latents) if exported else plain.quantize.indices(latents))[0]
    assert torch.equal(codes[sure], case.long("enc_codes")[sure])


def test_check(bundle: Path) -> None:
    engine.check(bundle)
