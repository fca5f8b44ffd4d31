"""Training data of drafters: images with the target's features.

Shapes: B images, P sequences of an image's guidance (conditional, unconditional; 1 without), S = B * P
sequences, L positions with features, F their width, M tokens of an image: codes and the ends of its rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

NO_CODE = -1  # in place of a code: a token that the image's shape dictates
BEHIND = -2  # in place of a token: none, an answer has ended


@dataclass
class Batch:
    """Images with the target's features."""

    features: Tensor  # [S,L,F]; rows in front of the prompt are padding
    ids: Tensor  # int64 [S,L]: id of the token after the row's, or what stands in on prompt rows
    codes: Tensor  # int64 [B,M], NO_CODE for the end of a row, BEHIND behind an answer
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
        """Codes int64 [B, roots - step + 1] whose distribution the targets of this step give."""
        return self.codes[:, step:]

    def drafted(self, step: int) -> Tensor:
        """Whether this step of a root is drafted, bool [B, roots - step + 1]: within a row."""
        codes = self.codes.unfold(1, step + 1, 1)
        return (codes >= 0).all(-1)


def make_batch(
    features: Tensor,
    codes: Tensor,
    valid: Tensor,
    prompt_length: int,
    prompts: Tensor | int,
    inner: Tensor | None = None,
    from_prompt: bool = False,
) -> Batch:
    """A batch of features [B,P,L,F], codes [B,M], prompt rows valid [B] or [B,P] and inner of data.py.

    prompts: the ids [B,P,L] behind every row, or the one id that stands in for prompts that are no tokens.
    from_prompt: positions count from the prompt's first row, as they always do with ids; else prompts end at
    prompt_length - 1.
    """
    pairs, rows = features.shape[1:3]
    valid = valid.long().view(len(codes), -1).expand(-1, pairs).flatten()
    positions = torch.arange(rows)
    if isinstance(prompts, Tensor):
        ids = prompts.long().flatten(0, 1)
    else:
        ids = F.pad(codes.long(), (prompt_length - 1, 0), value=prompts)
        ids = ids.repeat_interleave(pairs, 0)
    if from_prompt or isinstance(prompts, Tensor):
        positions = (positions - (prompt_length - valid)[:, None]).clamp_min(0)
    inner = None if inner is None else inner.flatten(0, 1)
    codes = codes.long()
    return Batch(features.flatten(0, 1), ids, codes, valid, positions, prompt_length, pairs, inner)


def causal_bias(valid: Tensor, prompt_length: int, rows: int) -> Tensor:
    """Additive bias [S,1,rows,rows]: causal, padding hidden, every row sees itself."""
    seen = torch.ones(rows, rows, dtype=torch.bool, device=valid.device).tril()
    columns = torch.arange(rows, device=valid.device) >= (prompt_length - valid)[:, None]
    seen = (seen & columns[:, None]) | torch.eye(rows, dtype=torch.bool, device=valid.device)
    return torch.zeros(seen.shape, device=valid.device).masked_fill_(~seen, -torch.inf)[:, None]
