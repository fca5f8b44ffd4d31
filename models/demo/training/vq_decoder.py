"""Trains the image decoder for fixed codes.

The levels up to 64x64 come first, with a small head that is thrown away and draws the picture from
them: steps cost half, and the whole decoder then starts from something that knows the pictures.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.demo.training.data import WORK
from models.demo.training.vq_model import DemoTokenizer, load_tokenizer, save_tokenizer
from models.demo.training.vq_train import (
    Clock,
    apply_gradients,
    fresh_batches,
    log,
    optimisers,
    picture_loss,
    psnr,
    rate,
    save_state,
    set_rates,
    validation,
)
from models.precision import mixed

RATE = 0.01
TRUNK_LEVELS = 3  # 16x16, 32x32 and 64x64
TRUNK = 0.22  # share of the budget for them
AVERAGE = 0.995  # decay of the running mean of the weights that is saved
CALM = 0.3  # factor on what residual branches add at the start


class DecoderTraining:
    """State of the stage: decoder, its running mean and the head of the first phase."""

    def __init__(self, work: Path, seed: int) -> None:
        torch.manual_seed(seed)
        self.work, self.path = work, work / "decoder-state.pt"
        self.model: DemoTokenizer = load_tokenizer(work / "codes.pt").train()
        decoder = self.model.vq.decoder
        for module in decoder.modules():
            if hasattr(module, "conv2"):
                module.conv2.weight.data.mul_(CALM)
        width = decoder.conv_blocks[TRUNK_LEVELS - 1].res[-1].conv2.out_channels
        self.head = nn.Sequential(
            nn.GroupNorm(32, width), nn.SiLU(), nn.Conv2d(width, 48, 3, padding=1)
        )
        self.model.encoder.requires_grad_(False)
        self.model.vq.quantize.requires_grad_(False)
        self.mean: DemoTokenizer = load_tokenizer(work / "codes.pt")
        learnt = [("vq." + n, p) for n, p in self.model.vq.named_parameters() if p.requires_grad]
        self.named = learnt + [("head." + n, p) for n, p in self.head.named_parameters()]
        self.weights = [p for _, p in self.named]
        self.optims = optimisers(self.named, RATE)
        self.step, self.whole, self.spent = 0, 0, 0.0  # whole: steps of the second phase
        if self.path.exists():
            self.restore()

    def restore(self) -> None:
        state = torch.load(self.path, weights_only=False)
        for name in ("model", "mean", "head"):
            getattr(self, name).load_state_dict(state[name])
        for optimiser, saved in zip(self.optims, state["optimisers"]):
            optimiser.load_state_dict(saved)
        self.step, self.whole, self.spent = state["step"], state["whole"], state["spent"]

    def save(self, spent: float) -> None:
        state = {name: getattr(self, name).state_dict() for name in ("model", "mean", "head")}
        state |= {"step": self.step, "whole": self.whole, "spent": spent}
        state["optimisers"] = [o.state_dict() for o in self.optims]
        save_state(self.path, state)
        if self.whole:
            save_tokenizer(self.mean, self.work / "vq.pt")

    def trunk(self, codes: Tensor) -> Tensor:
        """The picture as the levels up to 64x64 see it."""
        vq = self.model.vq
        with mixed("cpu"):
            x = vq.decoder.conv_in(vq.post_quant_conv(vq.quantize.lookup(codes)))
            for block in vq.decoder.mid:
                x = block(x)
            for level in vq.decoder.conv_blocks[: TRUNK_LEVELS - 1]:
                for block in level.blocks():
                    x = block(x)
            for block in vq.decoder.conv_blocks[TRUNK_LEVELS - 1].res:
                x = block(x)
            return F.pixel_shuffle(self.head(x), 4).float()

    @staticmethod
    def decode(model: DemoTokenizer, codes: Tensor) -> Tensor:
        with mixed("cpu"):
            return model.vq.decode_code(codes).float()

    def draw(self, rgb: Tensor) -> Tensor:
        """Pictures through the codes and what is trained at the moment."""
        codes = self.model.encode(rgb)
        return self.decode(self.mean, codes) if self.whole else self.trunk(codes)

    def update(self, rgb: Tensor, weight: Tensor, whole: bool) -> float:
        """One step; the loss."""
        codes = self.model.encode(rgb)
        output = self.decode(self.model, codes) if whole else self.trunk(codes)
        loss = picture_loss(output, rgb, weight, square=0.0)
        loss.backward()
        apply_gradients(self.weights, self.optims)
        self.step += 1
        self.whole += whole
        decay = min(AVERAGE, self.whole / (self.whole + 20))
        with torch.no_grad():
            torch._foreach_lerp_(
                list(self.mean.vq.parameters()), list(self.model.vq.parameters()), 1 - decay
            )
        return loss.item()


def train_decoder(
    work: Path = WORK, seconds: float = 3000.0, seed: int = 2, workers: int = 1
) -> None:
    """Continues from work/codes.pt; keeps work/vq.pt up to date with the running mean."""
    training = DecoderTraining(work, seed)
    clock = Clock(seconds, training.spent)
    batches, pictures = fresh_batches(seed + training.step, workers), validation()
    total = 0.0
    while (progress := clock.progress) < 1:
        whole = progress > TRUNK
        phase = (progress - TRUNK) / (1 - TRUNK) if whole else 0.7 * progress / TRUNK
        steps = training.whole if whole else training.step
        set_rates(training.optims, rate(phase, steps, hold=0.4 if whole else 0.0))
        total += training.update(*next(batches), whole)
        if training.step % 100 == 0:
            name = "whole" if whole else "trunk"
            log(
                work,
                f"decoder {name} step {training.step} {clock.spent:.0f} s loss {total / 100:.4f} "
                f"psnr {psnr(training.draw, pictures):.2f}",
            )
            total = 0.0
        if clock.due():
            training.save(clock.spent)
    training.save(clock.spent)
    log(work, f"decoder done: {training.step} steps psnr {psnr(training.draw, pictures):.2f}")
