"""Chameleon's image tokenizers: exported decoder, the program's pixels, encoder of the definition."""

import json
import sys
from pathlib import Path

import golden_engine as engine
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from golden_cases import Case
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

from models.bundle import Bundle, BundleModule
from models.chameleon.vqgan import VQGAN
from models.export.vqgan import load_vqgan

KINDS = ("vqgan_",)
SETS = (0, 1)


def checkpoint(case: Case) -> Path:
    """The original file, or the Hugging Face folder."""
    file = case.folder / "vqgan.ckpt"
    return file if file.is_file() else case.folder


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("vqgan") / "bundle"
    command = (sys.executable, "-m", "models.export", "anole", "--vq", checkpoint(case))
    engine.run(*command, "--out", out)
    return out


@pytest.fixture(scope="module")
def plain(case: Case) -> VQGAN:
    return load_vqgan(checkpoint(case))


def draw(bundle: Path, folder: Path, *grids: Tensor) -> list[Tensor]:
    """What `lamplighter decode` makes of codes [rows, columns] -> uint8 [h, w, 3] each."""
    pictures = [
        {"rows": g.shape[0], "columns": g.shape[1], "codes": g.flatten().tolist()} for g in grids
    ]
    saved = {"format": "lamplighter codes", "schema": 1, "pictures": pictures}
    (folder / "codes.json").write_text(json.dumps(saved), encoding="utf-8")
    words = ("decode", folder / "codes.json", "-m", bundle, "-o", folder / "%d.png")
    engine.run(engine.BUILD / "lamplighter", *words, "--threads", 1, "--device", "cpu")
    return [torch.from_numpy(np.array(Image.open(folder / f"{i}.png"))) for i in range(len(grids))]


def test_dimensions(case: Case, plain: VQGAN) -> None:
    dims, found = case.info["dims"], plain.config
    for name in ("ch", "num_res_blocks", "z_channels", "embed_dim", "n_embed"):
        assert getattr(found, name) == dims[name], name
    assert list(found.ch_mult) == dims["ch_mult"]
    assert found.downsample == dims["downsample_factor"]


def test_bundle(case: Case, bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["decoder"] == {
        "codebook_size": case.info["dims"]["n_embed"],
        "downsample": case.info["dims"]["downsample_factor"],
        "pixels": "truncate",
    }
    assert manifest["modules"]["image_decoder"]["dtype"] == "float32"
    engine.run(engine.BUILD / "lamplighter", "check", bundle, "--device", "cpu")


@pytest.mark.parametrize("number", SETS)
def test_image(case: Case, bundle: Path, number: int) -> None:
    expected = case.tensors[f"image_float_{number}"]
    with torch.inference_mode():
        module = engine.load_module(bundle, "image_decoder")
        image = module.decode(case.long(f"codes_{number}")[None])[0]
    engine.assert_close("image", image, expected, case.info["tolerance"]["float_abs"])


def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the bytes of the official save."""
    for number, got in enumerate(draw(bundle, tmp_path, *(case.long(f"codes_{i}") for i in SETS))):
        expected = case.tensors[f"image_u8_{number}"]
        assert got.shape == expected.shape
        rgb = case.tensors[f"image_float_{number}"].permute(1, 2, 0).double()
        level = (rgb.clamp(-1, 1) + 1) / 2 * 255
        edge = (level - level.round()).abs() <= 0.01
        off = (got.int() - expected.int()).abs()
        assert int(off.max()) <= 1, f"image {number}: off by {int(off.max())}"
        assert not (off.bool() & ~edge).any(), f"image {number}: off by one where nothing rounds"


class Flat(nn.Module):
    """An image decoder of pixels with one given level each."""

    def __init__(self, levels: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", levels[:, None])

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.table = self.table.to(like)

    @torch.jit.export
    def decode(self, codes: Tensor) -> Tensor:
        return F.embedding(codes, self.table).permute(0, 3, 1, 2).repeat(1, 3, 1, 1)


@pytest.mark.parametrize("rule", ["truncate", "round"])
def test_level_to_byte(case: Case, tmp_path: Path, rule: str) -> None:
    engine.operators()
    levels, expected = case.tensors["trunc_in"], case.tensors["trunc_u8"]
    if rule == "round":  # LlamaGen's rule, for the same levels
        expected = (127.5 * levels + 128).clamp(0, 255).to(torch.uint8)
        assert not torch.equal(expected, case.tensors["trunc_u8"])
    bundle = Bundle("levels", "anole", "none", "made by a test")
    bundle.modules["image_decoder"] = BundleModule(Flat(levels), torch.float32)
    bundle.entries["decoder"] = {"codebook_size": len(levels), "downsample": 1, "pixels": rule}
    bundle.write(tmp_path / "bundle")
    (got,) = draw(tmp_path / "bundle", tmp_path, torch.arange(len(levels)).view(4, -1))
    assert torch.equal(got, expected.view(4, -1, 1).expand(-1, -1, 3))


@pytest.mark.parametrize("number", SETS)
def test_decoder_stages(case: Case, plain: VQGAN, number: int) -> None:
    with torch.inference_mode():
        latent = plain.quantize.lookup(case.long(f"codes_{number}")[None])
        image = plain.decode(latent)
    assert torch.equal(latent[0], case.tensors[f"latent_{number}"])
    expected = case.tensors[f"image_float_{number}"]
    engine.assert_close("image", image[0], expected, case.info["tolerance"]["float_abs"])


@pytest.mark.parametrize("number", SETS)
def test_encoder(case: Case, plain: VQGAN, number: int) -> None:
    picture = case.tensors[f"enc_image_u8_{number}"].double() / 255 * 2 - 1
    with torch.inference_mode():
        latents = plain.latents(picture.float().permute(2, 0, 1)[None])
        found = plain.quantize.indices(latents)[0]
    expected = case.tensors[f"enc_z_{number}"]
    engine.assert_close("latents", latents[0], expected, case.info["tolerance"]["z_abs"])
    clear = case.tensors[f"enc_margin_{number}"] > 1e-3
    assert clear.any()
    assert torch.equal(found[clear], case.long(f"enc_codes_{number}")[clear])
    rows = plain.quantize.embedding.weight.double()
    nearest = torch.cdist(latents[0].double().flatten(1).t(), rows).square().topk(2, largest=False)
    margin = (nearest.values[:, 1] - nearest.values[:, 0]).view_as(clear)
    engine.assert_close("margin", margin, case.tensors[f"enc_margin_{number}"], 1e-3)


def test_neighbours(case: Case, bundle: Path, plain: VQGAN, tmp_path: Path) -> None:
    """The program finds the raw codebook in the decoder."""
    words = ("neighbours", "-m", bundle, "--k", 9, "-o", tmp_path / "table")
    engine.run(engine.BUILD / "lamplighter", *words)
    ids = load_file(tmp_path / "table")["neighbours"].long()
    rows = plain.quantize.embedding.weight.double()
    distances = torch.cdist(rows, rows).fill_diagonal_(torch.inf)
    expected = distances.topk(9, largest=False).values
    engine.assert_close("distances", distances.gather(1, ids), expected, 1e-5)
