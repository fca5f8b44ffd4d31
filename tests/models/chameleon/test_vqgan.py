"""Chameleon's image tokenizer: the definition, and the decoder for the engine."""

from __future__ import annotations

import pytest
import torch
from chameleon_files import VQ_SHAPE
from scripted_decoder import check_against_plain, check_encoder_against_plain

from models.chameleon.vqgan import VQGAN, VQGANConfig


def test_published_tokenizer() -> None:
    with torch.device("meta"):
        model = VQGAN(VQGANConfig())
    keys = model.state_dict()
    assert len(keys) == 293
    assert sum(p.numel() for p in model.parameters()) == 68_718_467
    assert sum(p.numel() for p in model.decoder.parameters()) == 39_294_851
    assert {key.rsplit(".", 2)[0] for key in keys if "nin_shortcut" in key} == {
        "encoder.down.2.block.0",
        "encoder.down.4.block.0",
        "decoder.up.1.block.0",
        "decoder.up.3.block.0",
    }
    assert model.config.downsample == 16


def test_codes_survive_a_round_trip_through_the_codebook() -> None:
    torch.manual_seed(0)
    model = VQGAN(VQ_SHAPE).eval()
    codes = torch.randint(20, (2, 3, 4))
    rows = model.quantize.lookup(codes)
    assert torch.equal(rows[0, :, 1, 2], model.quantize.embedding.weight[codes[0, 1, 2]])
    assert torch.equal(model.quantize.indices(rows + 1e-4), codes)
    assert model.encode(torch.rand(1, 3, 8, 12)).shape == (1, 4, 6)


def test_long_rows_attract_no_latents() -> None:
    """The nearest row is meant, not the one with the largest product."""
    model = VQGAN(VQ_SHAPE, encoder=False)
    rows = torch.zeros(20, 5)
    rows[:, 0] = torch.arange(20.0)
    model.quantize.embedding.weight.data = rows
    z = torch.zeros(1, 5, 1, 3)
    z[0, 0, 0] = torch.tensor([2.4, 2.6, 30.0])
    assert model.quantize.indices(z).flatten().tolist() == [2, 3, 19]


@pytest.mark.parametrize("levels", [(), (0,), (0, 1)])
def test_scripted_decoder_equals_plain(levels: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = VQGAN(VQGANConfig(**{**VQ_SHAPE.__dict__, "attn_levels": levels}), encoder=False).eval()
    check_against_plain(model)


@pytest.mark.parametrize("levels", [(), (0, 1)])
def test_scripted_encoder_equals_plain(levels: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    model = VQGAN(VQGANConfig(**{**VQ_SHAPE.__dict__, "attn_levels": levels})).eval()
    check_encoder_against_plain(model, model.config.downsample)
