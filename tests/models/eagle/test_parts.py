"""Objectives and acceptance of rows in parts equal the ones of all rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch
from torch import Tensor
from toy_target import CONFIG, PROMPT, TOKENS, VOCABULARY, toy_images, toy_model

from models.eagle.batch import Batch, make_batch
from models.eagle.drafter import Drafter
from models.eagle.losses import (
    AnyDrafter,
    acceptance,
    draft,
    feature_loss,
    guided,
    objective,
    per_sequence,
    token_loss,
    top_loss,
)
from models.eagle.parts import distribution_parts, row_parts, summed
from models.eagle.recipes import RECIPES, Phase
from models.eagle.train import new_drafter
from models.transformer.head import Head, TwoLayers, logits_of

IMAGES, CUTS = 2, (100, 400)  # a row has 48 logits and 72 or 144 scores

Gradients = dict[str, Tensor]


def toy_batch(row_ends: bool) -> Batch:
    images = toy_images(IMAGES, 5)
    if row_ends:
        images["codes"][:, 4::5] = -1
    names = ("features", "codes", "valid", "inner")
    features, codes, valid, inner = (images[name] for name in names)
    ids = torch.randint(VOCABULARY, features.shape[:3])
    return make_batch(features.float(), codes, valid, PROMPT, ids, inner.float())


def toy_head(layers: int) -> Head:
    head: Tensor = toy_model().head
    if layers == 1:
        return head
    torch.manual_seed(2)
    inner, outer = torch.randn(24, head.shape[1]), torch.randn(len(head), 24)
    return TwoLayers(inner / 4, torch.randn(24), outer / 4, torch.randn(len(head)))


def toy_drafter(recipe: str) -> AnyDrafter:
    class Images:
        shards = [toy_images(IMAGES, 5)]

    torch.manual_seed(3)
    return new_drafter(recipe, toy_model(), CONFIG, Images())  # type: ignore[arg-type]


def plain(drafter: AnyDrafter, batch: Batch, head: Head, phase: Phase) -> Tensor:
    """The objective by its definition."""
    weights, total = phase.weights, torch.zeros(())
    pairs = 2 if weights.guided else 1
    scales = [weights.decay**step for step in range(phase.steps)]
    for step, hidden in enumerate(draft(drafter, batch, phase.steps)):
        marks = per_sequence(batch.drafted(step + 1), 2 // pairs)
        distribution = guided(logits_of(batch.targets(step + 1), head), pairs, 2.0)
        logits = guided(drafter.guess(hidden, head), pairs, 2.0)
        loss = weights.token * token_loss(logits, distribution, weights.acceptance, marks)
        if weights.top:
            loss = loss + weights.top * top_loss(logits, distribution, marks)
        if weights.feature:
            loss = loss + weights.feature * feature_loss(hidden, batch, step)
        total = total + scales[step] * loss
    return total / sum(scales)


def gradients(drafter: AnyDrafter, loss: Tensor) -> Gradients:
    drafter.zero_grad()
    (3 * loss).backward()
    return {
        name: weight.grad.clone()
        for name, weight in drafter.named_parameters()
        if weight.grad is not None
    }


def assert_same(found: Gradients, expected: Gradients, **bounds: float) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(found[name], gradient, **bounds, msg=lambda m: f"{name}: {m}")  # noqa: B023


@pytest.fixture(params=(0, *CUTS))
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Most numbers of a part; 0: all rows are one."""
    if request.param:
        monkeypatch.setattr("models.eagle.parts.PART_NUMBERS", request.param)
    return int(request.param)


