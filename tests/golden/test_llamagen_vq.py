"""LlamaGen image tokenizers: exported decoder and encoder, the program's pixels and codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import numpy as np
import pytest
import torch
from golden_cases import Case
from PIL import Image
from torch import Tensor

from models.export.config_file import Section
from models.export.llamagen.networks import load_vq
from models.llamagen.vq import VQModel

KINDS = ("llamagen_vq",)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (checkpoint,) = case.weights()
    out = tmp_path_factory.mktemp("vq") / "bundle"
    return engine.export(out, "llamagen", {"vq": shape(case)}, vq=checkpoint)


@pytest.fixture(scope="module")
def plain(case: Case) -> VQModel:
    (checkpoint,) = case.weights()
    return load_vq(checkpoint, Section(shape(case), "case.json"))


def shape(case: Case) -> dict[str, Any]:
    """The tokenizer's dimensions; it takes grids of any size."""
    return {name: value for name, value in case.info["model"].items() if name != "grid"}


@pytest.fixture(scope="module")
def image(case: Case, bundle: Path) -> Tensor:
    """What the exported decoder makes of the recorded codes."""
    with torch.inference_mode():
        return engine.load_module(bundle, "image_decoder").decode(codes(case))


def codes(case: Case) -> Tensor:
    """[B, rows, columns]"""
    return case.long("codes").view(-1, *case.tensors["quantized"].shape[2:])


def test_image(case: Case, image: Tensor) -> None:
    engine.assert_recorded(case, "image", image, "image")


def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter decode` writes the pixels that the published sampling scripts save."""
    rows, columns = codes(case).shape[1:]
    images = [
        {"rows": rows, "columns": columns, "codes": grid.flatten().tolist()} for grid in codes(case)
    ]
    saved = {"format": "lamplighter codes", "schema": 1, "images": images}
    (tmp_path / "codes.json").write_text(json.dumps(saved), encoding="utf-8")
    words = ("decode", tmp_path / "codes.json", "-m", bundle, "-o", tmp_path / "%d.png")
    engine.run(engine.BUILD / "lamplighter", *words, "--threads", 1)
    scaled = (127.5 * case.tensors["image"].permute(0, 2, 3, 1).double() + 128).clamp(0, 255)
    for number, expected in enumerate(case.tensors["uint8_ddp"]):
        got = torch.from_numpy(np.array(Image.open(tmp_path / f"{number}.png")))
        assert got.shape == expected.shape
        off = (got.int() - expected.int()).abs()
        edge = (scaled[number] - scaled[number].round()).abs() <= 0.02
        assert int(off.max()) <= 1, f"image {number}: off by {int(off.max())}"
        assert not (off.bool() & ~edge).any(), f"image {number}: off by one where nothing rounds"


def test_decoder_stages(case: Case, plain: VQModel) -> None:
    with torch.inference_mode():
        quantized = plain.quantize.lookup(codes(case))
        latent = plain.post_quant_conv(quantized)
        start = plain.decoder.conv_in(latent)
        middle = start
        for block in plain.decoder.mid:
            middle = block(middle)
    stages = {
        "quantized": quantized,
        "post_quant_conv": latent,
        "decoder_conv_in": start,
        "decoder_mid": middle,
    }
    for name, got in stages.items():
        engine.assert_recorded(case, name, got, "image")


def test_encoder(case: Case, plain: VQModel) -> None:
    with torch.inference_mode():
        latents = plain.latents(case.tensors["enc.input_uint8"].float() / 255 * 2 - 1)
        found = plain.quantize.indices(latents)
        quantized = plain.quantize.lookup(found)
    engine.assert_recorded(case, "enc.latent", latents, "image")
    assert torch.equal(found.flatten(), case.long("enc.codes"))
    engine.assert_recorded(case, "enc.quantized", quantized, "image")


@torch.inference_mode()
def test_exported_encoder(case: Case, bundle: Path) -> None:
    """The bundle's encoder gives the official codes, all of them."""
    module = engine.load_module(bundle, "image_encoder")
    latents = module.latents(case.tensors["enc.input_uint8"].float() / 255 * 2 - 1)
    engine.assert_recorded(case, "enc.latent", latents, "image")
    assert torch.equal(module.nearest(latents).flatten(), case.long("enc.codes"))
