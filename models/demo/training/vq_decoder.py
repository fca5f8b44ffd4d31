"""Trains decoder and codebook rows for fixed codes; a small patch discriminator sharpens the result.

The discriminator and its weight follow VQGAN (Esser et al. 2021). Schedules follow the wall clock, so the
budget holds on a busy machine; a checkpoint is written every three minutes and continued from.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrizations import spectral_norm

from models.demo.training.data import WORK
from models.demo.training.vq_model import DemoTokenizer, load_tokenizer, save_tokenizer
from models.demo.training.vq_train import (
    Batches,
    Clock,
    evaluate,
    log,
    optimisers,
    rate,
    reconstruction_loss,
    save_state,
    set_rates,
    validation,
)

GAN_WEIGHT = 0.7  # relative to the gradient of the reconstruction loss at the last layer
GAN_START = 0.45  # share of the budget that trains without the discriminator
JUDGE_RATE = 1e-3
AVERAGE = 0.995  # decay of the running mean of the weights that is saved


def discriminator() -> nn.Sequential:
    """Judges 22-pixel patches: rgb [B, 3, h, w] -> scores [B, 1, h/4 - 2, w/4 - 2]."""
    layers: list[nn.Module] = []
    widths = (3, 32, 64, 128)
    for i, (a, b) in enumerate(zip(widths, widths[1:])):
        layers += [spectral_norm(nn.Conv2d(a, b, 4, 2 if i < 2 else 1, 1)), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, spectral_norm(nn.Conv2d(widths[-1], 1, 4, 1, 1)))


def adaptive_weight(rebuild: Tensor, fool: Tensor, last: Tensor) -> Tensor:
    """Ratio of the gradient norms of the two losses at the decoder's last layer (VQGAN, eq. 7)."""
    (a,) = torch.autograd.grad(rebuild, last, retain_graph=True)
    (b,) = torch.autograd.grad(fool, last, retain_graph=True)
    return (a.norm() / (b.norm() + 1e-4)).clamp(0, 1e3).detach()


class DecoderTraining:
    """State of the stage: decoder, its running mean, the discriminator and their optimisers."""

    def __init__(self, work: Path, seed: int) -> None:
        torch.manual_seed(seed)
        self.work, self.path = work, work / "vq-decoder-state.pt"
        self.model: DemoTokenizer = load_tokenizer(work / "vq-codes.pt").train()
        self.mean: DemoTokenizer = load_tokenizer(work / "vq-codes.pt")
        self.named = list(self.model.vq.named_parameters())
        self.judge = discriminator()
        self.optims = optimisers(self.named, 0.01)
        self.judge_optim = torch.optim.AdamW(
            self.judge.parameters(), lr=JUDGE_RATE, betas=(0.5, 0.9)
        )
        self.step, self.spent = 0, 0.0
        if self.path.exists():
            self.restore()

    def restore(self) -> None:
        state = torch.load(self.path, weights_only=False)
        self.model.load_state_dict(state["model"])
        self.mean.load_state_dict(state["mean"])
        self.judge.load_state_dict(state["judge"])
        for optimiser, saved in zip([*self.optims, self.judge_optim], state["optimisers"]):
            optimiser.load_state_dict(saved)
        self.step, self.spent = state["step"], state["spent"]

    def save(self, spent: float) -> None:
        state = {
            "model": self.model.state_dict(),
            "mean": self.mean.state_dict(),
            "judge": self.judge.state_dict(),
            "optimisers": [o.state_dict() for o in [*self.optims, self.judge_optim]],
            "step": self.step,
            "spent": spent,
        }
        save_state(self.path, state)
        save_tokenizer(self.mean, self.work / "vq.pt")

    def update(self, rgb: Tensor, weight: Tensor, gan: bool) -> tuple[float, float]:
        """One step of decoder and discriminator; the losses of both."""
        with torch.no_grad():
            codes = self.model.encode(rgb)
        with torch.autocast("cpu", torch.bfloat16):
            output = self.model.vq.decode_code(codes).float()
        loss = reconstruction_loss(output, rgb, weight)
        if gan:
            with torch.autocast("cpu", torch.bfloat16):
                fool = -self.judge(output).float().mean()
            last = self.model.vq.decoder.last_layer
            loss = loss + GAN_WEIGHT * adaptive_weight(loss, fool, last) * fool
        loss.backward()
        nn.utils.clip_grad_norm_([p for _, p in self.named], 5.0)
        for optimiser in self.optims:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        decay = min(AVERAGE, (self.step + 1) / (self.step + 20))
        with torch.no_grad():
            for slow, fast in zip(self.mean.parameters(), self.model.parameters()):
                slow.lerp_(fast, 1 - decay)
        self.step += 1
        return loss.item(), self.update_judge(rgb, output.detach()) if gan else 0.0

    def update_judge(self, rgb: Tensor, output: Tensor) -> float:
        self.judge_optim.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16):
            real, fake = self.judge(rgb).float(), self.judge(output).float()
        loss = 0.5 * (F.relu(1 - real).mean() + F.relu(1 + fake).mean())
        loss.backward()
        self.judge_optim.step()
        return loss.item()


def train_decoder(work: Path = WORK, seconds: float = 3600.0, seed: int = 2) -> None:
    """Continues from work/vq-codes.pt; keeps work/vq.pt up to date with the running mean."""
    training = DecoderTraining(work, seed)
    clock = Clock(seconds, training.spent)
    batches, pictures = Batches(work, seed + training.step), validation(work)
    total, judged = 0.0, 0.0
    while (progress := clock.progress) < 1:
        set_rates(training.optims, rate(progress, training.step))
        rgb, weight = batches.draw(4)
        a, b = training.update(rgb, weight, progress > GAN_START)
        total, judged = total + a, judged + b
        if training.step % 100 == 0:
            psnr = evaluate(training.mean, pictures)
            log(
                work,
                f"decoder step {training.step} {clock.spent:.0f} s loss {total / 100:.4f} "
                f"judge {judged / 100:.3f} psnr {psnr:.2f}",
            )
            total, judged = 0.0, 0.0
        if clock.due():
            training.save(clock.spent)
    training.save(clock.spent)
    log(work, f"decoder done: {training.step} steps psnr {evaluate(training.mean, pictures):.2f}")
