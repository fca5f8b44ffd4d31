"""MoVQGAN's decoder for the engine: bands of rows change nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.chameleon.vqgan import VQGANConfig
from models.lumina2.movqgan import MoVQGAN
from models.vq import image_decoder_module, spatial_decoder_module
from models.vq.image_decoder_module import PixelMix
from models.vq.spatial_decoder_module import SpatialDecoderModule, bands, moments

TINY = VQGANConfig(
    ch=32, ch_mult=(1, 2, 2, 1), num_res_blocks=1, z_channels=4, embed_dim=3, n_embed=20,
    attn_levels=(3,),
)  # fmt: skip


@pytest.fixture(scope="module")
def model() -> MoVQGAN:
    torch.manual_seed(1)
    model = MoVQGAN(TINY, encoder=False).requires_grad_(False)
    model.quantize.embedding.weight.normal_()
    for name, weight in model.named_parameters():
        if weight.dim() == 1 and "conv" not in name:  # norms differ from channel to channel
            weight.add_(0.3 * torch.randn_like(weight))
    return model


@pytest.fixture(scope="module")
def codes() -> Tensor:
    return torch.randint(20, (2, 5, 7), generator=torch.Generator().manual_seed(2))


@torch.inference_mode()
@pytest.mark.parametrize("kept", [1 << 30, 1 << 16, 0])
@pytest.mark.parametrize("band", [1 << 30, 1 << 16, 1])
def test_bands(
    model: MoVQGAN, codes: Tensor, monkeypatch: pytest.MonkeyPatch, band: int, kept: int
) -> None:
    monkeypatch.setattr(spatial_decoder_module, "BAND", band)
    monkeypatch.setattr(spatial_decoder_module, "KEPT", kept)
    decoder = torch.jit.script(SpatialDecoderModule(model))
    decoder.prepare(torch.empty(0))
    expected = model.decode_code(codes)
    assert expected.std() > 0.05
    torch.testing.assert_close(decoder.decode(codes), expected, rtol=0, atol=2e-5)


@pytest.mark.parametrize("height", [1, 2, 3, 5, 48, 97])
@pytest.mark.parametrize("band", [1, 30, 77, 1 << 20])
def test_edges_of_bands(height: int, band: int) -> None:
    edges = bands(height, 10, band)
    heights = [b - a for a, b in zip(edges, edges[1:], strict=False)]
    assert edges[0] == 0 and edges[-1] == height
    assert min(heights) >= min(2, height)  # a band sees two rows of the one before, unchanged
    assert max(heights) * 10 <= max(band + 9, 39)


def test_moments() -> None:
    x = 3 + torch.randn(2, 6, 4, 5)
    parts = x.double().view(2, 3, -1)
    expected = torch.stack([parts.sum(-1), parts.square().sum(-1)])
    torch.testing.assert_close(moments(x, 3), expected, rtol=1e-6, atol=0)


@torch.inference_mode()
@pytest.mark.parametrize("tile", [1, 8, 34, 35, 1000])
def test_tiles_of_attention(model: MoVQGAN, monkeypatch: pytest.MonkeyPatch, tile: int) -> None:
    monkeypatch.setattr(image_decoder_module, "QUERIES", tile)
    block, x = model.decoder.mid.attn_1, torch.randn(2, 32, 5, 7)
    latent = torch.randn(2, 3, 5, 7)
    expected = block(x, latent) - x
    torch.testing.assert_close(PixelMix(block)(block.norm(x, latent)), expected)
