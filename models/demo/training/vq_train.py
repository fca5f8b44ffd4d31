"""What training of the image decoder is made of: batches, loss, optimisers, clock, measurement."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.demo.training.data import SHARD, held_out, image_shards, load_images, shard_path
from models.demo.training.muon import Muon
from models.demo.training.vq_model import DemoTokenizer, to_rgb

CHECKPOINT_SECONDS = 180.0
SUBJECT_WEIGHT = 1.5  # extra weight of the subject's pixels in the loss
NIGHT_WEIGHT = 1.8  # dark pictures have small differences
_TIME_COLUMN, _NIGHT = 2, 3


class Batches:
    """Random training pictures with their loss weights; sees shards as they appear on disk."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.rng = work, np.random.default_rng(seed)
        self.shards: list[int] = []
        self.refresh()

    def refresh(self) -> None:
        shards = image_shards(self.work)
        if shards == self.shards:
            return
        self.shards, self.images = shards, load_images(self.work, shards)
        self.cells = [np.load(shard_path(self.work, "cells", k)) for k in shards]
        self.nights = [
            np.load(shard_path(self.work, "attributes", k))[:, _TIME_COLUMN] == _NIGHT
            for k in shards
        ]

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """rgb [B, 3, 128, 128] and weights [B, 1, 128, 128]; half of the pictures are mirrored."""
        pictures, weights = [], []
        while len(pictures) < count:
            k, i = int(self.rng.integers(len(self.shards))), int(self.rng.integers(SHARD))
            if held_out(np.array(self.shards[k] * SHARD + i)):
                continue
            weight = 1 + SUBJECT_WEIGHT * self.cells[k][i].reshape(16, 16).astype(np.float32)
            weight *= NIGHT_WEIGHT if self.nights[k][i] else 1.0
            weight = weight.repeat(8, 0).repeat(8, 1)
            picture = self.images[k][i]
            if self.rng.random() < 0.5:
                picture, weight = picture[:, ::-1], weight[:, ::-1]
            pictures.append(np.ascontiguousarray(picture))
            weights.append(np.ascontiguousarray(weight))
        return to_rgb(torch.from_numpy(np.stack(pictures))), torch.from_numpy(np.stack(weights))[
            :, None
        ]


def validation(work: Path, count: int = 48) -> Tensor:
    """Held-out pictures of the first shard, rgb [count, 3, 128, 128]; at most SHARD / 50 of them."""
    images = np.load(shard_path(work, "images", 0), mmap_mode="r")
    chosen = np.flatnonzero(held_out(np.arange(SHARD)))[:count]
    return to_rgb(torch.from_numpy(images[chosen]))


def reconstruction_loss(output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Weighted L1 + L2 + half of the L1 of gradients at three scales."""
    difference = output - target
    loss = (weight * (difference.abs() + difference.square())).mean()
    for _ in range(3):
        dx = (difference[..., 1:] - difference[..., :-1]).abs() * weight[..., 1:]
        dy = (difference[..., 1:, :] - difference[..., :-1, :]).abs() * weight[..., 1:, :]
        loss = loss + 0.5 * (dx.mean() + dy.mean())
        difference, weight = F.avg_pool2d(difference, 2), F.avg_pool2d(weight, 2)
    return loss


def optimisers(
    parameters: list[tuple[str, nn.Parameter]], lr: float
) -> list[torch.optim.Optimizer]:
    """Muon for wide convolutions (relative lr), AdamW at lr / 20 for the rest."""
    wide = [p for _, p in parameters if p.ndim == 4 and min(p.shape[0], p[0].numel()) >= 16]
    chosen = {id(p) for p in wide}
    rest = [p for _, p in parameters if id(p) not in chosen]
    adam = torch.optim.AdamW(rest, lr=lr / 20, betas=(0.9, 0.98), weight_decay=0.0)
    return [Muon(wide, lr=lr), adam]


def set_rates(optimisers_: list[torch.optim.Optimizer], factor: float) -> None:
    for optimiser in optimisers_:
        for group in optimiser.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * factor


class Clock:
    """Wall time spent in a stage, across interruptions."""

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        self.budget, self.start, self.saved = budget, time.monotonic() - spent, time.monotonic()

    @property
    def spent(self) -> float:
        return time.monotonic() - self.start

    @property
    def progress(self) -> float:
        return self.spent / self.budget

    def due(self) -> bool:
        """Whether a checkpoint is due; restarts its interval."""
        if time.monotonic() - self.saved < CHECKPOINT_SECONDS:
            return False
        self.saved = time.monotonic()
        return True


def log(work: Path, text: str) -> None:
    line = f"{time.strftime('%H:%M:%S', time.gmtime())} {text}"
    print(line, flush=True)
    with (work / "vq.log").open("a") as stream:
        stream.write(line + "\n")


def save_state(path: Path, state: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.rename(path)


@torch.no_grad()
def evaluate(model: DemoTokenizer, pictures: Tensor) -> float:
    """Mean PSNR in dB of the decoded pictures."""
    squared = []
    for part in pictures.split(8):
        with torch.autocast("cpu", torch.bfloat16):
            output = model.vq.decode_code(model.encode(part)).float().clamp(-1, 1)
        squared.append(((output - part) / 2).square().mean((1, 2, 3)))
    return float((-10 * torch.log10(torch.cat(squared))).mean())


def rate(progress: float, step: int) -> float:
    """Warm-up over 40 steps, constant, then linear decay from 45 % of the budget."""
    return min(1.0, (step + 1) / 40) * float(np.clip((1.0 - progress) / 0.55, 0.02, 1.0))
