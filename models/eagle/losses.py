"""Objectives of a drafter, and what exact verification would accept of its drafts.

Shapes: B pictures, P rows of a picture's guidance (conditional, unconditional; 1 without), S = B * P
sequences, L rows of features, F their width, V tokens of the head, M tokens of a picture: codes and the
ends of its rows. A root r is a row from which a draft starts: the last prompt row or a token of the
picture. Step s of its draft predicts the feature of row r + s and with it the law of token r + s + 1; it
reads the embedding of token r + s, the one the target drew. Drafts stop at the end of a row, which the
picture's shape dictates: only steps count before which, and after which, all tokens are codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from models.eagle.drafter import Drafter, KeysValues
from models.eagle.eagle3 import Eagle3Drafter
from models.eagle.parts import law_parts, summed
from models.transformer.head import Head, codes_of, logits_of

AnyDrafter = Drafter | Eagle3Drafter


@dataclass
class Batch:
    """Pictures with the target's features."""

    features: Tensor  # [S,L,F]; rows in front of the prompt are padding
    ids: Tensor  # int64 [S,L]: id of the token after the row's, or what stands in on prompt rows
    codes: Tensor  # int64 [B,M], -1 for the end of a row
    valid: Tensor  # int64 [S]: rows of the prompt
    positions: Tensor  # int64 [L] or [S,L]
    prompt_length: int
    pairs: int  # P
    inner: Tensor | None = None  # [S,L,F'], what inner layers of the target get

    @property
    def roots(self) -> int:
        """Rows that a draft of one step can start from."""
        return self.features.shape[1] - self.prompt_length

    def targets(self, step: int) -> Tensor:
        """Features [S, roots - step + 1, F] that drafts of this step (from 1) should predict."""
        return self.features[:, self.prompt_length - 1 + step :]

    def tokens(self, step: int) -> Tensor:
        """Codes int64 [B, roots - step + 1] whose law the targets of this step give."""
        return self.codes[:, step:]

    def drafted(self, step: int) -> Tensor:
        """Whether this step of a root is drafted, bool [B, roots - step + 1]: within a row."""
        codes = self.codes.unfold(1, step + 1, 1)
        return (codes >= 0).all(-1)


def make_batch(
    features: Tensor, codes: Tensor, valid: Tensor, prompt_length: int, prompts: Tensor | int,
    inner: Tensor | None = None,
) -> Batch:  # fmt: skip
    """A batch of features [B,P,L,F], codes [B,M], prompt rows valid [B] or [B,P] and inner of data.py.

    prompts: the ids [B,P,L] behind every row, whose positions then count from the prompt's first
    one; or the one id that stands in for prompts that are no tokens, with positions that end at
    prompt_length - 1.
    """
    pairs, rows = features.shape[1:3]
    valid = valid.long().view(len(codes), -1).expand(-1, pairs).flatten()
    positions = torch.arange(rows)
    if isinstance(prompts, Tensor):
        ids = prompts.long().flatten(0, 1)
        positions = (positions - (prompt_length - valid)[:, None]).clamp_min(0)
    else:
        ids = F.pad(codes.long(), (prompt_length - 1, 0), value=prompts)
        ids = ids.repeat_interleave(pairs, 0)
    inner = None if inner is None else inner.flatten(0, 1)
    codes = codes.long()
    return Batch(features.flatten(0, 1), ids, codes, valid, positions, prompt_length, pairs, inner)


def causal_bias(valid: Tensor, prompt_length: int, rows: int) -> Tensor:
    """Additive bias [S,1,rows,rows]: causal, padding hidden, every row sees itself."""
    seen = torch.ones(rows, rows, dtype=torch.bool, device=valid.device).tril()
    columns = torch.arange(rows, device=valid.device) >= (prompt_length - valid)[:, None]
    seen = (seen & columns[:, None]) | torch.eye(rows, dtype=torch.bool, device=valid.device)
    return torch.zeros(seen.shape, device=valid.device).masked_fill_(~seen, -torch.inf)[:, None]


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
    hidden, context = drafter(embeddings[:, :last], features[:, :last], positions[..., :last], bias)
    root = batch.prompt_length - 1
    hidden, bias = hidden[:, root:], bias[:, :, root:]
    chain: list[KeysValues] = []
    yield hidden
    for step in range(2, steps + 1):
        rows = batch.roots - step + 1
        bias = bias[:, :, :rows]
        chain = [(k[:, :, :rows], v[:, :, :rows]) for k, v in chain]
        first = root + step - 1
        hidden, own = drafter(
            embeddings[:, first : first + rows], hidden[:, :rows],
            positions[..., first : first + rows], bias, context, chain,
        )  # fmt: skip
        chain.append(own)
        yield hidden


def guided_logits(hidden: Tensor, head: Head, pairs: int, guidance: float) -> Tensor:
    """Logits fp32 [B,R,V] of features [S,R,F] through the target's head, guided if P is 2."""
    return guided(logits_of(hidden, head), pairs, guidance)


