"""The official code of continuous speculative decoding, which is another loop than the paper's.

Drafts one step after the other; every few steps the target looks at them all from the state of the last
look, and each is kept or replaced where it stands. The chains add no noise in their last step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from continuous_loop import (
    Chains,
    Image,
    Network,
    RandomNumbers,
    Settings,
    chains,
    guidance_scale,
    mask_lengths,
)
from continuous_rule import Gaussian, log_ratio
from torch import Tensor

MOST_ROUNDS = 100


@dataclass
class Reference:
    """How the program runs: steps of an image, drafts between two looks, share of steps that are the
    target's, factor on the deviations of the acceptance test alone."""

    steps: int
    drafts: int
    prefill_ratio: float = 0.15
    inner: float = 42.0


@dataclass
class Verification:
    """One look of the target: rows of all images, in raster order within each."""

    places: list[Tensor]  # by image
    target: Chains
    draft: Chains
    probability: Tensor  # [rows]
    guess: Tensor
    rounds: int = 0
    out: Tensor = field(default_factory=lambda: torch.empty(0))


def probability(
    x: Tensor, target: Gaussian, draft: Gaussian, log_factor: Tensor, inner: float
) -> Tensor:
    """What is compared with a uniform number: x [N,C] -> [N]. log_factor: of the inverted variance term."""
    flat = [
        ((x.double() - g.mean.double()) / (inner * g.deviation.double())).square().sum(-1)
        for g in (target, draft)
    ]
    widths = draft.deviation.double().log().sum(-1) - target.deviation.double().log().sum(-1)
    return (0.5 * (flat[1] - flat[0]) + log_factor + widths).exp()


def replacements(
    target: Gaussian, draft: Gaussian, log_factor: Tensor,
    normals: Callable[[int], Tensor], uniforms: Callable[[int], Tensor],
) -> tuple[Tensor, int]:  # fmt: skip
    """Tokens for all rows and the rounds it took: a later success takes the place of an earlier one, rows
    without any stay zero."""
    count = len(target.mean)
    tokens, found = torch.zeros_like(target.mean), torch.zeros(count, dtype=torch.bool)
    for rounds in range(1, MOST_ROUNDS + 1):
        proposal = target.sample(normals(count))
        gain = log_factor + log_ratio(proposal, target, draft)
        chance = torch.where(gain > 0, -torch.expm1(-gain), 0.0)
        success = uniforms(count).double() < chance
        tokens[success] = proposal[success]
        found |= success
        if found.all():
            break
    return tokens, rounds


class ReferenceLoop:
    """Images that share their steps; orders as elsewhere, by image [L]."""

    def __init__(
        self, target: Network, draft: Network, orders: list[Tensor], settings: list[Settings],
        samples: list[RandomNumbers], how: Reference, classes: int,
        normals: Callable[[int], Tensor], uniforms: Callable[[int], Tensor],
        guesses: Callable[[int], Tensor],
    ) -> None:  # fmt: skip
        """normals [rows,C], uniforms [rows] and guesses [rows] are asked for in the order of use."""
        self.target, self.draft, self.how, self.classes = target, draft, how, classes
        self.orders, self.settings, self.samples = orders, settings, samples
        self.normals, self.uniforms, self.guesses = normals, uniforms, guesses
        self.images = [Image.empty(d) for d in samples]
        self.verifications: list[Verification] = []
        channels = samples[0].start.shape[1]
        kinds = (torch.float, torch.float, torch.double)
        self.kept = [[torch.zeros(len(orders[0]), channels, dtype=kind) for kind in kinds]
                     for _ in samples]  # fmt: skip

    def predict(
        self, network: Network, images: list[Image], places: list[Tensor], masked: int
    ) -> list[Chains]:
        results = []
        for settings, samples, image, rows in zip(
            self.settings, self.samples, images, places, strict=True
        ):
            count = len(samples.start)
            scale = guidance_scale(settings.cfg, settings.schedule, masked, count)
            results.append(chains(network, image, rows, scale, settings, samples, self.classes))
        return results

    @torch.inference_mode()
    def run(self) -> list[Tensor]:
        """tokens [L,C] by image."""
        count, seen, looked = len(self.orders[0]), 0, 0  # positions that are sampled, and verified
        for step, masked in enumerate(mask_lengths(count, self.how.steps)):
            last = step == self.how.steps - 1
            end = count if last else count - masked
            own = step <= self.how.prefill_ratio * self.how.steps
            places = [order[seen:end].sort().values for order in self.orders]
            found = self.predict(self.target if own else self.draft, self.images, places, masked)
            for image, kept, rows, result in zip(
                self.images, self.kept, places, found, strict=True
            ):
                image.put(rows, result.last.mean)
                parts = (result.last.mean, result.last.deviation, result.log_deviations)
                for table, part in zip(kept, parts, strict=True):
                    table[rows] = part
            seen = end
            if own:
                looked = end
            elif step % self.how.drafts == 0 or last:
                self.look(looked, end, masked)
                looked = end
        return [image.tokens for image in self.images]

    def look(self, start: int, end: int, masked: int) -> None:
        """Verifies what stands at start..end of the orders, from the state at `start`."""
        places = [order[start:end].sort().values for order in self.orders]
        before = [image.copy() for image in self.images]
        for image, rows in zip(before, places, strict=True):
            image.visible[rows] = False
        target = joined(self.predict(self.target, before, places, masked))
        parts = [
            [table[rows] for table in kept] for kept, rows in zip(self.kept, places, strict=True)
        ]
        draft = joined([Chains(Gaussian(mean, sd), sums) for mean, sd, sums in parts])
        x = torch.cat([p.tokens[rows] for p, rows in zip(self.images, places, strict=True)])
        factor = (target.log_deviations - draft.log_deviations).sum(-1)
        chance = probability(x, target.last, draft.last, factor, self.how.inner)
        done = Verification(places, target, draft, chance, self.guesses(len(x)))
        failed = ~(chance > done.guess)
        done.out = x.clone()
        if failed.any():
            tokens, done.rounds = replacements(
                target.last, draft.last, factor, self.normals, self.uniforms
            )
            done.out[failed] = tokens[failed]
        sizes = [len(rows) for rows in places]
        for image, rows, out in zip(self.images, places, done.out.split(sizes), strict=True):
            image.put(rows, out)
        self.verifications.append(done)


def joined(parts: list[Chains]) -> Chains:
    last = Gaussian(
        torch.cat([p.last.mean for p in parts]), torch.cat([p.last.deviation for p in parts])
    )
    return Chains(last, torch.cat([p.log_deviations for p in parts]))
