"""Objectives of EAGLE drafters, and acceptance as the training log reckons it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_target import CONFIG, PROMPT, TOKENS, VOCABULARY, toy_images, toy_model

from models.eagle.batch import make_batch
from models.eagle.drafter import Drafter
from models.eagle.losses import (
    Weights,
    acceptance,
    chain_compression,
    draft,
    filtered,
    guided_logits,
    objective,
    token_loss,
    top_loss,
)


def test_rows_pair_features_with_the_next_token() -> None:
    features = torch.arange(PROMPT + TOKENS - 1).float().view(1, 1, -1, 1)
    codes = 100 + torch.arange(TOKENS)[None]
    batch = make_batch(features, codes, torch.tensor([PROMPT]), PROMPT, prompts=7)
    assert batch.roots == TOKENS - 1
    assert batch.ids[0].tolist() == [7] * (PROMPT - 1) + codes[0].tolist()
    # From the last prompt row, one step predicts the feature of token 0, the distribution of token 1.
    for step in (1, 3):
        assert int(batch.targets(step)[0, 0, 0]) == PROMPT - 1 + step
        assert int(batch.tokens(step)[0, 0]) == 100 + step
        assert batch.targets(step).shape[1] == batch.tokens(step).shape[1] == TOKENS - step


def test_filter_keeps_the_most_probable() -> None:
    logits = torch.tensor([0.0, 3.0, 1.0, 2.0])
    assert filtered(logits, 2).nonzero().flatten().tolist() == [1, 3]
    torch.testing.assert_close(filtered(logits, 0), logits.softmax(-1))


def test_token_losses() -> None:
    target, logits = torch.randn(5, VOCABULARY), torch.randn(5, VOCABULARY)
    p, q = target.softmax(-1), logits.softmax(-1)
    entropy = -(p * q.log()).sum(-1).mean()
    rate = 1 - 0.5 * (p - q).abs().sum(-1)  # one minus the total variation distance
    torch.testing.assert_close(token_loss(logits, target, 0.0), entropy)
    torch.testing.assert_close(token_loss(logits, target, 1.0), -rate.log().mean())
    mixed = token_loss(logits, target, 0.25)
    torch.testing.assert_close(mixed, 0.75 * entropy - 0.25 * rate.log().mean())


def test_top_loss_reads_the_most_probable_tokens() -> None:
    target, logits = torch.randn(5, VOCABULARY), torch.randn(5, VOCABULARY)
    p, log_q = target.softmax(-1), logits.log_softmax(-1)
    best = p.argsort(-1, descending=True)[:, :10]
    expected = -torch.stack([(p[i, best[i]] * log_q[i, best[i]]).sum() for i in range(5)])
    torch.testing.assert_close(top_loss(logits, target), expected.mean())
    counted = torch.tensor([True, False, True, False, False])
    torch.testing.assert_close(top_loss(logits, target, counted), expected[counted].mean())


def test_top_loss_is_part_of_the_objective() -> None:
    model, images = toy_model(), toy_images(4, 5)
    batch = make_batch(images["features"].float(), images["codes"], images["valid"], PROMPT, 0)
    drafter = Drafter(CONFIG)
    distribution = guided_logits(batch.targets(1), model.head, 2, model.guidance)
    hidden = next(draft(drafter, batch, 1))
    expected = top_loss(guided_logits(hidden, model.head, 2, model.guidance), distribution)
    weights = Weights(feature=0.0, token=0.0, top=2.0)
    total, _ = objective(drafter, batch, model.head, model.guidance, weights, 1)
    torch.testing.assert_close(total, 2 * expected)


def test_guided_objective_sees_the_guided_distributions() -> None:
    """With features that are right after guidance alone, only the guided loss reaches the entropy."""
    model, images = toy_model(), toy_images(4, 5)
    batch = make_batch(images["features"].float(), images["codes"], images["valid"], PROMPT, 0)
    distribution = guided_logits(batch.targets(1), model.head, 2, model.guidance)
    conditional = guided_logits(batch.targets(1)[0::2], model.head, 1, model.guidance)
    torch.testing.assert_close(distribution, 1.5 * conditional, atol=1e-4, rtol=1e-4)
    torch.manual_seed(1)
    drafter = Drafter(CONFIG)
    losses = {}
    for guided in (True, False):
        weights = Weights(feature=0.0, token=1.0, guided=guided)
        total, parts = objective(drafter, batch, model.head, model.guidance, weights, 2)
        assert float(total.detach()) == pytest.approx((parts[0] + 0.8 * parts[1]) / 1.8, rel=1e-5)
        losses[guided] = parts[0]
    hidden = next(draft(drafter, batch, 1))
    expected = token_loss(guided_logits(hidden, model.head, 2, model.guidance), distribution, 0.0)
    assert losses[True] == pytest.approx(float(expected.detach()), rel=1e-5)
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)


def test_acceptance_is_the_overlap_of_the_distributions() -> None:
    model, images = toy_model(), toy_images(2, 6)
    batch = make_batch(images["features"].float(), images["codes"], images["valid"], PROMPT, 0)
    torch.manual_seed(0)
    drafter = Drafter(CONFIG)
    rates, kept = acceptance(drafter, batch, model.head, model.guidance, 8, steps=2)
    assert rates.shape == kept.shape == (2, TOKENS - 1, 2)
    assert rates[:, -1, 1].isnan().all() and not kept[:, -1, 1].any()
    assert int(rates.isnan().sum()) == 2
    with torch.no_grad():
        second = list(draft(drafter, batch, 2))[1]
    root, distribution = 3, guided_logits(batch.targets(2), model.head, 2, model.guidance)
    p = filtered(distribution[1, root], 8).double()
    q = filtered(guided_logits(second, model.head, 2, model.guidance)[1, root], 8).double()
    assert float(rates[1, root, 1]) == pytest.approx(float(torch.minimum(p, q).sum()), rel=1e-5)
    token = int(images["codes"][1, root + 2])
    assert float(kept[1, root, 1]) == pytest.approx(min(1.0, float(q[token] / p[token])), rel=1e-5)


def test_chains_of_perfect_and_useless_drafts() -> None:
    roots, steps = 11, 3  # 12 tokens: one from the prompt's pass, 4 from every further one
    kept = torch.ones(2, roots, steps)
    for step in range(steps):
        kept[:, roots - step :, step] = 0
    assert chain_compression(kept) == pytest.approx(12 / 4)
    assert chain_compression(torch.zeros(2, roots, steps)) == pytest.approx(1.0)


def test_chain_compression_equals_simulated_decoding() -> None:
    rng = np.random.default_rng(8)
    roots, steps = 13, 3
    kept = rng.random((roots, steps))
    for step in range(steps):
        kept[roots - step :, step] = 0
    passes = []
    for _ in range(20000):
        root, used = 0, 1
        while root < roots:
            accepted = 0
            while accepted < steps and rng.random() < kept[root, accepted]:
                accepted += 1
            root, used = root + accepted + 1, used + 1
        passes.append(used)
    expected = (roots + 1) / np.mean(passes)
    assert chain_compression(torch.tensor(kept)[None]) == pytest.approx(expected, rel=0.02)
