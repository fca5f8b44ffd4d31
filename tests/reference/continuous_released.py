"""The released program of continuous speculative decoding, which is another loop than the published method's.

Drafts one step after the other; every few steps the target looks at them all from the state of the last such
look, and each is kept or replaced where it stands. The chains add no noise in their last step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from continuous_loop import (
    Chains,
    Draws,
    Network,
    Picture,
    Settings,
    chains,
    guidance_scale,
    mask_lengths,
)
from continuous_rule import Gaussian, log_ratio
from torch import Tensor

MOST_ROUNDS = 100


@dataclass
class Released:
    """How the program runs: steps of a picture, drafts between two looks, share of steps that are the
    target's, factor on the deviations of the acceptance test alone."""

    steps: int
    drafts: int
    prefill_ratio: float = 0.15
    inner: float = 42.0


@dataclass
class Verification:
    """One look of the target: rows of all pictures, in raster order within each."""

    places: list[Tensor]  # by picture
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


class ReleasedLoop:
    """Pictures that share their steps; orders as elsewhere, by picture [L]."""

    def __init__(
        self, target: Network, draft: Network, orders: list[Tensor], settings: list[Settings],
        draws: list[Draws], how: Released, classes: int,
        normals: Callable[[int], Tensor], uniforms: Callable[[int], Tensor],
        guesses: Callable[[int], Tensor],
    ) -> None:  # fmt: skip
        """normals [rows,C], uniforms [rows] and guesses [rows] are asked for in the order of use."""
        self.target, self.draft, self.how, self.classes = target, draft, how, classes
        self.orders, self.settings, self.draws = orders, settings, draws
        self.normals, self.uniforms, self.guesses = normals, uniforms, guesses
        self.pictures = [Picture.empty(d) for d in draws]
        self.verifications: list[Verification] = []
        channels = draws[0].start.shape[1]
        kinds = (torch.float, torch.float, torch.double)
        self.kept = [[torch.zeros(len(orders[0]), channels, dtype=kind) for kind in kinds]
                     for _ in draws]  # fmt: skip

    def predict(
        self, network: Network, pictures: list[Picture], places: list[Tensor], masked: int
    ) -> list[Chains]:
        results = []
        for settings, draws, picture, rows in zip(
            self.settings, self.draws, pictures, places, strict=True
        ):
            count = len(draws.start)
            scale = guidance_scale(settings.cfg, settings.schedule, masked, count)
            results.append(chains(network, picture, rows, scale, settings, draws, self.classes))
        return results

    @torch.inference_mode()
    def run(self) -> list[Tensor]:
        """tokens [L,C] by picture."""
        count, seen, looked = len(self.orders[0]), 0, 0  # positions that are drawn, and verified
        for step, masked in enumerate(mask_lengths(count, self.how.steps)):
            last = step == self.how.steps - 1
            end = count if last else count - masked
            own = step <= self.how.prefill_ratio * self.how.steps
            places = [order[seen:end].sort().values for order in self.orders]
            found = self.predict(self.target if own else self.draft, self.pictures, places, masked)
            for picture, kept, rows, result in zip(
                self.pictures, self.kept, places, found, strict=True
            ):
                picture.put(rows, result.last.mean)
                parts = (result.last.mean, result.last.deviation, result.log_deviations)
                for table, part in zip(kept, parts, strict=True):
                    table[rows] = part
            seen = end
            if own:
                looked = end
            elif step % self.how.drafts == 0 or last:
                self.look(looked, end, masked)
                looked = end
        return [picture.tokens for picture in self.pictures]

    def look(self, start: int, end: int, masked: int) -> None:
        """Verifies what stands at start..end of the orders, from the state at `start`."""
        places = [order[start:end].sort().values for order in self.orders]
        before = [picture.copy() for picture in self.pictures]
        for picture, rows in zip(before, places, strict=True):
            picture.visible[rows] = False
        target = joined(self.predict(self.target, before, places, masked))
        parts = [
            [table[rows] for table in kept] for kept, rows in zip(self.kept, places, strict=True)
        ]
        draft = joined([Chains(Gaussian(mean, sd), sums) for mean, sd, sums in parts])
        x = torch.cat([p.tokens[rows] for p, rows in zip(self.pictures, places, strict=True)])
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
        for picture, rows, out in zip(self.pictures, places, done.out.split(sizes), strict=True):
            picture.put(rows, out)
        self.verifications.append(done)


def joined(parts: list[Chains]) -> Chains:
    last = Gaussian(
        torch.cat([p.last.mean for p in parts]), torch.cat([p.last.deviation for p in parts])
    )
    return Chains(last, torch.cat([p.log_deviations for p in parts]))
