"""Several candidates for the first positions of a window: every outcome of all passes, in double.

A position j of the window has candidates, the first of distribution D_j given all before, the others sampled
from D_j without those before them. Under every node of a position stand the same candidates of the
next one; behind the positions that have several, first candidates go on as a chain. A walk tests the
children of a node in order and enters the first that it accepts; the token behind its end is
committed, too. What lies behind that is renewed by the rows along first candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jacobi_process import Tokens, distribution_of_passes
from torch import Tensor


class Place(NamedTuple):
    """A draft for one position; source: the tokens whose row D is, None: the even distribution."""

    first: int
    source: Tokens | None


class State(NamedTuple):
    committed: Tokens
    window: tuple[Place, ...]


def normed(distribution: list[float]) -> list[float]:
    whole = sum(distribution)
    return [p / whole for p in distribution]


def over(distribution: list[float], other: list[float]) -> list[float]:
    return [max(p - q, 0.0) for p, q in zip(distribution, other, strict=True)]


@dataclass(frozen=True)
class PacProcess:
    targets: list[Tensor]  # targets[n], indexed by n tokens: the distribution of the next one
    slots: int  # of a window
    candidates: int
    depth: int  # of the tree with its root: positions 1 .. depth - 1 have several candidates

    @property
    def vocabulary(self) -> int:
        return self.targets[0].shape[0]

    def target(self, tokens: Tokens) -> list[float]:
        return list(map(float, self.targets[len(tokens)][tokens]))

    def draft(self, place: Place) -> list[float]:
        even = [1 / self.vocabulary] * self.vocabulary
        return even if place.source is None else self.target(place.source)

    def distribution(self) -> tuple[Tensor, float]:
        return distribution_of_passes(
            self.vocabulary, len(self.targets), State((), ()), self.one_pass
        )

    def one_pass(self, state: State) -> Iterator[tuple[State, float]]:
        slots = min(self.slots, len(self.targets) - len(state.committed) - 1)
        for window, chance in self.filled(state.window[:slots], slots):
            for lists, sampled in self.sampled(window, 0):
                for path, token, walked in self.walk(state.committed, window, lists, ()):
                    new = (*state.committed, *path, token)
                    for tail, kept in self.tail(new, state.committed, window, path, len(path) + 1):
                        yield State(new, tail), chance * sampled * walked * kept

    def filled(
        self, window: tuple[Place, ...], slots: int
    ) -> Iterator[tuple[tuple[Place, ...], float]]:
        if len(window) == slots:
            yield window, 1.0
            return
        for token in range(self.vocabulary):
            for full, chance in self.filled((*window, Place(token, None)), slots):
                yield full, chance / self.vocabulary

    def sampled(
        self, window: tuple[Place, ...], place: int
    ) -> Iterator[tuple[tuple[Tokens, ...], float]]:
        """Candidates of every position from this one on."""
        if place == len(window):
            yield (), 1.0
            return
        count = self.candidates if place < self.depth - 1 else 1
        first = window[place].first
        for candidates, chance in without_replacement(self.draft(window[place]), (first,), count):
            for rest, more in self.sampled(window, place + 1):
                yield (candidates, *rest), chance * more

    def walk(
        self, committed: Tokens, window: tuple[Place, ...], lists: tuple[Tokens, ...], path: Tokens
    ) -> Iterator[tuple[Tokens, int, float]]:
        """Accepted tokens, the one behind them, and how likely both are."""
        distribution, place, reached = self.target((*committed, *path)), len(path), 1.0
        if place < len(window) and self.has_children(lists, path):
            draft = self.draft(window[place])
            for token in lists[place]:
                if sum(draft) <= 0:
                    break
                share = normed(draft)
                accepted = min(1.0, distribution[token] / share[token])
                if accepted > 0:
                    for end, last, chance in self.walk(committed, window, lists, (*path, token)):
                        yield end, last, reached * accepted * chance
                reached *= 1 - accepted
                if reached <= 1e-18:
                    return
                distribution = normed(over(distribution, share))
                draft[token] = 0.0
        yield from ((path, token, reached * p) for token, p in enumerate(distribution) if p > 0)

    def has_children(self, lists: tuple[Tokens, ...], path: Tokens) -> bool:
        along = all(token == lists[place][0] for place, token in enumerate(path))
        return len(path) < self.depth - 1 or along

    def tail(
        self,
        new: Tokens,
        committed: Tokens,
        window: tuple[Place, ...],
        path: Tokens,
        place: int,
    ) -> Iterator[tuple[tuple[Place, ...], float]]:
        """The next window from the old position on, which is the first behind the last token."""
        if len(committed) + place >= len(self.targets) or place > len(window):
            yield (), 1.0
            return
        source = self.stale(committed, window, path, place)
        target = self.target(source)
        for token, chance in self.renewed(target, window[place] if place < len(window) else None):
            for rest, more in self.tail(new, committed, window, path, place + 1):
                yield (Place(token, source), *rest), chance * more

    def stale(
        self, committed: Tokens, window: tuple[Place, ...], path: Tokens, place: int
    ) -> Tokens:
        """What the node that tells of a position has seen."""
        firsts = tuple(each.first for each in window)
        along = path + firsts[len(path) : place]
        inside = along == firsts[:place] or place <= self.depth - 1
        return committed + (along if inside else firsts[:place])

    def renewed(self, target: list[float], old: Place | None) -> Iterator[tuple[int, float]]:
        if old is None:
            yield from ((token, p) for token, p in enumerate(target) if p > 0)
            return
        draft = self.draft(old)
        keep = min(1.0, target[old.first] / draft[old.first])
        if keep > 0:
            yield old.first, keep
        left = over(target, draft)
        if keep < 1:
            for token, p in enumerate(normed(left)):
                if p > 0:
                    yield token, (1 - keep) * p


@dataclass(frozen=True)
class ReferenceCycle:
    """The first cycle of the official code, and plain samples behind it.

    Children are tested as if their earlier siblings had been rejected, whatever became of them; the
    longest chain of accepted ones wins, then the first in depth-first order.
    """

    targets: list[Tensor]  # targets[n], indexed by n tokens: the distribution of the next one
    drafts: list[list[float]]  # of positions 1, 2, ..
    candidates: int
    depth: int  # of the tree with its root: positions 1 .. depth - 1 have several candidates
    even_behind: bool  # the token behind the last position is sampled evenly, else from the target

    def target(self, tokens: Tokens) -> list[float]:
        return list(map(float, self.targets[len(tokens)][tokens]))

    def distribution(self) -> Tensor:
        distribution = torch.zeros([len(self.targets[0])] * len(self.targets), dtype=torch.float64)
        for lists, sampled in self.sampled(0):
            for path, chance in self.longest(lists, ()):
                for token, p in enumerate(self.behind(lists, path)):
                    if p > 0:
                        self.add(distribution, (*path, token), sampled * chance * p)
        return distribution

    def add(self, distribution: Tensor, tokens: Tokens, chance: float) -> None:
        if len(tokens) >= len(self.targets):
            distribution[tokens[: len(self.targets)]] += chance
            return
        for token, p in enumerate(self.target(tokens)):
            if p > 0:
                self.add(distribution, (*tokens, token), chance * p)

    def sampled(self, place: int) -> Iterator[tuple[tuple[Tokens, ...], float]]:
        """Candidates of every position from this one on, without replacement."""
        if place == len(self.drafts):
            yield (), 1.0
            return
        count = self.candidates if place < self.depth - 1 else 1
        for candidates, chance in without_replacement(self.drafts[place], (), count):
            for rest, more in self.sampled(place + 1):
                yield (candidates, *rest), chance * more

    def children(self, lists: tuple[Tokens, ...], path: Tokens) -> Tokens:
        place = len(path)
        along = all(token == lists[n][0] for n, token in enumerate(path))
        return lists[place] if place < len(lists) and (place < self.depth - 1 or along) else ()

    def tests(self, lists: tuple[Tokens, ...], path: Tokens) -> tuple[list[float], list[float]]:
        """How likely every child is accepted, and what all of them leave of the target."""
        distribution, accepted = self.target(path), []
        draft = list(self.drafts[len(path)]) if len(path) < len(self.drafts) else []
        for token in self.children(lists, path):
            share = normed(draft)
            accepted.append(min(1.0, distribution[token] / share[token]))
            distribution = over(distribution, share)
            distribution = normed(distribution) if sum(distribution) > 0 else distribution
            draft[token] = 0.0
        return accepted, distribution

    def behind(self, lists: tuple[Tokens, ...], path: Tokens) -> list[float]:
        if self.even_behind and len(path) == len(self.drafts):
            return [1 / len(self.targets[0])] * len(self.targets[0])
        return normed(self.tests(lists, path)[1])

    def longest(self, lists: tuple[Tokens, ...], path: Tokens) -> Iterator[tuple[Tokens, float]]:
        """The chain that wins among those that begin with a path, and how likely it does."""
        ends = {path: 1.0}
        accepted, _ = self.tests(lists, path)
        for token, chance in zip(self.children(lists, path), accepted, strict=True):
            below = [(end, p * chance) for end, p in self.longest(lists, (*path, token))]
            both: dict[Tokens, float] = {}
            for best, p in ends.items():
                for end, more in [*below, (path, 1 - chance)]:
                    winner = end if len(end) > len(best) else best
                    both[winner] = both.get(winner, 0.0) + p * more
            ends = both
        yield from ((end, p) for end, p in ends.items() if p > 0)


def without_replacement(
    distribution: list[float], candidates: Tokens, count: int
) -> Iterator[tuple[Tokens, float]]:
    left = [0.0 if token in candidates else p for token, p in enumerate(distribution)]
    if len(candidates) == count or sum(left) <= 0:
        yield candidates, 1.0
        return
    for token, p in enumerate(normed(left)):
        if p > 0:
            for full, chance in without_replacement(distribution, (*candidates, token), count):
                yield full, p * chance
