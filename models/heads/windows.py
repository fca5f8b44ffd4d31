"""Windows of drafts as `--method refine` has them, for many images side by side: what a refiner learns from.

Shapes: n images, P sequences an image, N nodes of a pass (the newest token, then L = N - 1 drafts), H width
of hidden states, V codes of the head. Hidden states are guided: the head is one product.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ..eagle.features import Ids, TargetModel, image_ids, prompt_rows
from ..eagle.losses import filtered, guided
from .refine import Refiner

WORD = 64  # bits of a mask, more than a pass has nodes


@dataclass
class Seen:
    """The inputs of a refiner for the positions behind the newest tokens."""

    hidden: Tensor  # [n,L,H]
    stale: Tensor  # int64 [n,L], -1: no row is there


class Windows:
    """Images that begin together. A pass drafts, scores and verifies losslessly, at temperature 1."""

    @torch.no_grad()
    def __init__(
        self, model: TargetModel, head: Tensor, prompts: list[list[Ids]], slots: int
    ) -> None:
        self.model, self.head = model, head
        self.top_k = int(model.manifest["sampling"]["top_k"])
        self.all = torch.arange(len(prompts))
        rows = prompt_rows(model, prompts)
        self.valid = torch.tensor([len(r) for r in rows])
        x = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        shape, longest = model.manifest["cache"], x.shape[1] + model.tokens + slots + 1
        sizes = [shape["layers"], 2, len(rows), shape["kv_heads"], longest, shape["head_dim"]]
        self.cache = torch.zeros(sizes, dtype=x.dtype)
        aligned = model.manifest["prompt"]["align"] == "end"
        self.offset = model.prompt_length - self.valid if aligned else torch.zeros_like(self.valid)
        positions = torch.arange(x.shape[1]) + self.offset[:, None]
        none = torch.empty(0, dtype=torch.int64)
        hidden = self.run(x, positions, none, torch.zeros_like(self.valid))
        last = guided(
            hidden[torch.arange(len(rows)), self.valid - 1][:, None],
            model.sequences,
            model.guidance,
        )
        self.count = torch.ones_like(self.all)  # tokens of an image
        self.newest = torch.multinomial(self.distribution(last @ head.T)[:, 0], 1)[:, 0]
        none = torch.full((len(prompts), slots), -1)
        self.seen = Seen(last.expand(-1, slots, -1), none)

    def run(self, x: Tensor, positions: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Hidden states [S,R,H] of rows; positions of a tree may lie behind the image."""
        limit = self.model.prompt_length + self.model.tokens - 2
        inputs = (x, positions.clamp_max(limit), mask, lengths, self.cache)
        result: Tensor = self.model.target.forward(*inputs)[1]
        return result

    def distribution(self, logits: Tensor) -> Tensor:
        return filtered(logits, self.top_k)

    @property
    def live(self) -> Tensor:
        """Images that are not done: bool [n]."""
        return self.count < self.model.tokens

    def draft(self, refiner: Refiner) -> tuple[Tensor, Tensor]:
        """Drafts int64 [n,L] and the logits [n,L,V] that they were sampled from."""
        read = refiner.read(self.seen.hidden, self.seen.stale)
        known = (self.seen.hidden @ self.head.T) * (self.seen.stale >= 0).unsqueeze(2)
        state, token = read.new_zeros(len(read), refiner.config.inner), self.newest
        drafts, logits = [], []
        for position in range(read.shape[1]):
            state = refiner.step(read[:, position], state, token)
            logits.append(known[:, position] + refiner.logits(state))
            token = torch.multinomial(self.distribution(logits[-1].detach()), 1)[:, 0]
            drafts.append(token)
        return torch.stack(drafts, 1), torch.stack(logits, 1)

    @torch.no_grad()
    def score(self, drafts: Tensor) -> Tensor:
        """Guided hidden states [n,N,H] of the newest tokens and the drafts."""
        nodes = torch.cat([self.newest[:, None], drafts], 1)
        pairs, count = self.model.sequences, nodes.shape[1]
        rows = self.model.target.embed(image_ids(self.model, nodes)).repeat_interleave(pairs, 0)
        begin = self.valid + (self.count - 1).repeat_interleave(pairs)
        bits = torch.ones(count, count, dtype=torch.int64).tril() << torch.arange(count)
        mask = bits.sum(1)[None, :, None].repeat(len(rows), 1, 1)
        positions = (begin + self.offset)[:, None] + torch.arange(count)
        hidden = self.run(rows, positions, mask, torch.stack([begin, begin]))
        return guided(hidden, pairs, self.model.guidance)

    @torch.no_grad()
    def accept(self, drafts: Tensor, logits: Tensor, hidden: Tensor) -> None:
        """Verifies, and reads what the pass left behind the newest tokens."""
        target, drafted_from = self.distribution(hidden @ self.head.T), self.distribution(logits)
        slots = drafts.shape[1]
        p, q = (
            distribution.gather(2, drafts.unsqueeze(2))[..., 0]
            for distribution in (target[:, :-1], drafted_from)
        )
        kept = (torch.rand(p.shape) * q < p).long().cumprod(1).sum(1)
        distribution = target[self.all, kept]
        rejected = drafted_from[self.all, kept.clamp_max(slots - 1)] * (kept < slots)[:, None]
        residual = (distribution - rejected).clamp_min(0)
        self.newest = torch.multinomial(
            torch.where(residual.sum(1, True) > 0, residual, distribution), 1
        )[:, 0]
        self.count = torch.minimum(self.count + kept + 1, torch.tensor(self.model.tokens))
        row = kept[:, None] + 1 + torch.arange(slots)  # of the position's stale draft
        nodes = row.clamp_max(slots)
        stale = drafts.gather(1, nodes - 1).masked_fill(row > slots, -1)
        self.seen = Seen(hidden[self.all[:, None], nodes], stale)
