"""Objectives of a drafter, and what lossless verification would accept of its drafts.

Shapes: B images, P rows of an image's guidance (conditional, unconditional; 1 without), S = B * P
sequences, L rows of features, F their width, V tokens of the head, M tokens of an image: codes and the
ends of its rows. A root r is a row from which a draft starts: the last prompt row or a token of the
image. Step s of its draft predicts the feature of row r + s and with it the distribution of token r + s + 1;
it reads the embedding of token r + s, the one the target generated. Drafts stop at the end of an image row,
which the image's shape dictates: only steps count that have codes alone before and behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ..transformer.head import Head, codes_of, logits_of
from .batch import BEHIND, NO_CODE, Batch, causal_bias
from .drafter import Context, Drafter, KeysValues
from .eagle3 import Eagle3Drafter
from .parts import distribution_parts, summed

AnyDrafter = Drafter | Eagle3Drafter


def draft(drafter: AnyDrafter, batch: Batch, steps: int, noise: float = 0.0) -> Iterator[Tensor]:
    """Predicted features [S, roots - s + 1, F] of every root for s = 1 .. steps.

    From step 2 on a draft reads its own predictions; it attends to the rows of the target's features up
    to its root and to its own rows, as it will when drafting (HASS, Zhang et al. 2024; training-time
    test of EAGLE-3, Li et al. 2025). noise: width of the uniform noise on the target's features.
    """
    embeddings = drafter.embed_tokens(batch.ids)
    features, last = drafter.read(batch), batch.features.shape[1] - 1
    if noise:
        features = features + noise * (torch.rand_like(features) - 0.5)
    positions = batch.positions
    bias = causal_bias(batch.valid, batch.prompt_length, last)
    hidden, cached = drafter(
        embeddings[:, :last], features[:, :last], positions[..., :last], Context(bias)
    )
    root = batch.prompt_length - 1
    hidden, bias = hidden[:, root:], bias[:, :, root:]
    chain: list[KeysValues] = []
    yield hidden
    for step in range(2, steps + 1):
        rows = batch.roots - step + 1
        bias = bias[:, :, :rows]
        chain = [(k[:, :, :rows], v[:, :, :rows]) for k, v in chain]
        part = slice(root + step - 1, root + step - 1 + rows)
        hidden, own = drafter(
            embeddings[:, part],
            hidden[:, :rows],
            positions[..., part],
            Context(bias, cached, chain),
        )
        chain.append(own)
        yield hidden


def guided_logits(hidden: Tensor, head: Head, pairs: int, guidance: float) -> Tensor:
    """Logits fp32 [B,R,V] of features [S,R,F] through the target's head, guided if P is 2."""
    return guided(logits_of(hidden, head), pairs, guidance)


def guided(logits: Tensor, pairs: int, guidance: float) -> Tensor:
    """Logits [S,R,V] of every sequence as fp32 [B,R,V] of the images."""
    logits = logits.float()
    if pairs == 1:
        return logits
    conditional, unconditional = logits[0::2], logits[1::2]
    return unconditional + guidance * (conditional - unconditional)


def filtered(logits: Tensor, top_k: int) -> Tensor:
    """Probabilities of the top_k most probable tokens (0: all), renormalised; ties are kept."""
    if 0 < top_k < logits.shape[-1]:
        least = logits.topk(top_k).values[..., -1:]
        logits = logits.masked_fill(logits < least, -torch.inf)
    return logits.softmax(-1)


@dataclass
class Weights:
    """Weights of the objective's terms. Step s counts decay^(s - 1)."""

    feature: float = 1.0  # smooth L1 between predicted and true features
    token: float = 0.1  # on the distributions of the next token
    acceptance: float = 0.0  # share of -log acceptance rate in `token`; the rest is cross entropy
    guided: bool = True  # distributions after guidance, as verified; else of every sequence alone
    decay: float = 0.8
    top: float = 0.0  # cross entropy over the target's TOP most probable tokens alone (HASS)


TOP = 10  # as published


def token_loss(
    logits: Tensor,
    target: Tensor,
    acceptance: float,
    counted: Tensor | None = None,
    count: Tensor | None = None,
) -> Tensor:
    """Mean of (1 - a) cross entropy(p, q) - a log sum min(p, q); both arguments are logits.

    counted, count: as of `mean`.
    """
    p, log_q = target.softmax(-1), logits.log_softmax(-1)
    loss = logits.new_zeros(())
    if acceptance < 1:
        loss = loss - (1 - acceptance) * mean((p * log_q).sum(-1), counted, count)
    if acceptance > 0:
        rate = torch.minimum(p, log_q.exp()).sum(-1)
        loss = loss - acceptance * mean(rate.clamp_min(1e-6).log(), counted, count)
    return loss


def top_loss(
    logits: Tensor, target: Tensor, counted: Tensor | None = None, count: Tensor | None = None
) -> Tensor:
    """Mean of -sum p log q over the TOP tokens of largest p; arguments as in token_loss."""
    p, ids = target.softmax(-1).topk(min(TOP, target.shape[-1]))
    return -mean((p * logits.log_softmax(-1).gather(-1, ids)).sum(-1), counted, count)


def mean(values: Tensor, counted: Tensor | None, count: Tensor | None = None) -> Tensor:
    """Mean of the entries that are `counted`, bool, 0 of none; by default of all.

    count: how many they are, if the values are a part of them.
    """
    if counted is None:
        return values.mean()
    return (values * counted).sum() / (counted.sum() if count is None else count).clamp_min(1)


