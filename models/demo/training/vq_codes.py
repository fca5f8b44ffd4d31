"""Learns the codes: encoder and codebook, together with a cheap decoder that is put away afterwards.

First the autoencoder alone, then codes on the unit sphere from k-means, which follow the encoder as
running means; codes that nothing uses move to where the encoder's outputs are far from theirs.
"""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...precision import mixed
from .data import WORK
from .vq_model import (
    CONFIG,
    CodeEncoder,
    DemoTokenizer,
    Sketcher,
    save_tokenizer,
)
from .vq_train import BATCH, Training, apply_gradients, image_loss, optimisers, rate, set_rates

RATE = 0.02
ALONE = 0.12  # share of the budget without codes
REVIVAL = 0.70  # share after which unused codes are left alone
FROZEN = 0.90  # share after which the codes stay as they are
NOISE = 0.06  # on the sphere while there are no codes
DECAY = 0.985  # of the running means
COMMIT = 0.5
DEAD = 0.03  # share of the mean use below which a code is dead
POOL = 60  # batches that k-means sees


def spherical_k_means(x: Tensor, count: int, rounds: int = 12) -> tuple[Tensor, Tensor]:
    """Unit centres [count, D] of unit vectors x [N, D], and how many belong to each."""
    centres = x[torch.randperm(len(x))[:count]].clone()
    for last in range(rounds, 0, -1):
        nearest = (x @ centres.T).argmax(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, x)
        number = torch.bincount(nearest, minlength=count)
        centres = F.normalize(sums, dim=1)
        empty = number < 2
        if last > 2 and empty.any():
            centres[empty] = x[torch.randperm(len(x))[: int(empty.sum())]]
    return centres, number.float()


class Codes:
    """The codebook while it is learnt: running sums and counts of what is nearest to each code."""

    def __init__(self, pool: Tensor, size: int) -> None:
        self.table, count = spherical_k_means(pool, size)
        self.count = count / count.sum() * BATCH * CONFIG.codebook_size / 4
        self.sums = self.table * self.count[:, None]

    def nearest(self, unit: Tensor) -> tuple[Tensor, Tensor]:
        """Codes [B * h * w] of unit [B, D, h, w], and the codes' vectors in the shape of unit."""
        flat = unit.detach().movedim(1, -1)
        codes = (flat.flatten(0, 2) @ self.table.T).argmax(-1)
        return codes, self.table[codes].view(flat.shape).movedim(-1, 1)

    def follow(self, unit: Tensor, codes: Tensor, revive: bool) -> None:
        flat, size = unit.detach().movedim(1, -1).flatten(0, 2), len(self.table)
        number = torch.bincount(codes, minlength=size).float()
        sums = torch.zeros_like(self.sums).index_add_(0, codes, flat)
        self.count.lerp_(number, 1 - DECAY)
        self.sums.lerp_(sums, 1 - DECAY)
        far = 1 - (flat * self.table[codes]).sum(1)
        self.table = F.normalize(self.sums, dim=1)
        dead = self.count < DEAD * self.count.mean()
        if revive and dead.any():
            picked = flat[torch.multinomial(far.clamp(min=1e-4), int(dead.sum()))]
            weight = 0.3 * self.count.mean()
            self.table[dead], self.count[dead], self.sums[dead] = picked, weight, picked * weight


class CodeTraining(Training):
    name = "codes"
    VALUES = ("codes", "pool")

    def __init__(self, work: Path, seed: int) -> None:
        torch.manual_seed(seed)
        self.nets = nn.ModuleDict({"encoder": CodeEncoder(), "sketcher": Sketcher()})
        self.weights = list(self.nets.parameters())
        self.codes: Codes | None = None
        self.pool: list[Tensor] = []
        optims = optimisers(list(self.nets.named_parameters()), RATE)
        super().__init__(work, {"nets": self.nets}, optims)

    def result(self) -> DemoTokenizer:
        """Encoder and codebook as a tokenizer whose decoder knows nothing yet."""
        assert self.codes is not None
        torch.manual_seed(0)
        tokenizer = DemoTokenizer()
        tokenizer.encoder.load_state_dict(self.nets["encoder"].state_dict())
        tokenizer.vq.quantize.embedding.weight.data.copy_(self.codes.table)
        return tokenizer

    def reconstruct(self, rgb: Tensor) -> Tensor:
        """Images through encoder, codes and cheap decoder."""
        with mixed("cpu"):
            z = F.normalize(self.nets["encoder"](rgb).float(), dim=1)
            z = z if self.codes is None else self.codes.nearest(z)[1]
            return self.nets["sketcher"](z)

    def update(self, rgb: Tensor, weight: Tensor, progress: float) -> float:
        """One step; the loss."""
        if self.codes is None and progress > ALONE and len(self.pool) > 4:
            self.codes = Codes(torch.cat(self.pool), CONFIG.codebook_size)
            self.pool = []
        with mixed("cpu"):
            z = self.nets["encoder"](rgb)
        unit = F.normalize(z.float(), dim=1)
        extra: Tensor | float = 0.0
        if self.codes is None:
            self.pool = [*self.pool[1 - POOL :], unit.detach().movedim(1, -1).flatten(0, 2)]
            shown = F.normalize(unit + NOISE * torch.randn_like(unit), dim=1)
        else:
            codes, hard = self.codes.nearest(unit)
            shown = unit + (hard - unit).detach()
            extra = COMMIT * (1 - (unit * hard).sum(1)).mean()
        with mixed("cpu"):
            output = self.nets["sketcher"](shown)
        loss = image_loss(output.float(), rgb, weight, square=1.0) + extra
        loss.backward()
        apply_gradients(self.weights, self.optims)
        if self.codes is not None and progress < FROZEN:
            self.codes.follow(unit, codes, self.step % 20 == 0 and progress < REVIVAL)
        self.step += 1
        return loss.item()

    def advance(self, rgb: Tensor, weight: Tensor, progress: float) -> tuple[str, float]:
        set_rates(self.optims, rate(progress, self.step))
        return self.name, self.update(rgb, weight, progress)

    def remark(self, images: Tensor) -> str:
        if self.codes is None:
            return ""
        return " used %d perplexity %.0f" % use(self.result(), images)


def use(tokenizer: DemoTokenizer, images: Tensor) -> tuple[int, float]:
    """How many codes the images use, and the perplexity of their use."""
    counts = torch.bincount(tokenizer.encode(images).flatten(), minlength=CONFIG.codebook_size)
    share = counts.double() / counts.sum()
    return int((share > 0).sum()), float(torch.special.entr(share).sum().exp())


def train_codes(
    work: Path = WORK, seconds: float = 1500.0, seed: int = 1, workers: int = 1
) -> None:
    """Writes work/codes.pt: a tokenizer with an untrained decoder."""
    work.mkdir(parents=True, exist_ok=True)
    training = CodeTraining(work, seed)
    training.run(seconds, seed, workers)
    save_tokenizer(training.result(), work / "codes.pt")
