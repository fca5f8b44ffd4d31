"""Objectives of a drafter, and what exact verification would accept of its drafts.

Shapes: B pictures, P rows of a picture's guidance (conditional, unconditional; 1 without), S = B * P
sequences, L rows of features, F their width, V tokens of the head. A root r is a row from which a draft
starts: the last prompt row or an image token. Step s of its draft predicts the feature of row r + s and
with it the law of token r + s + 1; it reads the embedding of token r + s, the one the target drew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from models.eagle.drafter import Drafter, KeysValues


@dataclass
class Batch:
    """Pictures with the target's features."""

    features: Tensor  # [S,L,F]; rows in front of the prompt are padding
    ids: Tensor  # int64 [S,L]: id of the token after the row's, the prompt id on prompt rows
    valid: Tensor  # int64 [S]: rows of the prompt
    prompt_length: int
    pairs: int  # P

    @property
    def roots(self) -> int:
        """Rows that a draft of one step can start from."""
        return self.features.shape[1] - self.prompt_length

    def targets(self, step: int) -> Tensor:
        """Features [S, roots - step + 1, F] that drafts of this step (from 1) should predict."""
        return self.features[:, self.prompt_length - 1 + step :]

    def tokens(self, step: int) -> Tensor:
        """Tokens int64 [B, roots - step + 1] whose law the targets of this step give."""
        return self.ids[:: self.pairs, self.prompt_length - 1 + step :]


def make_batch(
    features: Tensor, codes: Tensor, valid: Tensor, prompt_length: int, prompt_id: int
) -> Batch:
    """A batch of features [B,P,L,F], codes [B,N] and prompt rows valid [B] as data.py stores them."""
    pairs = features.shape[1]
    ids = F.pad(codes.long(), (prompt_length - 1, 0), value=prompt_id)
    return Batch(
        features.flatten(0, 1),
        ids.repeat_interleave(pairs, 0),
        valid.long().repeat_interleave(pairs, 0),
        prompt_length,
        pairs,
    )


def causal_bias(valid: Tensor, prompt_length: int, rows: int) -> Tensor:
    """Additive bias [S,1,rows,rows]: causal, padding hidden, every row sees itself."""
    seen = torch.ones(rows, rows, dtype=torch.bool, device=valid.device).tril()
    columns = torch.arange(rows, device=valid.device) >= (prompt_length - valid)[:, None]
    seen = (seen & columns[:, None]) | torch.eye(rows, dtype=torch.bool, device=valid.device)
    return torch.zeros(seen.shape, device=valid.device).masked_fill_(~seen, -torch.inf)[:, None]


def draft(drafter: Drafter, batch: Batch, steps: int, noise: float = 0.0) -> Iterator[Tensor]:
    """Predicted features [S, roots - s + 1, F] of every root for s = 1 .. steps.

    From step 2 on a draft reads its own predictions; it attends to the rows of the target's features up
    to its root and to its own rows, as it will when drafting (HASS, Zhang et al. 2024; training-time
    test of EAGLE-3, Li et al. 2025). noise: width of the uniform noise on the target's features.
    """
    embeddings = drafter.embed_tokens(batch.ids)
    features, last = batch.features, batch.features.shape[1] - 1
    if noise:
        features = features + noise * (torch.rand_like(features) - 0.5)
    positions = torch.arange(last, device=batch.ids.device)
    bias = causal_bias(batch.valid, batch.prompt_length, last)
    hidden, context = drafter(embeddings[:, :last], features[:, :last], positions, bias)
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
            positions[first : first + rows], bias, context, chain,
        )  # fmt: skip
        chain.append(own)
        yield hidden


def guided_logits(hidden: Tensor, head: Tensor, pairs: int, guidance: float) -> Tensor:
    """Logits fp32 [B,R,V] of features [S,R,F] through the target's head [V,F], guided if P is 2."""
    logits = F.linear(hidden, head.to(hidden.dtype)).float()
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


def token_loss(logits: Tensor, target: Tensor, acceptance: float) -> Tensor:
    """Mean of (1 - a) cross entropy(p, q) - a log sum min(p, q); both arguments are logits."""
    p, log_q = target.softmax(-1), logits.log_softmax(-1)
    loss = logits.new_zeros(())
    if acceptance < 1:
        loss = loss - (1 - acceptance) * (p * log_q).sum(-1).mean()
    if acceptance > 0:
        rate = torch.minimum(p, log_q.exp()).sum(-1)
        loss = loss - acceptance * rate.clamp_min(1e-6).log().mean()
    return loss


def objective(
    drafter: Drafter, batch: Batch, head: Tensor, guidance: float, weights: Weights, steps: int,
    noise: float = 0.0,
) -> tuple[Tensor, list[float]]:  # fmt: skip
    """The loss, and the token loss of every step."""
    pairs = batch.pairs if weights.guided else 1
    with torch.no_grad():
        laws = guided_logits(batch.targets(1), head, pairs, guidance)
    total, parts, scale = torch.zeros(()), [], 0.0
    for step, hidden in enumerate(draft(drafter, batch, steps, noise)):
        weight = weights.decay**step
        scale += weight
        if weights.feature > 0:
            total = total + weight * weights.feature * F.smooth_l1_loss(
                hidden.float(), batch.targets(step + 1).float()
            )
        logits = guided_logits(hidden, head, pairs, guidance)
        loss = token_loss(logits, laws[:, step:], weights.acceptance)
        parts.append(float(loss.detach()))
        total = total + weight * weights.token * loss
    return total / scale, parts


@torch.no_grad()
def acceptance(
    drafter: Drafter, batch: Batch, head: Tensor, guidance: float, top_k: int, steps: int
) -> tuple[Tensor, Tensor]:
    """What exact verification at temperature 1 does with a chain of drafts, by root and step.

    Returns the acceptance rates sum min(p, q) and the probabilities min(1, q(x) / p(x)) that the draft
    was accepted given the token x that came out; both [B, roots, steps], 0 past the last token.
    """
    p = filtered(guided_logits(batch.targets(1), head, batch.pairs, guidance), top_k)
    rates = torch.zeros(p.shape[0], batch.roots, steps)
    kept = torch.zeros_like(rates)
    for step, hidden in enumerate(draft(drafter, batch, steps)):
        q = filtered(guided_logits(hidden, head, batch.pairs, guidance), top_k)
        law, rows = p[:, step:], q.shape[1]
        rates[:, :rows, step] = torch.minimum(law, q).sum(-1)
        token = batch.tokens(step + 1)[..., None]
        ratio = q.gather(-1, token) / law.gather(-1, token).clamp_min(1e-20)
        kept[:, :rows, step] = ratio.clamp_max(1).squeeze(-1)
    return rates, kept


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
