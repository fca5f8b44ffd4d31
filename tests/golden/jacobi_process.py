"""Speculative Jacobi decoding on toy distributions: every outcome of all its passes, in double precision.

A pass has rows j = 0, 1, .. for the next tokens; row j's distribution T depends on the tokens before it.
Behind row j stands a draft, sampled from D; the last row has none. A draft is kept with the
probability min(1, T / D) and gives way to a token of norm((T - D)+) otherwise. The tokens up to
the first that gave way are committed, or all; what lies behind becomes the next pass's drafts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor

Tokens = tuple[int, ...]


class Tail(Enum):
    """What becomes of drafts behind the first one that gave way."""

    fresh = "sjd"  # sampled anew
    keep = "scd"  # kept or replaced like the others; T is their distribution from now on
    keep_old_distribution = "scd_released"  # the same, but drafts that are kept keep their D


class Draft(NamedTuple):
    token: int
    source: Tokens | None  # the tokens whose row D is; None: a guess that nothing is known about


class State(NamedTuple):
    committed: Tokens
    drafts: tuple[Draft, ...]


class Committed(Protocol):
    @property
    def committed(self) -> Tokens: ...


S = TypeVar("S", bound=Committed)


def distribution_of_passes(
    vocabulary: int,
    length: int,
    begin: S,
    one_pass: Callable[[S], Iterator[tuple[S, float]]],
) -> tuple[Tensor, float]:
    """The probability of every sequence of all tokens, and the mean number of passes."""
    distribution = torch.zeros([vocabulary] * length, dtype=torch.float64)
    states = {begin: 1.0}
    passes = 0.0
    while states:
        passes += sum(states.values())
        following: defaultdict[S, float] = defaultdict(float)
        for state, mass in states.items():
            for reached, probability in one_pass(state):
                following[reached] += mass * probability
        for state in [s for s in following if len(s.committed) == length]:
            distribution[state.committed] += following.pop(state)
        states = dict(following)
    return distribution, passes


@dataclass(frozen=True)
class Process:
    targets: list[Tensor]  # targets[n], indexed by n tokens: the distribution of the next one
    window: int  # drafts of a pass
    even: bool  # D of a guess is the uniform distribution it comes from, else certainty
    tail: Tail

    @property
    def vocabulary(self) -> int:
        return self.targets[0].shape[0]

    def target(self, tokens: Tokens) -> list[float]:
        return list(map(float, self.targets[len(tokens)][tokens]))

    def draft(self, draft: Draft) -> list[float]:
        if draft.source is not None:
            return self.target(draft.source)
        if self.even:
            return [1 / self.vocabulary] * self.vocabulary
        return [float(token == draft.token) for token in range(self.vocabulary)]

    def distribution(self) -> tuple[Tensor, float]:
        return distribution_of_passes(
            self.vocabulary, len(self.targets), State((), ()), self.one_pass
        )

    def one_pass(self, state: State) -> Iterator[tuple[State, float]]:
        rows = min(self.window + 1, len(self.targets) - len(state.committed))
        for drafts, chance in self.filled(state.drafts[: rows - 1], rows - 1):
            before = [state.committed + tuple(d.token for d in drafts[:row]) for row in range(rows)]
            yield from self.renewed(state.committed, drafts, before, (), False, chance)

    def filled(
        self, drafts: tuple[Draft, ...], count: int
    ) -> Iterator[tuple[tuple[Draft, ...], float]]:
        """All ways to bring the drafts to their count by guesses."""
        if len(drafts) == count:
            yield drafts, 1.0
            return
        for token in range(self.vocabulary):
            for full, chance in self.filled((*drafts, Draft(token, None)), count):
                yield full, chance / self.vocabulary

    def renewed(
        self,
        committed: Tokens,
        drafts: tuple[Draft, ...],
        before: list[Tokens],
        tail: tuple[Draft, ...],
        stopped: bool,
        chance: float,
    ) -> Iterator[tuple[State, float]]:
        """All ends of a pass whose first rows are settled: committed, then tail once it stopped.

        before[j]: the tokens that row j of the pass has seen.
        """
        row = len(committed) + len(tail) - len(before[0])
        if row == len(before):
            yield State(committed, tail), chance
            return
        draft = drafts[row] if row < len(drafts) else None
        for token, kept, probability in self.outcomes(before[row], draft, stopped):
            reached = chance * probability
            if stopped:
                old = kept and self.tail is Tail.keep_old_distribution
                new = draft if old and draft else Draft(token, before[row])
                yield from self.renewed(committed, drafts, before, (*tail, new), True, reached)
            else:
                longer = (*committed, token)
                yield from self.renewed(longer, drafts, before, tail, not kept, reached)

    def outcomes(
        self, before: Tokens, draft: Draft | None, stopped: bool
    ) -> Iterator[tuple[int, bool, float]]:
        """Tokens that a row can give, whether it is the draft kept, and their probabilities."""
        target = self.target(before)
        if draft is None or (stopped and self.tail is Tail.fresh):
            yield from ((token, False, p) for token, p in enumerate(target) if p > 0)
            return
        distribution = self.draft(draft)
        keep = min(1.0, target[draft.token] / distribution[draft.token])
        if keep > 0:
            yield draft.token, True, keep
        left = [max(t - d, 0.0) for t, d in zip(target, distribution, strict=True)]
        if keep < 1:
            for token, p in enumerate(left):
                if p > 0:
                    yield token, False, (1 - keep) * p / sum(left)


def total_variation(distribution: Tensor, other: Tensor) -> float:
    return 0.5 * float((distribution - other).abs().sum())
