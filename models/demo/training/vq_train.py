"""Parts that the trainings of codes and decoder share: images, loss, optimisers, clock, loop."""

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

from ...progress import Progress
from ..render.world import render_with_cells
from .data import HELD_OUT, held_out, scene_of
from .muon import Muon
from .vq_model import PATCH, to_rgb

BATCH = 4
CHECKPOINT_SECONDS = 150.0
NIGHT_WEIGHT = 1.6  # dark images have small differences
SEEDS = 10**6  # of scenes


class Renderings(IterableDataset):
    """Endless batches of fresh renderings with their loss weights; half of them are mirrored."""

    def __init__(self, seed: int, batch: int = BATCH) -> None:
        self.seed, self.batch = seed, batch

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        """rgb [B, 3, 256, 256] in [-1, 1] and weights [B, 1, 256, 256], twofold on subjects."""
        rng = np.random.default_rng([31, self.seed])
        while True:
            images, weights = [], []
            while len(images) < self.batch:
                seed = int(rng.integers(SEEDS))
                if held_out(np.array(seed)):
                    continue
                scene = scene_of(seed)
                image, cells = render_with_cells(scene, seed)
                weight = (1 + cells.astype(np.float32)).repeat(PATCH, 0).repeat(PATCH, 1)
                weight *= NIGHT_WEIGHT if scene.time == "night" else 1.0
                way = -1 if rng.random() < 0.5 else 1
                images.append(np.ascontiguousarray(image[:, ::way]))
                weights.append(np.ascontiguousarray(weight[:, ::way]))
            yield (
                to_rgb(torch.from_numpy(np.stack(images))),
                torch.from_numpy(np.stack(weights))[:, None],
            )


def fresh_batches(seed: int, workers: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
    """Batches made in another process while the last one is learnt; workers 0 makes them here."""
    options: dict[str, Any] = {"prefetch_factor": 6} if workers else {}
    return iter(DataLoader(Renderings(seed), batch_size=None, num_workers=workers, **options))


def validation(count: int = 48) -> Tensor:
    """Held-out images, rgb [count, 3, 256, 256]."""
    seeds = range(0, HELD_OUT * count, HELD_OUT)
    return to_rgb(torch.from_numpy(np.stack([render_with_cells(scene_of(s), s)[0] for s in seeds])))


def image_loss(output: Tensor, target: Tensor, weight: Tensor, square: float) -> Tensor:
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


def log(work: Path, text: str, progress: Progress) -> None:
    line = f"{time.strftime('%H:%M:%S', time.gmtime())} {text}"
    progress.log(line)
    with (work / "train.log").open("a") as stream:
        stream.write(line + "\n")


def save_state(path: Path, state: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.rename(path)


@torch.no_grad()
def psnr(reconstruct: Callable[[Tensor], Tensor], images: Tensor) -> float:
    """Mean PSNR in dB of what `reconstruct` makes of rgb images."""
    squared = []
    for part in images.split(8):
        output = reconstruct(part).float().clamp(-1, 1)
        squared.append(((output - part) / 2).square().mean((1, 2, 3)))
    return float((-10 * torch.log10(torch.cat(squared))).mean())


def rate(progress: float, step: int, hold: float = 0.45) -> float:
    """Warm-up over 40 steps, constant, then linear decay from `hold` of the budget."""
    decay = float(np.clip((1.0 - progress) / (1.0 - hold), 0.02, 1.0))
    return min(1.0, (step + 1) / 40) * decay


class Training:
    """A stage of the tokenizer's training; it continues from the state in its work folder."""

    name = ""
    REPORT = 100  # steps between two lines of the log
    VALUES: tuple[str, ...] = ()  # attributes that the state holds beside networks and optimisers

    def __init__(
        self, work: Path, networks: dict[str, nn.Module], optims: list[torch.optim.Optimizer]
    ) -> None:
        self.work, self.path = work, work / f"{self.name}-state.pt"
        self.networks, self.optims = networks, optims
        self.step, self.spent = 0, 0.0
        if self.path.exists():
            self.restore()

    def restore(self) -> None:
        state = torch.load(self.path, weights_only=False)
        for name, network in self.networks.items():
            network.load_state_dict(state[name])
        for optimiser, saved in zip(self.optims, state["optimisers"]):
            optimiser.load_state_dict(saved)
        for name in (*self.VALUES, "step", "spent"):
            setattr(self, name, state[name])

    def save(self, spent: float) -> None:
        state = {name: getattr(self, name) for name in (*self.VALUES, "step")}
        state |= {name: network.state_dict() for name, network in self.networks.items()}
        state |= {"optimisers": [o.state_dict() for o in self.optims], "spent": spent}
        save_state(self.path, state)

    def reconstruct(self, rgb: Tensor) -> Tensor:
        """Images as what is trained at the moment shows them."""
        raise NotImplementedError

    def batches(self, seed: int, workers: int) -> Iterator[tuple[Tensor, Tensor]]:
        """What `advance` takes, without end."""
        return fresh_batches(seed, workers)

    def advance(self, rgb: Tensor, weight: Tensor, progress: float) -> tuple[str, float]:
        """One step at this share of the budget: its name in the log and the loss."""
        raise NotImplementedError

    def remark(self, images: Tensor) -> str:
        """Appended to a line of the log."""
        return ""

    def run(self, seconds: float, seed: int, workers: int) -> None:
        """Trains until the budget is spent."""
        clock = Clock(seconds, self.spent)
        batches, images = self.batches(seed + self.step, workers), validation()
        total, progress = 0.0, Progress(self.name, clock.budget, self.spent)
        while (share := clock.progress) < 1:
            name, loss = self.advance(*next(batches), share)
            total += loss
            progress.show(clock.spent)
            if self.step % self.REPORT == 0:
                text = f"loss {total / self.REPORT:.4f} psnr {psnr(self.reconstruct, images):.2f}"
                text += self.remark(images)
                log(self.work, f"{name} step {self.step} {clock.spent:.0f} s {text}", progress)
                total = 0.0
            if clock.due():
                self.save(clock.spent)
        self.save(clock.spent)
        quality = f"psnr {psnr(self.reconstruct, images):.2f}"
        log(self.work, f"{self.name} done: {self.step} steps {quality}", progress)
