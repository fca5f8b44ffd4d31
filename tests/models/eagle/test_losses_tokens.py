"""Objectives of EAGLE drafters whose prompts are tokens and whose rows of codes end."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from models.eagle.batch import Batch, make_batch
from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.eagle.losses import Weights, acceptance, draft, guided_logits, objective, token_loss

LENGTH, ROWS, COLUMNS, ROW_END, FIRST_ID, WIDTH = 6, 3, 4, 90, 10, 16


def toy_batch() -> tuple[Batch, dict[str, Tensor]]:
    """Random images with prompts of 4 tokens, and of 2 without guidance."""
    generator = torch.Generator().manual_seed(3)
    codes = torch.randint(8, (2, ROWS, COLUMNS), generator=generator)
    codes = torch.nn.functional.pad(codes, (0, 1), value=-1).flatten(1)[:, :-1]
    rows = LENGTH + codes.shape[1] - 1
    features = torch.randn(2, 2, rows, WIDTH, generator=generator)
    ids = torch.zeros(2, 2, rows, dtype=torch.int64)
    ids[..., LENGTH - 1 :] = torch.where(codes < 0, ROW_END, codes + FIRST_ID)[:, None]
    ids[:, 0, 2:5], ids[:, 1, 4] = torch.tensor([1, 2, 3]), 3
    parts = {"features": features, "codes": codes, "valid": torch.tensor([[4, 2], [4, 2]])}
    parts["ids"] = ids
    return make_batch(*[parts[k] for k in ("features", "codes", "valid")], LENGTH, ids), parts


def toy_drafter() -> Drafter:
    torch.manual_seed(4)
    return Drafter(DrafterConfig(
        hidden=WIDTH, heads=2, ffn=32, vocabulary=100, max_length=40, rotary="line", qk_norm=True,
        prompt_length=LENGTH,
    ))  # fmt: skip


def test_rows_of_prompts_of_tokens() -> None:
    batch, _ = toy_batch()
    assert batch.ids[0, 2:6].tolist()[:3] == [1, 2, 3] and int(batch.ids[1, 4]) == 3
    assert batch.ids[0, 5 + COLUMNS] == ROW_END
    assert batch.valid.tolist() == [4, 2, 4, 2]
    # Positions count from every sequence's own first id.
    assert batch.positions[0, 2:5].tolist() == [0, 1, 2]
    assert batch.positions[1, 4:7].tolist() == [0, 1, 2]
    # A row r is a root; one of an image's first four codes starts a draft that ends with the fourth.
    marks = {step: batch.drafted(step)[0].tolist() for step in (1, 2, 3, 4)}
    inside = [COLUMNS - step for step in marks]
    for (step, found), drafts in zip(marks.items(), inside, strict=True):
        row = [True] * drafts + [False] * (COLUMNS + 1 - drafts)
        assert found == (row * ROWS)[: batch.roots - step + 1]


def test_drafts_do_not_depend_on_the_longest_prompt() -> None:
    """More padding in front of all prompts changes nothing."""
    batch, parts = toy_batch()
    features, ids = (torch.nn.functional.pad(parts[name], pad) for name, pad in
                     (("features", (0, 0, 3, 0)), ("ids", (3, 0))))  # fmt: skip
    wider = make_batch(features, parts["codes"], parts["valid"], LENGTH + 3, ids)
    drafter = toy_drafter()
    for one, two in zip(draft(drafter, batch, 3), draft(drafter, wider, 3), strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("guided", [True, False])
def test_row_ends_do_not_count(guided: bool) -> None:
    """Losses are the means over the drafts that stay within a row."""
    batch, _ = toy_batch()
    drafter, head = toy_drafter(), torch.randn(8, WIDTH)
    pairs = 2 if guided else 1
    weights = Weights(feature=0.7, token=0.3, acceptance=0.5, guided=guided, decay=1.0)
    total, parts = objective(drafter, batch, head, 2.0, weights, 2)
    expected = []
    for step, hidden in enumerate(draft(drafter, batch, 2), 1):
        rows = [r for r in range(hidden.shape[1])
                  if all(batch.codes[0, k] >= 0 for k in range(r, r + step + 1))]  # fmt: skip
        hidden, target = hidden[:, rows], batch.targets(step)[:, rows]
        loss = token_loss(*(guided_logits(x, head, pairs, 2.0) for x in (hidden, target)), 0.5)
        assert parts[step - 1] == pytest.approx(float(loss.detach()), rel=1e-5)
        expected.append(0.7 * torch.nn.functional.smooth_l1_loss(hidden, target) + 0.3 * loss)
    torch.testing.assert_close(total, sum(expected) / 2)


def test_acceptance_within_rows() -> None:
    batch, _ = toy_batch()
    rates, kept = acceptance(toy_drafter(), batch, torch.randn(8, WIDTH), 2.0, 0, steps=COLUMNS)
    assert rates.shape == (2, ROWS * COLUMNS - 1, COLUMNS)
    for code in range(ROWS * COLUMNS - 1):
        left = COLUMNS - 1 - code % COLUMNS
        assert not rates[:, code, :left].isnan().any() and kept[:, code, :left].all()
        assert rates[:, code, left:].isnan().all() and not kept[:, code, left:].any()
