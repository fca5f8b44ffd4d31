"""Recipes of training: objectives and how long each is trained on, published ones and our own."""

from __future__ import annotations

from dataclasses import dataclass, replace

from .losses import Weights

PUBLISHED_NOISE = 0.2  # times 512 / rows, as the published training scales it


@dataclass
class Phase:
    """A part of a schedule: its share of the time, the drafted steps trained on, the objective."""

    share: float
    steps: int
    weights: Weights
    noise: float = 0.0  # on the target's features, as a share of the published noise


@dataclass
class Options:
    """How to train; `minutes` is the whole schedule's, resumed runs included.

    They are the processor's, per thread: a busy machine trains later, but no worse.
    """

    phases: tuple[Phase, ...]
    minutes: float = 30.0
    batch: int = 8
    rate: float = 3e-3
    muon_rate: float = 2e-2
    train_embedding: bool = True
    warm_up: int = 50
    save_minutes: float = 3.0
    seed: int = 0

    def phase(self, share: float) -> Phase:
        """The phase at this share of the whole time."""
        for phase in self.phases:
            if share < phase.share:
                return phase
            share -= phase.share
        return self.phases[-1]


PUBLISHED = Phase(1.0, 1, Weights(1.0, 0.1, guided=False), noise=1.0)
GUIDED = replace(PUBLISHED, weights=Weights(1.0, 0.1))
MULTI_STEP = Phase(0.5, 4, Weights(4.0, 1.0, 0.9))
HASS = replace(PUBLISHED, steps=3, weights=Weights(1.0, 0.1, decay=1.0, top=1.0))
EAGLE_3 = Phase(1.0, 4, Weights(feature=0.0, token=1.0, acceptance=0.9))
RECIPES: dict[str, Options] = {
    "published": Options((PUBLISHED,), train_embedding=False),
    "guided": Options((GUIDED,)),
    "hass": Options((HASS,), train_embedding=False),
    "eagle-3": Options((EAGLE_3,)),
    "multi-step": Options((replace(GUIDED, share=0.5), MULTI_STEP)),
}
