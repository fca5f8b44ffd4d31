"""Chameleon's image tokenizers: exported decoder and encoder, the program's pixels."""

from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case
from safetensors.torch import load_file

from models.chameleon.vqgan import VQGAN
from models.export.image_decoders.vqgan import load_vqgan

KINDS = ("vqgan_",)
SETS = (0, 1)


def checkpoint(case: Case) -> Path:
    """The original file, or the Hugging Face folder."""
    file = case.folder / "vqgan.ckpt"
    return file if file.is_file() else case.folder


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vqgan") / "bundle"
    return engine.export(out, "anole", {}, vq=checkpoint(case))


@pytest.fixture(scope="module")
def plain(case: Case) -> VQGAN:
    return load_vqgan(checkpoint(case))


def test_dimensions(case: Case, plain: VQGAN) -> None:
    dims, found = case.info["dims"], plain.config
    for name in ("ch", "num_res_blocks", "z_channels", "embed_dim", "n_embed"):
        assert getattr(found, name) == dims[name], name
    assert list(found.ch_mult) == dims["ch_mult"]
    assert found.downsample == dims["downsample_factor"]


def test_bundle(case: Case, bundle: Path) -> None:
    manifest = engine.manifest(bundle)
    assert manifest["decoder"] == {
        "codebook_size": case.info["dims"]["n_embed"],
        "downsample": case.info["dims"]["downsample_factor"],
        "pixels": "truncate",
    }
    assert manifest["modules"]["image_decoder"]["dtype"] == "float32"
    engine.check(bundle)


@pytest.mark.parametrize("number", SETS)
def test_image(case: Case, bundle: Path, number: int) -> None:
    with torch.inference_mode():
        module = engine.load_module(bundle, "image_decoder")
        image = module.decode(case.long(f"codes_{number}")[None])[0]
    engine.assert_recorded(case, f"image_float_{number}", image, "float_abs")


def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the bytes of the official save."""
    for number, got in enumerate(
        pixels.decode(bundle, tmp_path, *(case.long(f"codes_{i}") for i in SETS))
    ):
        expected, image = case.tensors[f"image_u8_{number}"], case.tensors[f"image_float_{number}"]
        pixels.assert_truncated(f"image {number}", got, expected, image, 0.01)


@pytest.mark.parametrize("rule", ["truncate", "round"])
def test_level_to_byte(case: Case, tmp_path: Path, rule: str) -> None:
    levels, expected = case.tensors["trunc_in"], case.tensors["trunc_u8"]
    if rule == "round":  # LlamaGen's rule, for the same levels
        expected = (127.5 * levels + 128).clamp(0, 255).to(torch.uint8)
        assert not torch.equal(expected, case.tensors["trunc_u8"])
    assert torch.equal(pixels.bytes_of(levels, rule, tmp_path), expected)


@pytest.mark.parametrize("number", SETS)
def test_decoder_stages(case: Case, plain: VQGAN, number: int) -> None:
    with torch.inference_mode():
        latent = plain.quantize.lookup(case.long(f"codes_{number}")[None])
        image = plain.decode(latent)
    assert torch.equal(latent[0], case.tensors[f"latent_{number}"])
    engine.assert_recorded(case, f"image_float_{number}", image[0], "float_abs")


@torch.inference_mode()
@pytest.mark.parametrize("number", SETS)
@pytest.mark.parametrize("exported", [False, True])
def test_encoder(case: Case, bundle: Path, plain: VQGAN, number: int, exported: bool) -> None:
    """The codes are the official ones wherever the two nearest rows are clearly apart."""
    module = engine.load_module(bundle, "image_encoder") if exported else plain
    rgb = case.tensors[f"enc_image_u8_{number}"].double() / 255 * 2 - 1
    latents = module.latents(rgb.float().permute(2, 0, 1)[None])
    found = (module.nearest(latents) if exported else plain.quantize.indices(latents))[0]
    engine.assert_recorded(case, f"enc_z_{number}", latents[0], "z_abs")
    clear = case.tensors[f"enc_margin_{number}"] > 1e-3
    assert clear.any()
    assert torch.equal(found[clear], case.long(f"enc_codes_{number}")[clear])
    rows = plain.quantize.embedding.weight.double()
    nearest = torch.cdist(latents[0].double().flatten(1).t(), rows).square().topk(2, largest=False)
    margin = (nearest.values[:, 1] - nearest.values[:, 0]).view_as(clear)
    engine.assert_recorded(case, f"enc_margin_{number}", margin, 1e-3)


def test_neighbours(case: Case, bundle: Path, plain: VQGAN, tmp_path: Path) -> None:
    """The program finds the raw codebook in the decoder."""
    words = ("neighbours", "-m", bundle, "--k", 9, "-o", tmp_path / "table")
    engine.run(engine.BUILD / "lamplighter", *words)
    ids = load_file(tmp_path / "table")["neighbours"].long()
    rows = plain.quantize.embedding.weight.double()
    distances = torch.cdist(rows, rows).fill_diagonal_(torch.inf)
    expected = distances.topk(9, largest=False).values
    engine.assert_close("distances", distances.gather(1, ids), expected, 1e-5)
