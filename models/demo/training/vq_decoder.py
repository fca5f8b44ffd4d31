"""Trains the image decoder for fixed codes.

The levels up to 64x64 come first, with a small head that is thrown away and reconstructs the image from
them: steps cost half, and the whole decoder then starts from something that knows the images.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...precision import mixed
from .data import WORK
from .vq_model import DemoTokenizer, load_tokenizer, save_tokenizer
from .vq_train import Training, apply_gradients, image_loss, optimisers, rate, set_rates

RATE = 0.01
TRUNK_LEVELS = 3  # 16x16, 32x32 and 64x64
TRUNK = 0.22  # share of the budget for them
AVERAGE = 0.995  # decay of the running mean of the weights that is saved
CALM = 0.3  # factor on what residual branches add at the start


class DecoderTraining(Training):
    """Decoder, its running mean and the head of the first phase."""

    name = "decoder"
    VALUES = ("whole",)

    def __init__(self, work: Path, seed: int) -> None:
        torch.manual_seed(seed)
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
        self.whole = 0  # steps of the second phase
        networks = {"model": self.model, "mean": self.mean, "head": self.head}
        super().__init__(work, networks, optimisers(self.named, RATE))

    def save(self, spent: float) -> None:
        super().save(spent)
        if self.whole:
            save_tokenizer(self.mean, self.work / "vq.pt")

    def trunk(self, codes: Tensor) -> Tensor:
        """The image as the levels up to 64x64 see it."""
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

    def reconstruct(self, rgb: Tensor) -> Tensor:
        """Images through the codes and what is trained at the moment."""
        codes = self.model.encode(rgb)
        return self.decode(self.mean, codes) if self.whole else self.trunk(codes)

    def update(self, rgb: Tensor, weight: Tensor, whole: bool) -> float:
        """One step; the loss."""
        codes = self.model.encode(rgb)
        output = self.decode(self.model, codes) if whole else self.trunk(codes)
        loss = image_loss(output, rgb, weight, square=0.0)
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

    def advance(self, rgb: Tensor, weight: Tensor, progress: float) -> tuple[str, float]:
        whole = progress > TRUNK
        phase = (progress - TRUNK) / (1 - TRUNK) if whole else 0.7 * progress / TRUNK
        steps = self.whole if whole else self.step
        set_rates(self.optims, rate(phase, steps, hold=0.4 if whole else 0.0))
        return f"decoder {'whole' if whole else 'trunk'}", self.update(rgb, weight, whole)


def train_decoder(
    work: Path = WORK, seconds: float = 3000.0, seed: int = 2, workers: int = 1
) -> None:
    """Continues from work/codes.pt; keeps work/vq.pt up to date with the running mean."""
    DecoderTraining(work, seed).run(seconds, seed, workers)
