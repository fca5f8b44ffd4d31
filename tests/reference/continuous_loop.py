"""The loops that sample continuous tokens, one image at a time and plainly: MAR's own, and speculation.

Positions are in raster order; `order` [L] says which one is sampled k-th. A network is anything with `context`
and `denoise` of a bundle's target (models/mar/target_module.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from continuous_rule import Gaussian, accepts, log_ratio, residual
from torch import Tensor


class Network(Protocol):
    def context(self, latents: Tensor, visible: Tensor, classes: Tensor) -> Tensor: ...

    def denoise(
        self, z: Tensor, unconditional: Tensor, scale: Tensor, start: Tensor, noise: Tensor,
        temperature: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]: ...  # fmt: skip


def mask_lengths(positions: int, steps: int) -> list[int]:
    """Masked positions behind every step of MAR's cosine schedule; the last step leaves one in name only."""
    lengths, masked = [], positions
    for step in range(steps):
        share = math.cos(math.pi / 2 * (step + 1) / steps)
        masked = max(1, min(masked - 1, math.floor(positions * share)))
        lengths.append(masked)
    return lengths


def predicted(positions: int, steps: int) -> list[int]:
    """Tokens that every step samples; the last one samples what is left."""
    behind = mask_lengths(positions, steps)
    behind[-1] = 0
    return [before - after for before, after in zip([positions, *behind], behind)]


def guidance_scale(cfg: float, schedule: str, masked: int, positions: int) -> float:
    """masked: positions behind the step, at least 1."""
    return 1 + (cfg - 1) * (positions - masked) / positions if schedule == "linear" else cfg


@dataclass
class RandomNumbers:
    """Random numbers of one image by position: start [L,C], noise [L,T,C], and for speculation uniform
    [L], residual noise [L,R,C] and uniforms [L,R]."""

    start: Tensor
    noise: Tensor
    uniform: Tensor | None = None
    residual_noise: Tensor | None = None
    residual_uniforms: Tensor | None = None


@dataclass
class Settings:
    """Of one image; label is the class, or the number of classes for none."""

    label: int
    cfg: float = 1.0
    schedule: str = "linear"
    temperature: float = 1.0


@dataclass
class Chains:
    """What `denoise` gives for some positions of an image."""

    last: Gaussian
    log_deviations: Tensor

    def __getitem__(self, rows: object) -> Chains:
        return Chains(self.last[rows], self.log_deviations[rows])


@dataclass
class Image:
    """Tokens sampled so far."""

    tokens: Tensor  # [L,C]
    visible: Tensor  # bool [L]

    @classmethod
    def empty(cls, samples: RandomNumbers) -> Image:
        tokens = torch.zeros_like(samples.start)
        return cls(tokens, torch.zeros(len(tokens), dtype=torch.bool))

    def copy(self) -> Image:
        return Image(self.tokens.clone(), self.visible.clone())

    def put(self, places: Any, tokens: Tensor) -> None:
        self.tokens[places] = tokens
        self.visible[places] = True


def chains(
    network: Network, image: Image, places: Tensor, scale: float, settings: Settings,
    samples: RandomNumbers, classes: int,
) -> Chains:  # fmt: skip
    """The chains of positions `places`, all under what is visible of the image."""
    guided = settings.cfg != 1.0
    labels = torch.tensor([settings.label, classes] if guided else [settings.label])
    batch = len(labels)
    z = network.context(
        image.tokens.expand(batch, -1, -1).contiguous(),
        image.visible.expand(batch, -1).contiguous(),
        labels,
    )[:, places]
    ones = torch.ones(len(places))
    mean, deviation, sums = network.denoise(
        z[0], z[1] if guided else z[0, :0], scale * ones, samples.start[places],
        samples.noise[places], settings.temperature * ones,
    )  # fmt: skip
    return Chains(Gaussian(mean, deviation), sums)


@torch.inference_mode()
def sample_parallel(
    network: Network, order: Tensor, settings: Settings, samples: RandomNumbers, steps: int, classes: int,
    watch: Callable[[int, Image], None] = lambda step, image: None,
) -> Tensor:  # fmt: skip
    """MAR's own decoding, several tokens a step: tokens [L,C], the means of their last steps.

    watch: gets every step and the image before it.
    """
    image, done, count = Image.empty(samples), 0, len(order)
    for step, (masked, new) in enumerate(
        zip(mask_lengths(count, steps), predicted(count, steps), strict=True)
    ):
        watch(step, image)
        places = order[done : done + new].sort().values
        scale = guidance_scale(settings.cfg, settings.schedule, masked, count)
        found = chains(network, image, places, scale, settings, samples, classes)
        image.put(places, found.last.mean)
        done += new
    return image.tokens


