"""What the trainings of codes and decoder share: pictures, loss, optimisers, clock, measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from models.demo.render.world import render_with_cells
from models.demo.training.data import HELD_OUT, held_out, scene_of
from models.demo.training.muon import Muon
from models.demo.training.vq_model import PATCH, to_rgb

BATCH = 4
CHECKPOINT_SECONDS = 150.0
NIGHT_WEIGHT = 1.6  # dark pictures have small differences
SEEDS = 10**6  # scenes are drawn from so many


class Renderings(IterableDataset):
    """Endless batches of fresh renderings with their loss weights; half of them are mirrored."""

    def __init__(self, seed: int, batch: int = BATCH) -> None:
        self.seed, self.batch = seed, batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """rgb [B, 3, 256, 256] in [-1, 1] and weights [B, 1, 256, 256], twofold on subjects."""
        rng = np.random.default_rng([31, self.seed])
        while True:
            pictures, weights = [], []
            while len(pictures) < self.batch:
                seed = int(rng.integers(SEEDS))
                if held_out(np.array(seed)):
                    continue
                scene = scene_of(seed)
                picture, cells = render_with_cells(scene, seed)
                weight = (1 + cells.astype(np.float32)).repeat(PATCH, 0).repeat(PATCH, 1)
                weight *= NIGHT_WEIGHT if scene.time == "night" else 1.0
                way = -1 if rng.random() < 0.5 else 1
                pictures.append(np.ascontiguousarray(picture[:, ::way]))
                weights.append(np.ascontiguousarray(weight[:, ::way]))
            yield (
                to_rgb(torch.from_numpy(np.stack(pictures))),
                torch.from_numpy(np.stack(weights))[:, None],
            )


def fresh_batches(seed: int, workers: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches drawn in another process while the last one is learnt; workers 0 draws them here."""
    options: dict[str, Any] = {"prefetch_factor": 6} if workers else {}
    return iter(DataLoader(Renderings(seed), batch_size=None, num_workers=workers, **options))


def validation(count: int = 48) -> Tensor:
    """Held-out pictures, rgb [count, 3, 256, 256]."""
    seeds = range(0, HELD_OUT * count, HELD_OUT)
    return to_rgb(torch.from_numpy(np.stack([render_with_cells(scene_of(s), s)[0] for s in seeds])))


def picture_loss(output: Tensor, target: Tensor, weight: Tensor, square: float) -> Tensor:
    """Weighted L1, of which the share `square` makes room for L2, + half of the L1 of gradients at
    three scales. Without squares the decoder learns medians, which keep edges crisp."""
    d = output - target
    loss = (weight * (d.abs() * (1.5 - 0.5 * square) + square * d.square())).mean()
    for _ in range(3):
        dx = (d[..., 1:] - d[..., :-1]).abs() * weight[..., 1:]
        dy = (d[..., 1:, :] - d[..., :-1, :]).abs() * weight[..., 1:, :]
        loss = loss + 0.5 * (dx.mean() + dy.mean())
        d, weight = F.avg_pool2d(d, 2), F.avg_pool2d(weight, 2)
    return loss


def optimisers(
    parameters: list[tuple[str, nn.Parameter]], lr: float
) -> list[torch.optim.Optimizer]:
    """Muon for wide convolutions (relative lr), AdamW at lr / 20 for the rest and for queries and
    keys, because attention saturates under Muon."""
    wide = [
        p
        for name, p in parameters
        if p.ndim == 4 and min(p.shape[0], p[0].numel()) >= 16
        if ".q." not in name and ".k." not in name
    ]
    chosen = {id(p) for p in wide}
    rest = [p for _, p in parameters if id(p) not in chosen]
    adam = torch.optim.AdamW(rest, lr=lr / 20, betas=(0.9, 0.98), weight_decay=0.0)
    return [Muon(wide, lr=lr), adam]


def set_rates(optimisers_: list[torch.optim.Optimizer], factor: float) -> None:
    for optimiser in optimisers_:
        for group in optimiser.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * factor


def apply_gradients(weights: list[nn.Parameter], optimisers_: list[torch.optim.Optimizer]) -> None:
    """One clipped step of all optimisers; gradients are gone afterwards."""
    nn.utils.clip_grad_norm_(weights, 5.0)
    for optimiser in optimisers_:
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)


class Clock:
    """Processor time spent in a stage, across interruptions: a stopped or slowed process loses nothing."""

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        self.budget, self.start = budget, time.process_time() - spent
        self.saved = time.monotonic()

    @property
    def spent(self) -> float:
        return time.process_time() - self.start

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
    with (work / "train.log").open("a") as stream:
        stream.write(line + "\n")


def save_state(path: Path, state: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.rename(path)


@torch.no_grad()
def psnr(draw: Callable[[Tensor], Tensor], pictures: Tensor) -> float:
    """Mean PSNR in dB of what `draw` makes of rgb pictures."""
    squared = []
    for part in pictures.split(8):
        output = draw(part).float().clamp(-1, 1)
        squared.append(((output - part) / 2).square().mean((1, 2, 3)))
    return float((-10 * torch.log10(torch.cat(squared))).mean())


def rate(progress: float, step: int, hold: float = 0.45) -> float:
    """Warm-up over 40 steps, constant, then linear decay from `hold` of the budget."""
    decay = float(np.clip((1.0 - progress) / (1.0 - hold), 0.02, 1.0))
    return min(1.0, (step + 1) / 40) * decay