def test_rows_are_cut_into_parts(cut: int) -> None:
    parts = row_parts(TOKENS, 50)
    assert [row for part in parts for row in range(TOKENS)[part]] == [*range(TOKENS)]
    longest = max(part.stop - part.start for part in parts)
    assert longest == (min(cut // 50, TOKENS) if cut else TOKENS)
    assert len(row_parts(3, 1 << 60)) == 3


@pytest.mark.parametrize("row_ends", [False, True])
def test_parts_pair_drafts_with_their_distributions(cut: int, row_ends: bool) -> None:
    """Every row of every step comes once, beside the distribution of its token; no part has too many logits."""
    batch, steps = toy_batch(row_ends), 4
    positions = torch.arange(batch.roots)
    drafts = [(positions[: batch.roots - step] + step).expand(4, -1) for step in range(steps)]
    seen: list[list[int]] = [[] for _ in drafts]

    def distributions(features: Tensor) -> Tensor:
        assert not cut or features.shape[1] * 4 * VOCABULARY <= cut
        return features

    for step, rows, guess, distribution in distribution_parts(
        batch, drafts, VOCABULARY, distributions, lambda x, _: x
    ):
        seen[step] += range(batch.roots)[rows]
        assert torch.equal(distribution, batch.targets(1)[:, guess[0]])
    assert seen == [[*range(batch.roots - step)] for step in range(steps)]


@pytest.mark.parametrize("row_ends", [False, True])
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("recipe", RECIPES)
def test_objective_and_gradients(cut: int, recipe: str, layers: int, row_ends: bool) -> None:
    batch, head, phase = toy_batch(row_ends), toy_head(layers), RECIPES[recipe].phases[-1]
    drafter = toy_drafter(recipe)
    total, parts = objective(drafter, batch, head, 2.0, phase.weights, phase.steps)
    assert len(parts) == phase.steps
    found = gradients(drafter, total)
    expected = plain(drafter, batch, head, phase)
    torch.testing.assert_close(total, expected)
    assert_same(found, gradients(drafter, expected))


def test_mixed_precision(cut: int) -> None:
    """Products in bf16, as a machine that multiplies it computes them."""
    batch, phase, drafter = toy_batch(False), RECIPES["eagle-3"].phases[-1], toy_drafter("eagle-3")
    with torch.autocast("cpu", torch.bfloat16):
        total, _ = objective(drafter, batch, toy_head(1), 2.0, phase.weights, phase.steps)
        expected = plain(drafter, batch, toy_head(1), phase)
    found = gradients(drafter, total)
    torch.testing.assert_close(total, expected, rtol=1e-3, atol=1e-3)
    assert_same(found, gradients(drafter, expected), rtol=0.05, atol=0.02)


@pytest.mark.parametrize("row_ends", [False, True])
def test_acceptance(row_ends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    batch, drafter = toy_batch(row_ends), Drafter(CONFIG)
    arguments = (drafter, batch, toy_head(1), 2.0, 8, 5)
    expected = acceptance(*arguments)
    for numbers in CUTS:
        monkeypatch.setattr("models.eagle.parts.PART_NUMBERS", numbers)
        for one, other in zip(acceptance(*arguments), expected, strict=True):
            torch.testing.assert_close(one, other, equal_nan=True)


def test_terms_of_a_sum_are_differentiated_one_by_one() -> None:
    """No term is made before the graph of the one before it is gone."""
    rows, weight = torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True)
    unused, frozen = torch.randn(2, requires_grad=True), torch.randn(3)
    open_graphs: list[int] = []

    def kept(x: Tensor) -> Tensor:
        open_graphs.append(1)
        return x

    def given(x: Tensor) -> Tensor:
        open_graphs.pop()
        return x

    def terms(inputs: list[Tensor]) -> Iterator[Tensor]:
        for row in range(4):
            assert not open_graphs
            with torch.autograd.graph.saved_tensors_hooks(kept, given):
                term = (inputs[0][row] * weight * frozen).square().sum()
            assert open_graphs
            yield term

    history = 2 * rows
    (5 * summed(terms, [history], [weight, unused, frozen])).backward()
    found = rows.grad, weight.grad
    assert unused.grad is None
    rows.grad = weight.grad = None
    (5 * (2 * rows * weight * frozen).square().sum()).backward()
    for one, other in zip(found, (rows.grad, weight.grad), strict=True):
        torch.testing.assert_close(one, other)


def test_sums_that_nobody_differentiates() -> None:
    rows, weight = torch.randn(4, 3), torch.randn(3)

    def terms(parts: Sequence[Tensor]) -> Iterator[Tensor]:
        for row in range(4):
            yield (parts[0][row] * weight).sum()

    total = summed(terms, [rows], [weight])
    torch.testing.assert_close(total, (rows * weight).sum())
    assert not total.requires_grad
    wanted = rows.clone().requires_grad_()
    summed(terms, [wanted], [weight]).backward()
    torch.testing.assert_close(wanted.grad, weight.expand(4, 3))
