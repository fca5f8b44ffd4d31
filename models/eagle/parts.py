"""Work on rows of logits and scores in parts, so that memory holds those of one part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from models.eagle.losses import Batch

PART_NUMBERS = 1 << 25  # most logits or scores of a part: 128 MB in fp32

Terms = Callable[[Sequence[Tensor]], Iterator[Tensor]]


def row_parts(rows: int, numbers: int) -> list[slice]:
    """Rows that have so many numbers each, in parts; one if they are few."""
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


def step_parts(laws: slice, steps: int) -> Iterator[tuple[int, slice, slice]]:
    """The steps from 0, whose row r has the law of row r + step, of a part of the laws' rows.

    Yields the step, its rows, and where their laws are in the part.
    """
    for step in range(min(steps, laws.stop)):
        rows = slice(max(laws.start - step, 0), laws.stop - step)
        yield step, rows, slice(max(step - laws.start, 0), None)


def law_parts(
    batch: Batch, drafts: Sequence[Tensor], codes: int, laws: Callable[[Tensor], Tensor],
    guess: Callable[[Tensor, int], Tensor],
) -> Iterator[tuple[int, slice, Tensor, Tensor]]:  # fmt: skip
    """Steps from 0 and their rows, in parts: what `guess` makes of the drafts of a step there, and `laws` of
    the target's features; both of as many codes."""
    target = batch.targets(1)
    for part in row_parts(batch.roots, len(target) * codes):
        with torch.no_grad():
            law = laws(target[:, part])
        for step, rows, own in step_parts(part, len(drafts)):
            yield step, rows, guess(drafts[step][:, rows], step), law[:, own]


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