def objective(
    drafter: AnyDrafter,
    batch: Batch,
    head: Head,
    guidance: float,
    weights: Weights,
    steps: int,
    noise: float = 0.0,
) -> tuple[Tensor, list[float]]:
    """The loss, and the token loss of every step."""
    pairs = batch.pairs if weights.guided else 1
    scales = [weights.decay**step for step in range(steps)]
    drafts = list(draft(drafter, batch, steps, noise))
    total, token_losses = torch.zeros(()), torch.zeros(steps)
    if weights.feature > 0:
        for step, hidden in enumerate(drafts):
            total = total + scales[step] * weights.feature * feature_loss(hidden, batch, step)

    def terms(drafts: Sequence[Tensor]) -> Iterator[Tensor]:
        distributions = partial(guided_logits, head=head, pairs=pairs, guidance=guidance)
        for step, rows, logits, target in distribution_parts(
            batch,
            drafts,
            codes_of(head),
            distributions,
            lambda hidden, _: guided(drafter.guess(hidden, head), pairs, guidance),
        ):
            marks = per_sequence(batch.drafted(step + 1), batch.pairs // pairs)
            counted = (marks[:, rows], marks.sum())
            loss = token_loss(logits, target, weights.acceptance, *counted)
            token_losses[step] += loss.detach()
            loss = weights.token * loss
            if weights.top > 0:
                loss = loss + weights.top * top_loss(logits, target, *counted)
            yield scales[step] * loss

    total = total + summed(terms, drafts, drafter.parameters())
    return total / sum(scales), token_losses.tolist()


def feature_loss(hidden: Tensor, batch: Batch, step: int) -> Tensor:
    """Smooth L1 between what this step from 0 predicts and the true features."""
    target = batch.targets(step + 1).float()
    errors = F.smooth_l1_loss(hidden.float(), target, reduction="none").mean(-1)
    return mean(errors, per_sequence(batch.drafted(step + 1), batch.pairs))


def per_sequence(counted: Tensor, pairs: int) -> Tensor:
    """Marks of images for each of their sequences."""
    return counted.repeat_interleave(pairs, 0)


@torch.no_grad()
def acceptance(
    drafter: AnyDrafter, batch: Batch, head: Head, guidance: float, top_k: int, steps: int
) -> tuple[Tensor, Tensor]:
    """Acceptance of a chain of drafts by lossless verification at temperature 1, by root and step.

    Returns the acceptance rates sum min(p, q) and the probabilities min(1, q(x) / p(x)) that the draft
    was accepted given the code x that came out; both [B, N - 1, steps] for images of N codes. Where
    nothing is drafted, past the last code of a row, rates are NaN and probabilities 0; both are NaN for roots
    that nothing follows, at the end of an answer.
    """

    def distribution(logits: Tensor) -> Tensor:
        return filtered(guided(logits, batch.pairs, guidance), top_k)

    return accepted(
        batch,
        list(draft(drafter, batch, steps)),
        codes_of(head),
        lambda features: distribution(logits_of(features, head)),
        lambda hidden, _: distribution(drafter.guess(hidden, head)),
    )


def accepted(
    batch: Batch,
    drafts: Sequence[Tensor],
    codes: int,
    distributions: Callable[[Tensor], Tensor],
    guess: Callable[[Tensor, int], Tensor],
) -> tuple[Tensor, Tensor]:
    """As `acceptance`, of the probabilities that `distribution_parts` yields."""
    kept = torch.zeros(len(batch.codes), batch.roots, len(drafts))
    rates = torch.full_like(kept, torch.nan)
    for step, rows, q, p in distribution_parts(batch, drafts, codes, distributions, guess):
        drafted = batch.drafted(step + 1)[:, rows]
        rates[:, rows, step] = torch.minimum(p, q).sum(-1).masked_fill(~drafted, torch.nan)
        token = batch.tokens(step + 1)[:, rows, None].clamp_min(0)
        ratio = q.gather(-1, token) / p.gather(-1, token).clamp_min(1e-20)
        kept[:, rows, step] = ratio.clamp_max(1).squeeze(-1) * drafted
    kept = kept.masked_fill((batch.codes[:, 1:] == BEHIND)[..., None], torch.nan)
    roots = batch.codes[0, :-1] != NO_CODE  # rows end alike in all images
    return rates[:, roots], kept[:, roots]


def chain_compression(kept: Tensor) -> float:
    """Tokens per target pass of whole images generated with chains of kept.shape[2] drafts.

    kept [B, roots, steps] as `acceptance` returns it. Exact in expectation: the tokens have the target's
    distribution, and given the tokens the tests are independent. The prompt's pass yields the first token and
    every further pass the accepted drafts and one more.
    """
    images, roots, steps = kept.shape
    alive = ~kept.isnan().any(-1)
    passes = torch.zeros(roots + steps + 2, images, dtype=torch.float64)
    for root in range(roots - 1, -1, -1):
        reached = torch.ones(images, dtype=torch.float64)
        total = torch.ones(images, dtype=torch.float64)
        for step in range(steps):
            rate = kept[:, root, step].double()
            total += reached * (1 - rate) * passes[root + step + 1]
            reached = reached * rate
        passes[root] = (total + reached * passes[root + steps + 1]).where(alive[:, root], 0.0)
    return float((images + alive.sum()) / (images + passes[0].sum()))
