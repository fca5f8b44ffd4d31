"""Training of the demo's MAR, and what it generates."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import torch
from torch import Tensor, nn

from ...demo.training.vq_train import save_state
from ...precision import mixed
from ..chain import Chain
from ..config import MARConfig, square_shape
from ..diffusion import schedule
from ..losses import diffusion_loss
from ..network import MAR
from . import autoencoder
from .stage import Options, Stage
from .world import CLASSES, Latents

CONFIG = MARConfig(
    positions=64,
    channels=16,
    classes=CLASSES,
    buffer=4,
    encoder=square_shape(128, 2, 4),
    decoder=square_shape(128, 3, 4),
    head_depth=3,
    head_width=160,
)
# The first step leaves room for errors of the noise, the last one no more noise than the decoder overlooks.
RESPACING = "25@40-960"
FILE = "checkpoint-last.pth"
RATE = 8e-4
NO_LABEL = 0.1  # share of images whose class is hidden
LEAST_MASKED = 0.3  # share of an image's tokens; the published training begins at 0.7
REPEATS = 4  # steps of the chain that a token is learnt at


def initialise(model: MAR) -> MAR:
    """Initialises the weights as the published training does."""
    for name, weight in model.named_parameters():
        last = "adaLN" in name or "final_layer" in name
        if name.endswith("bias") or last:
            nn.init.zeros_(weight)
        elif (
            "time_embed" in name or weight.dim() != 2 or name in ("class_emb.weight", "fake_latent")
        ):
            if weight.dim() > 1:
                nn.init.normal_(weight, std=0.02)
        else:
            nn.init.xavier_uniform_(weight)
    return model


def masked_share() -> float:
    """From a Gaussian around 1 of deviation 0.25, cut to [LEAST_MASKED, 1]."""
    while not LEAST_MASKED <= (share := 1 - abs(0.25 * float(torch.randn(())))):
        pass
    return share


def random_visible(count: int, hidden: int, device: str) -> Tensor:
    """bool [count,L], False at `hidden` positions each."""
    rank = torch.rand(count, CONFIG.positions, device=device).argsort(1).argsort(1)
    return rank >= hidden


def hide_some(classes: Tensor) -> Tensor:
    """Classes, some of them replaced by none."""
    return torch.where(torch.rand(len(classes)) < NO_LABEL, CLASSES, classes)


def train(options: Options) -> None:
    stage = Stage("target", initialise(MAR(CONFIG)), options, RATE)
    latents, scale = Latents.load(options.work), autoencoder.scale(options.work)
    tables, device = schedule(""), options.device
    for _ in stage.steps():
        tokens, classes = latents.batch(options.batch, scale)
        tokens, classes = tokens.to(device), hide_some(classes).to(device)
        hidden = math.ceil(masked_share() * CONFIG.positions)
        visible = random_visible(len(tokens), hidden, device)
        with mixed(device):
            z = stage.model.context(tokens, visible, classes)
            net = stage.model.diffloss.net
            loss = diffusion_loss(net, tables, tokens[~visible], z[~visible], REPEATS)
        stage.update(loss)
    write_checkpoint(options.work / FILE, stage)


def write_checkpoint(path: Path, stage: Stage) -> None:
    """In the published form."""
    settings = argparse.Namespace(num_sampling_steps=RESPACING, class_num=CLASSES)
    save_state(
        path, {"model_ema": stage.average.state_dict(), "epoch": stage.number, "args": settings}
    )


def load(path: Path, config: MARConfig, device: str) -> MAR:
    with torch.serialization.safe_globals([argparse.Namespace]):
        saved = torch.load(path, map_location=device, weights_only=True)
    model = MAR(config).to(device)
    model.load_state_dict(saved["model_ema"])
    return model.requires_grad_(False).eval()


@torch.inference_mode()
def generate(model: MAR, classes: Tensor, steps: int) -> Tensor:
    """Tokens [B,L,C] of images, by MAR's own decoding, with noise in the last step of each chain."""
    count, positions, device = len(classes), CONFIG.positions, classes.device
    chain = Chain(schedule(RESPACING), device)
    tokens = torch.zeros(count, positions, CONFIG.channels, device=device)
    rank = torch.rand(count, positions, device=device).argsort(1).argsort(1)
    before = positions
    for step in range(steps):
        share = math.cos(math.pi / 2 * (step + 1) / steps)
        after = 0 if step == steps - 1 else max(1, min(before - 1, math.floor(positions * share)))
        z = model.context(tokens, rank >= before, classes)
        new = (rank < before) & (rank >= after)
        start = torch.randn(int(new.sum()), CONFIG.channels, device=device)
        noise = torch.randn(len(start), len(chain.steps), CONFIG.channels, device=device)
        found = chain.run(model.diffloss.net, z[new], start, noise)
        tokens[new] = found.means[0] + found.log_deviations[0].exp() * noise[:, 0]
        before = after
    return tokens
