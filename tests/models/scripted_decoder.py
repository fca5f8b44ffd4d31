"""What every image decoder of codes is held to, and every encoder."""

from __future__ import annotations

import torch

from models.vq.image_decoder_module import ImageDecoderModule, ImageTokenizer
from models.vq.image_encoder_module import ImageEncoderModule


def check_against_plain(model: ImageTokenizer) -> None:
    """The scripted form decodes what the plain model of 20 codes does, with random weights; two pixels a code."""
    for weight in model.parameters():
        torch.nn.init.normal_(weight, 0.1, 0.2)
    scripted = torch.jit.script(ImageDecoderModule(model).eval())
    scripted.prepare(torch.empty(0))
    codes = torch.randint(20, (2, 3, 5))
    with torch.inference_mode():
        expected = model.decode_code(codes)
        assert expected.shape == (2, 3, 6, 10)
        for _ in range(3):  # the executor may change its plan after the first calls
            torch.testing.assert_close(
                scripted.decode(codes), expected, atol=2e-4 * float(expected.abs().max()), rtol=0
            )


def check_encoder_against_plain(model: ImageTokenizer, downsample: int) -> None:
    """The scripted form has the plain model's latents, with random weights, and finds every row's code."""
    for weight in model.parameters():
        torch.nn.init.normal_(weight, 0.1, 0.2)
    scripted = torch.jit.script(ImageEncoderModule(model).eval())
    scripted.prepare(torch.empty(0))
    rgb = torch.rand(2, 3, 3 * downsample, 5 * downsample) * 2 - 1
    codes = torch.arange(15).view(1, 3, 5)
    with torch.inference_mode():
        expected = model.latents(rgb)
        assert expected.shape[2:] == (3, 5)
        for _ in range(3):  # the executor may change its plan after the first calls
            latents = scripted.latents(rgb)
            torch.testing.assert_close(
                latents, expected, atol=2e-4 * float(expected.abs().max()), rtol=0
            )
        assert torch.equal(scripted.nearest(latents), model.quantize.indices(latents))
        assert torch.equal(scripted.nearest(model.quantize.lookup(codes)), codes)
