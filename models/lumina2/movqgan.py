"""MoVQGAN (Zheng et al. 2022), the image tokenizer of Lumina-mGPT 2.0, with the official state-dict keys."""

from __future__ import annotations

import functools

from torch import Tensor

from ..chameleon.vqgan import VQGAN, VQGANConfig
from ..vq.blocks import NormOf, SpatialNorm


class MoVQGAN(VQGAN):
    """Chameleon's VQGAN with spatial norms in the decoder, which read the codebook's rows."""

    def decoder_norm(self, config: VQGANConfig) -> NormOf:
        return functools.partial(SpatialNorm, config.embed_dim)

    def decode(self, quantized: Tensor) -> Tensor:
        return self.decoder(self.post_quant_conv(quantized), quantized)
