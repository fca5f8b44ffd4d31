"""The demo's autoencoder: the small encoder of its codes and a decoder as MAR's has it."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from ...chameleon.vqgan import VQGANConfig
from ...demo.training.vq_model import CodeEncoder
from ...demo.training.vq_train import (
    BATCH,
    fresh_batches,
    image_loss,
    optimisers,
    psnr,
    save_state,
    validation,
)
from ...precision import mixed
from ...progress import Progress
from ..kl import LATENT_SCALE, AutoencoderKL
from .stage import Options, Stage
from .warm import start_from_codes
from .world import Latents, halved, shards, write_shard

CONFIG = VQGANConfig(ch=32, ch_mult=(1, 1, 2, 4, 4), num_res_blocks=0, z_channels=16, n_embed=0)
RATE = 0.02  # of the norm of wide convolutions of the encoder; that of the rest is a twentieth
DECODER_RATE = 0.3  # of the encoder's; it knows its images
DIVERGENCE = 1e-3  # weight of the latents' divergence from unit Gaussians, by value of an image
FILE = "kl16.ckpt"


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = CodeEncoder(2 * CONFIG.z_channels)
        self.kl = AutoencoderKL(CONFIG, encoder=False)
        start_from_codes(self.kl)

    def moments(self, rgb: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log variance of latents [B,C,h,w]."""
        with mixed(rgb.device.type):
            mean, log_variance = self.encoder(rgb).float().chunk(2, 1)
        return mean, log_variance.float().clamp(-30, 20)

    def decode(self, latents: Tensor) -> Tensor:
        with mixed(latents.device.type):
            return self.kl.decode(latents * LATENT_SCALE).float()


def by_kind(model: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    parts = ((model.encoder, rate), (model.kl, rate * DECODER_RATE))
    return [o for part, r in parts for o in optimisers(list(part.named_parameters()), r)]


def train(options: Options) -> None:
    stage = Stage("kl", Autoencoder(), options, RATE, by_kind)
    model, average, device = stage.model, stage.average, options.device
    batches, images = fresh_batches(5 + stage.number), halved(validation(32)).to(device)
    for number in stage.steps():
        parts = [next(batches) for _ in range(options.batch // BATCH)]
        rgb, weight = (halved(torch.cat(column)).to(device) for column in zip(*parts, strict=True))
        mean, log_variance = model.moments(rgb)
        latents = mean + (0.5 * log_variance).exp() * torch.randn_like(mean)
        divergence = (
            0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum() / rgb.numel()
        )
        loss = image_loss(model.decode(latents), rgb, weight, square=0.0)
        stage.update(loss + DIVERGENCE * divergence, loss, divergence)
        if number % 100 == 99:
            quality = psnr(lambda x: average.decode(average.moments(x)[0]), images)
            stage.progress.log(f"kl step {number + 1}: psnr {quality:.2f}")


def load(work: Path) -> Autoencoder:
    model = Autoencoder()
    saved = torch.load(work / "kl-training.pt", map_location="cpu", weights_only=True)
    model.load_state_dict(saved["average"])
    return model.requires_grad_(False).eval()


@torch.inference_mode()
def write_latents(work: Path, count: int) -> None:
    """Renders and encodes the shards, and writes the decoder for tokens of unit scale."""
    model = load(work)
    progress = Progress("latents", count)
    for number in range(count):
        write_shard(work, number, model.moments)
        progress.show(number + 1)
        progress.log(f"shard {number + 1} of {count}")
    latents = Latents.load(work)
    shift, spread = latents.scale()
    save_state(work / "scale.pt", {"shift": shift, "spread": spread})
    save_state(work / FILE, {"model": unit_decoder(model.kl, shift, spread)})
    noise = (latents.deviation.float().square().mean((0, 1)).sqrt() / spread).tolist()
    print(f"{len(shards(work))} shards, {len(latents.classes)} images with their mirror images")
    print("noise of tokens:", " ".join(f"{share:.3f}" for share in sorted(noise)))


def unit_decoder(kl: AutoencoderKL, shift: Tensor, spread: Tensor) -> dict[str, Tensor]:
    """Weights that decode tokens = (latents - shift) / spread as the published decoder reads tokens."""
    state = kl.state_dict()
    weight = state["post_quant_conv.weight"]
    state["post_quant_conv.bias"] = state["post_quant_conv.bias"] + weight[:, :, 0, 0] @ shift
    state["post_quant_conv.weight"] = weight * (spread * LATENT_SCALE)[:, None, None]
    return state


def scale(work: Path) -> tuple[Tensor, Tensor]:
    """Mean and deviation that tokens of unit scale had."""
    saved = torch.load(work / "scale.pt", weights_only=True)
    return saved["shift"], saved["spread"]
