"""Parts that the trainings share: clock, falling rate, averaged weights, checkpoints."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from ...demo.training.vq_train import Clock, apply_gradients, save_state, set_rates
from ...progress import Progress

WARM = 100  # steps of a rising rate
HOLD = 0.5  # share of the time at the full rate, which then falls to zero
REPORT = 100


@dataclass(frozen=True)
class Options:
    """Options of a training: folder of its files, device, processor time, images of a step."""

    work: Path
    device: str = "cpu"
    minutes: float = 10.0
    batch: int = 16


def adamw(model: nn.Module, rate: float) -> list[torch.optim.Optimizer]:
    return [torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.95), weight_decay=0.01)]


class Stage:
    """A training of a model, from its checkpoint if there is one; `average` is what it is for."""

    def __init__(
        self,
        name: str,
        model: nn.Module,
        options: Options,
        rate: float,
        make: Callable[[nn.Module, float], list[torch.optim.Optimizer]] = adamw,
    ) -> None:
        """make: the optimisers of a model at a rate."""
        self.name, self.options = name, options
        self.path = options.work / f"{name}-training.pt"
        self.model = model.to(options.device)
        self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.optimisers = make(self.model, rate)
        self.number, spent = 0, 0.0
        if self.path.exists():
            saved = torch.load(self.path, map_location=options.device, weights_only=True)
            self.model.load_state_dict(saved["model"])
            self.average.load_state_dict(saved["average"])
            for optimiser, state in zip(self.optimisers, saved["optimisers"], strict=True):
                optimiser.load_state_dict(state)
            self.number, spent = saved["number"], saved["spent"]
        self.clock = Clock(60 * options.minutes, spent)
        self.progress = Progress(name, self.clock.budget, spent)
        self.reported: list[Tensor] = []

    def steps(self) -> Iterator[int]:
        """Numbers of steps until the time is up; saves now and then, and at the end."""
        while (share := self.clock.progress) < 1:
            fall = max(0.0, (share - HOLD) / (1 - HOLD))
            factor = min(1.0, (self.number + 1) / WARM) * 0.5 * (1 + math.cos(math.pi * fall))
            set_rates(self.optimisers, factor)
            yield self.number
            self.progress.show(self.clock.spent)
            if self.clock.due():
                self.save()
        self.save()

    def update(self, loss: Tensor, *more: Tensor) -> None:
        """One step; the means of loss and `more` are printed now and then."""
        loss.backward()
        apply_gradients(list(self.model.parameters()), self.optimisers)
        self.number += 1
        decay = min(0.9995, self.number / (self.number + 20))
        with torch.no_grad():
            pairs = list(self.average.parameters()), list(self.model.parameters())
            torch._foreach_lerp_(*pairs, 1 - decay)
        self.reported.append(torch.stack([t.detach().float().mean().cpu() for t in (loss, *more)]))
        if self.number % REPORT == 0:
            means = " ".join(f"{float(x):.4f}" for x in torch.stack(self.reported).mean(0))
            self.progress.log(f"{self.name} step {self.number} {self.clock.spent:.0f} s: {means}")
            self.reported = []

    def save(self) -> None:
        state = {name: getattr(self, name).state_dict() for name in ("model", "average")}
        state["optimisers"] = [optimiser.state_dict() for optimiser in self.optimisers]
        save_state(self.path, {**state, "number": self.number, "spent": self.clock.spent})
