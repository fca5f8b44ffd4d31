"""Objectives of a drafter, and what exact verification would accept of its drafts.

Shapes: B pictures, P rows of a picture's guidance (conditional, unconditional; 1 without), S = B * P
sequences, L rows of features, F their width, V tokens of the head, M tokens of a picture: codes and the
ends of its rows. A root r is a row from which a draft starts: the last prompt row or a token of the
picture. Step s of its draft predicts the feature of row r + s and with it the law of token r + s + 1; it
reads the embedding of token r + s, the one the target drew. Drafts stop at the end of a row, which the
picture's shape dictates: only steps count before which, and after which, all tokens are codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.eagle.drafter import Drafter, KeysValues
from models.eagle.eagle3 import Eagle3Drafter
from models.transformer.head import Head, logits_of

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
    logits: Tensor, target: Tensor, acceptance: float, counted: Tensor | None = None
) -> Tensor:
    """Mean of (1 - a) cross entropy(p, q) - a log sum min(p, q); both arguments are logits.

    counted: the entries, bool, that the mean is of; all by default.
    """
    p, log_q = target.softmax(-1), logits.log_softmax(-1)
    loss = logits.new_zeros(())
    if acceptance < 1:
        loss = loss - (1 - acceptance) * mean((p * log_q).sum(-1), counted)
    if acceptance > 0:
        rate = torch.minimum(p, log_q.exp()).sum(-1)
        loss = loss - acceptance * mean(rate.clamp_min(1e-6).log(), counted)
    return loss


def top_loss(logits: Tensor, target: Tensor, counted: Tensor | None = None) -> Tensor:
    """Mean of -sum p log q over the TOP tokens of largest p; arguments as in token_loss."""
    p, ids = target.softmax(-1).topk(min(TOP, target.shape[-1]))
    return -mean((p * logits.log_softmax(-1).gather(-1, ids)).sum(-1), counted)


def mean(values: Tensor, counted: Tensor | None) -> Tensor:
    """Of the counted entries, 0 of none."""
    if counted is None:
        return values.mean()
    return (values * counted).sum() / counted.sum().clamp_min(1)


def objective(
    drafter: AnyDrafter, batch: Batch, head: Head, guidance: float, weights: Weights, steps: int,
    noise: float = 0.0,
) -> tuple[Tensor, list[float]]:  # fmt: skip
    """The loss, and the token loss of every step."""
    pairs = batch.pairs if weights.guided else 1
    dictated = bool((batch.codes < 0).any())
    with torch.no_grad():
        laws = guided_logits(batch.targets(1), head, pairs, guidance)
    total, parts, scale = torch.zeros(()), [], 0.0
    for step, hidden in enumerate(draft(drafter, batch, steps, noise)):
        weight = weights.decay**step
        scale += weight
        counted = batch.drafted(step + 1) if dictated else None
        if weights.feature > 0:
            errors = F.smooth_l1_loss(
                hidden.float(), batch.targets(step + 1).float(), reduction="none"
            )
            loss = mean(errors.mean(-1), per_sequence(counted, batch.pairs))
            total = total + weight * weights.feature * loss
        logits = guided(drafter.guess(hidden, head), pairs, guidance)
        counted = per_sequence(counted, batch.pairs // pairs)
        loss = token_loss(logits, laws[:, step:], weights.acceptance, counted)
        parts.append(float(loss.detach()))
        total = total + weight * weights.token * loss
        if weights.top > 0:
            total = total + weight * weights.top * top_loss(logits, laws[:, step:], counted)
    return total / scale, parts


def per_sequence(counted: Tensor | None, pairs: int) -> Tensor | None:
    """Marks of pictures for each of their sequences."""
    return None if counted is None else counted.repeat_interleave(pairs, 0)


@torch.no_grad()
def acceptance(
    drafter: AnyDrafter, batch: Batch, head: Head, guidance: float, top_k: int, steps: int
) -> tuple[Tensor, Tensor]:
    """What exact verification at temperature 1 does with a chain of drafts, by root and step.

    Returns the acceptance rates sum min(p, q) and the probabilities min(1, q(x) / p(x)) that the draft
    was accepted given the code x that came out; both [B, N - 1, steps] for pictures of N codes. Where
    nothing is drafted, past the last code of a row, rates are NaN and probabilities 0.
    """
    p = filtered(guided_logits(batch.targets(1), head, batch.pairs, guidance), top_k)
    kept = torch.zeros(p.shape[0], batch.roots, steps)
    rates = torch.full_like(kept, torch.nan)
    for step, hidden in enumerate(draft(drafter, batch, steps)):
        q = filtered(guided(drafter.guess(hidden, head), batch.pairs, guidance), top_k)
        law, rows, drafted = p[:, step:], q.shape[1], batch.drafted(step + 1)
        rate = torch.minimum(law, q).sum(-1)
        rates[:, :rows, step] = rate.masked_fill(~drafted, torch.nan)
        token = batch.tokens(step + 1).clamp_min(0)[..., None]
        ratio = q.gather(-1, token) / law.gather(-1, token).clamp_min(1e-20)
        kept[:, :rows, step] = ratio.clamp_max(1).squeeze(-1) * drafted
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