def guided(logits: Tensor, pairs: int, guidance: float) -> Tensor:
    """Logits [S,R,V] of every sequence as fp32 [B,R,V] of the pictures."""
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
    """What the objective adds up. Step s counts decay^(s - 1)."""

    feature: float = 1.0  # smooth L1 between predicted and true features
    token: float = 0.1  # on the laws of the next token
    acceptance: float = (
        0.0  # share of -log of the acceptance rate in `token`; the rest is cross entropy
    )
    guided: bool = (
        True  # laws after guidance, as they are drafted and verified; else every row's own
    )
    decay: float = 0.8
    top: float = 0.0  # cross entropy over the target's TOP most probable tokens alone (HASS)


TOP = 10  # as published


def token_loss(
    logits: Tensor, target: Tensor, acceptance: float, counted: Tensor | None = None,
    count: Tensor | None = None,
) -> Tensor:  # fmt: skip
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
    """Of the entries that are `counted`, bool, 0 of none; by default of all.

    count: how many they are, if the values are a part of them.
    """
    if counted is None:
        return values.mean()
    return (values * counted).sum() / (counted.sum() if count is None else count).clamp_min(1)


def objective(
    drafter: AnyDrafter, batch: Batch, head: Head, guidance: float, weights: Weights, steps: int,
    noise: float = 0.0,
) -> tuple[Tensor, list[float]]:  # fmt: skip
    """The loss, and the token loss of every step."""
    pairs = batch.pairs if weights.guided else 1
    scales = [weights.decay**step for step in range(steps)]
    drafts = list(draft(drafter, batch, steps, noise))
    total, token_losses = torch.zeros(()), torch.zeros(steps)
    if weights.feature > 0:
        for step, hidden in enumerate(drafts):
            total = total + scales[step] * weights.feature * feature_loss(hidden, batch, step)

    def terms(drafts: Sequence[Tensor]) -> Iterator[Tensor]:
        laws = partial(guided_logits, head=head, pairs=pairs, guidance=guidance)
        for step, rows, logits, target in law_parts(
            batch, drafts, codes_of(head), laws,
            lambda hidden, _: guided(drafter.guess(hidden, head), pairs, guidance),
        ):  # fmt: skip
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
    """Marks of pictures for each of their sequences."""
    return counted.repeat_interleave(pairs, 0)


@torch.no_grad()
def acceptance(
    drafter: AnyDrafter, batch: Batch, head: Head, guidance: float, top_k: int, steps: int
) -> tuple[Tensor, Tensor]:
    """What exact verification at temperature 1 does with a chain of drafts, by root and step.

    Returns the acceptance rates sum min(p, q) and the probabilities min(1, q(x) / p(x)) that the draft
    was accepted given the code x that came out; both [B, N - 1, steps] for pictures of N codes. Where
    nothing is drafted, past the last code of a row, rates are NaN and probabilities 0.
    """

    def law(logits: Tensor) -> Tensor:
        return filtered(guided(logits, batch.pairs, guidance), top_k)

    return accepted(
        batch, list(draft(drafter, batch, steps)), codes_of(head),
        lambda features: law(logits_of(features, head)),
        lambda hidden, _: law(drafter.guess(hidden, head)),
    )  # fmt: skip


def accepted(
    batch: Batch, drafts: Sequence[Tensor], codes: int, laws: Callable[[Tensor], Tensor],
    guess: Callable[[Tensor, int], Tensor],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """As `acceptance`, of the probabilities that `law_parts` yields."""
    kept = torch.zeros(len(batch.codes), batch.roots, len(drafts))
    rates = torch.full_like(kept, torch.nan)
    for step, rows, q, p in law_parts(batch, drafts, codes, laws, guess):
        drafted = batch.drafted(step + 1)[:, rows]
        rates[:, rows, step] = torch.minimum(p, q).sum(-1).masked_fill(~drafted, torch.nan)
        token = batch.tokens(step + 1)[:, rows, None].clamp_min(0)
        ratio = q.gather(-1, token) / p.gather(-1, token).clamp_min(1e-20)
        kept[:, rows, step] = ratio.clamp_max(1).squeeze(-1) * drafted
    roots = batch.codes[0, :-1] >= 0  # rows end alike in all pictures
    return rates[:, roots], kept[:, roots]


def chain_compression(kept: Tensor) -> float:
    """Tokens per target pass of whole pictures drawn with chains of kept.shape[2] drafts.

    kept [B, roots, steps] as `acceptance` returns it. Exact in expectation: the tokens have the target's
    law, and given the tokens the tests are independent. The prompt's pass yields the first token and
    every further pass the accepted drafts and one more.
    """
    pictures, roots, steps = kept.shape
    passes = torch.zeros(roots + steps + 2, pictures, dtype=torch.float64)
    for root in range(roots - 1, -1, -1):
        reached = torch.ones(pictures, dtype=torch.float64)
        total = torch.ones(pictures, dtype=torch.float64)
        for step in range(steps):
            rate = kept[:, root, step].double()
            total += reached * (1 - rate) * passes[root + step + 1]
            reached = reached * rate
        passes[root] = total + reached * passes[root + steps + 1]
    return float((roots + 1) / (1 + passes[0].mean()))
