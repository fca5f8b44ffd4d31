"""The autoencoder of MAR's latents (KL-16, Rombach et al. 2022), with the official state-dict keys."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..chameleon.vqgan import Decoder, Encoder, VQGANConfig

LATENT_SCALE = 0.2325  # tokens are latents times this


class AutoencoderKL(nn.Module):
    """Image <-> latents; without an encoder it only decodes. A VQGAN's trunks without its codebook."""

    def __init__(self, config: VQGANConfig, encoder: bool = True) -> None:
        """config.z_channels: of a latent; codes and embed_dim do not matter."""
        super().__init__()
        self.config = config
        channels = config.z_channels
        if encoder:
            self.encoder = Encoder(config, 2 * channels)
            self.quant_conv = nn.Conv2d(2 * channels, 2 * channels, 1)
        self.post_quant_conv = nn.Conv2d(channels, channels, 1)
        self.decoder = Decoder(config)

    def moments(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """rgb [B,3,H,W] in [-1,1] -> mean and log variance of its latents [B,C,h,w]."""
        mean, log_variance = self.quant_conv(self.encoder(rgb)).chunk(2, 1)
        return mean, log_variance.clamp(-30, 20)

    def encode(self, rgb: Tensor) -> Tensor:
        """The tokens of an image, without noise [B,C,h,w]."""
        return self.moments(rgb)[0] * LATENT_SCALE

    def decode(self, tokens: Tensor) -> Tensor:
        """tokens [B,C,h,w] -> rgb [B,3,H,W], nominally [-1,1], not clamped."""
        return self.decoder(self.post_quant_conv(tokens / LATENT_SCALE))


def sampled(mean: Tensor, log_variance: Tensor) -> Tensor:
    """Tokens of sampled latents, as training reads them."""
    return (mean + (0.5 * log_variance).exp() * torch.randn_like(mean)) * LATENT_SCALE
