"""Works on rows of logits and scores in parts, so that memory holds one part at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from .batch import Batch

PART_NUMBERS = 1 << 25  # most logits or scores of a part: 128 MB in fp32

Terms = Callable[[Sequence[Tensor]], Iterator[Tensor]]


def row_parts(rows: int, numbers: int) -> list[slice]:
    """Splits rows of `numbers` numbers each into parts; one if they are few."""
    size = max(1, PART_NUMBERS // numbers)
    return [slice(first, min(first + size, rows)) for first in range(0, rows, size)]


def recomputed(
    function: Callable[..., Tensor],
    parts: list[slice],
    arguments: Callable[[slice], tuple[Any, ...]],
) -> Tensor:
    """Rows [..,R,D] that a function makes of its arguments for them, in parts.

    Where there are several, each is computed again for its gradients instead of being kept.
    """
    if len(parts) == 1:
        return function(*arguments(parts[0]))
    options = {"use_reentrant": False, "preserve_rng_state": False}
    return torch.cat([checkpoint(function, *arguments(rows), **options) for rows in parts], -2)


def step_parts(distributions: slice, steps: int) -> Iterator[tuple[int, slice, slice]]:
    """Splits a part of the distributions' rows by step from 0; row r of a step has the
    distribution of row r + step.

    Yields the step, its rows, and where their distributions are in the part.
    """
    for step in range(min(steps, distributions.stop)):
        rows = slice(max(distributions.start - step, 0), distributions.stop - step)
        yield step, rows, slice(max(step - distributions.start, 0), None)


def distribution_parts(
    batch: Batch,
    drafts: Sequence[Tensor],
    codes: int,
    distributions: Callable[[Tensor], Tensor],
    guess: Callable[[Tensor, int], Tensor],
) -> Iterator[tuple[int, slice, Tensor, Tensor]]:
    """Yields in parts a step from 0, its rows, what `guess` makes of the step's drafts there, and what
    `distributions` makes of the target's features."""
    target = batch.targets(1)
    for part in row_parts(batch.roots, len(target) * codes):
        with torch.no_grad():
            distribution = distributions(target[:, part])
        for step, rows, own in step_parts(part, len(drafts)):
            yield step, rows, guess(drafts[step][:, rows], step), distribution[:, own]


def summed(terms: Terms, rows: Sequence[Tensor], weights: Iterable[Tensor]) -> Tensor:
    """The sum of scalars that `terms` makes of rows and weights; memory holds the graph of one.

    Every term is differentiated before the next one is made, so nothing is computed twice.
    """
    total: Tensor = Summed.apply(terms, len(rows), *rows, *weights)
    return total


class Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Terms, count: int, *inputs: Tensor) -> Tensor:
        # The terms' graphs end at the rows, and do not reach what those were made of.
        rows = [x.detach().requires_grad_(x.requires_grad) for x in inputs[:count]]
        inputs = (*rows, *inputs[count:])
        wanted = [i for i, x in enumerate(inputs) if x.requires_grad]
        gradients: list[Tensor | None] = [None] * len(inputs)
        total = torch.zeros(())
        with torch.enable_grad():
            for term in terms(rows):
                total += term.detach()
                if not term.requires_grad:  # a loss that is only looked at
                    continue
                with torch.autocast(term.device.type, enabled=False):
                    more = torch.autograd.grad(term, [inputs[i] for i in wanted], allow_unused=True)
                for i, gradient in zip(wanted, more, strict=True):
                    gradients[i] = added(gradients[i], gradient)
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, factor: Tensor) -> tuple[Tensor | None, ...]:
        return None, None, *(g if g is None else factor * g for g in ctx.saved_tensors)


def added(one: Tensor | None, other: Tensor | None) -> Tensor | None:
    """None is zero."""
    return other if one is None else one if other is None else one + other