@dataclass
class Event:
    """A verified draft token, or a bonus token, which has no draft."""

    k: int  # its number in the order
    cycle_start: int
    place: int
    target: Chains
    draft: Chains | None = None
    drafted: Tensor | None = None
    log_sigma: float = 0.0
    ratio: float = 0.0
    accepted: bool = True
    tries: int = 0
    fallback: bool = False
    out: Tensor = field(default_factory=lambda: torch.empty(0))


@dataclass
class Speculation:
    """How to speculate: rule "exact" or "paper" (with the variance term), cap of residual proposals."""

    rule: str = "exact"
    gamma: int = 4
    prefill_ratio: float = 0.05
    cap: int = 1000
    last_noise: bool = True


class Speculator:
    """One image by a target and a draft network."""

    def __init__(
        self, target: Network, draft: Network, order: Tensor, settings: Settings, samples: RandomNumbers,
        how: Speculation, classes: int,
    ) -> None:  # fmt: skip
        self.target, self.draft, self.order = target, draft, order
        self.settings, self.samples, self.how, self.classes = settings, samples, how, classes
        self.image = Image.empty(samples)
        self.events: list[Event] = []
        self.fallbacks = 0

    def chain(self, network: Network, image: Image, k: int) -> Chains:
        """The chain of the k-th token."""
        count = len(self.order)
        scale = guidance_scale(
            self.settings.cfg, self.settings.schedule, max(1, count - 1 - k), count
        )
        place = self.order[k : k + 1]
        return chains(network, image, place, scale, self.settings, self.samples, self.classes)

    def token(self, found: Chains, k: int) -> Tensor:
        noise = self.samples.noise[self.order[k : k + 1], 0]
        return found.last.sample(noise) if self.how.last_noise else found.last.mean

    @torch.inference_mode()
    def run(self) -> Tensor:
        """tokens [L,C]."""
        count = len(self.order)
        n = math.ceil(self.how.prefill_ratio * count)
        for k in range(n):
            found = self.chain(self.target, self.image, k)
            self.image.put(self.order[k], self.token(found, k)[0])
        while n < count:
            n += self.cycle(n)
        return self.image.tokens

    def cycle(self, n: int) -> int:
        """Drafts, verifies and commits; the number of tokens."""
        count = len(self.order)
        ahead = min(self.how.gamma, count - n)
        image, drafts, seen = self.image.copy(), [], []
        for k in range(n, n + ahead):
            seen.append(image.copy())
            found = self.chain(self.draft, image, k)
            token = self.token(found, k)
            drafts.append((found, token))
            image.put(self.order[k], token[0])
        for j, (found, token) in enumerate(drafts):
            event = self.verify(n, n + j, self.chain(self.target, seen[j], n + j), found, token)
            self.image.put(self.order[n + j], event.out)
            if not event.accepted:
                return j + 1
        if n + ahead == count:
            return ahead
        bonus = self.chain(self.target, self.image, n + ahead)
        out = self.token(bonus, n + ahead)[0]
        place = int(self.order[n + ahead])
        self.events.append(Event(n + ahead, n, place, bonus, out=out))
        self.image.put(place, out)
        return ahead + 1

    def verify(self, start: int, k: int, target: Chains, draft: Chains, token: Tensor) -> Event:
        place = int(self.order[k])
        sigma = (draft.log_deviations - target.log_deviations).sum(-1)
        used = sigma if self.how.rule == "paper" else torch.zeros_like(sigma)
        ratio = used + log_ratio(token, target.last, draft.last)
        event = Event(
            k, start, place, target, draft, token[0], float(sigma), float(ratio), out=token[0]
        )
        row = slice(place, place + 1)
        event.accepted = bool(accepts(self.samples.uniform[row], ratio))
        if not event.accepted:
            noise = self.samples.residual_noise[row, : self.how.cap]
            uniforms = self.samples.residual_uniforms[row, : self.how.cap]
            found = residual(target.last, draft.last, used, noise, uniforms)
            event.out, event.tries = found.token[0], int(found.tries)
            event.fallback = not bool(found.found)
            self.fallbacks += event.fallback
        self.events.append(event)
        return event
