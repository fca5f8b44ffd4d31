"""What every image decoder of codes is held to."""

from __future__ import annotations

import torch

from models.vq.image_decoder_module import ImageDecoderModule, ImageTokenizer


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
