"""The FLASH drafter in plain PyTorch, with the published weight names (Wang et al. 2025, sections 3.2, 3.3).

One pass over the target's features gives K features at once. Rows of an image older than a window may be
compressed to C learned queries. Shapes: S sequences, R rows, H width of the target's features, D head width,
G groups of keys and values, V codes of the target's head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..eagle.batch import Batch, causal_bias
from ..eagle.config import DrafterConfig
from ..eagle.drafter import rotary_table, rotate, rotations
from ..eagle.parts import recomputed, row_parts, summed
from ..transformer.head import Head, codes_of, logits_of


@dataclass
class FlashLayerConfig(DrafterConfig):
    """Every query head attends to every group, so that heads need not divide by groups."""

    SHARED_KEYS = False


@dataclass
class FlashConfig:
    """layer: sizes and rotations, its kv_heads are the groups; heads K, features of one pass.

    queries C, 0: nothing is compressed; window: newest rows of the image that are not.
    """

    LAYER: ClassVar[type[DrafterConfig]] = FlashLayerConfig

    layer: DrafterConfig
    heads: int = 4
    queries: int = 0
    window: int = 0

    def __post_init__(self) -> None:
        values = self.layer if isinstance(self.layer, dict) else vars(self.layer)
        self.layer = self.LAYER(**values)
        if self.queries and not 0 < self.window:
            raise ValueError(f"window: got {self.window}, expected some rows beside the queries")


def attended(
    q: Tensor, k: Tensor, v: Tensor, bias: Tensor, old: tuple[Tensor, Tensor, Tensor] | None
) -> Tensor:
    """Rows q [S,heads,1,P,D] over k and v [S,1,G,R,D], as the bias says -> [S,heads,G,P,D].

    old: keys and values [S,G,P,C,D] that each row has besides, and their bias.
    """
    scores = q @ k.transpose(-1, -2) + bias  # [S,heads,G,P,R]
    if old is None:
        return scores.softmax(-1) @ v
    old_k, old_v, there = old
    more = torch.einsum("shord,sgrcd->shgrc", q, old_k) + there
    weights = torch.cat([scores, more], -1).softmax(-1)
    own, rest = weights.split([k.shape[-2], old_k.shape[-2]], -1)
    return own @ v + torch.einsum("shgrc,sgrcd->shgrd", rest, old_v)


class FlashLayer(nn.Module):
    """Attention of every query head over every group, whose results add up; then K features."""

    def __init__(self, config: FlashConfig) -> None:
        super().__init__()
        layer = config.layer
        width, groups = layer.hidden, layer.kv_heads * layer.head_dim
        self.head_dim, self.adjacent = layer.head_dim, layer.rotary == "grid"
        self.q_proj = nn.Linear(width, width)
        self.k_proj = nn.Linear(width, groups)
        self.v_proj = nn.Linear(width, groups)
        self.o_proj = nn.Linear(width, width)
        self.ar_proj = nn.Sequential(
            nn.Linear(width, layer.ffn), nn.SiLU(), nn.Linear(layer.ffn, config.heads * width)
        )

    def split(self, x: Tensor, rotation: Tensor | None) -> Tensor:
        """[S,R,n*D] -> [S,n,R,D], turned by rotation [..,R,D/2,2]."""
        x = x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
        return x if rotation is None else rotate(x, rotation, self.adjacent)

    def attend(
        self,
        x: Tensor,
        rotation: Tensor,
        bias: Tensor,
        old: tuple[Tensor, Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Fused rows [S,R,H] -> [S,R,H]; bias, additive, [S or 1,1,R,R].

        old: compressed rows [S,R,C,H] of every row, their rotations [..,R,C,D/2,2], and which there are,
        as a bias [S or 1,1,1,R,1].
        """
        q = self.split(self.q_proj(x), rotation)[:, :, None] * self.head_dim**-0.5
        k = self.split(self.k_proj(x), rotation)[:, None]
        v = self.split(self.v_proj(x), None)[:, None]
        own = None
        if old is not None:
            rows, turns, there = old
            per_row = (rows.shape[0], -1, *rows.shape[1:3], self.head_dim)
            old_k = self.split(self.k_proj(rows.flatten(1, 2)), turns.flatten(-4, -3))
            old_v = self.split(self.v_proj(rows.flatten(1, 2)), None)
            own = old_k.reshape(per_row), old_v.reshape(per_row), there
        numbers = q[..., 0, 0].numel() * k.shape[2] * x.shape[1]  # scores of a row
        parts = row_parts(x.shape[1], numbers)
        out = recomputed(
            attended,
            parts,
            lambda part: (
                q[..., part, :],
                k,
                v,
                bias[:, :, None, part],
                own and (own[0][:, :, part], own[1][:, :, part], own[2][..., part, :]),
            ),
        )
        result: Tensor = self.o_proj(out.sum(2).transpose(1, 2).flatten(2))
        return result


class Flash(nn.Module):
    """Feature i of row j is that of row j + 1 + i; the head that reads it is the target's."""

    def __init__(self, config: FlashConfig) -> None:
        super().__init__()
        layer = config.layer
        self.config = config
        self.embed_tokens = nn.Embedding(layer.vocabulary, layer.hidden)
        self.fc = nn.Linear(2 * layer.hidden, layer.hidden)
        self.layers = FlashLayer(config)
        if config.queries:
            self.queries = nn.Parameter(
                torch.randn(config.queries, layer.hidden) * layer.hidden**-0.5
            )
        self.register_buffer("rotary", rotary_table(layer), persistent=False)
        self.head: Head = torch.empty(0)  # the target's, while it is trained

    def begin(self, embedding: Tensor, head: Head) -> None:
        """Starts training from the target's embedding [vocabulary,H]; its head is read, not trained."""
        with torch.no_grad():
            self.embed_tokens.weight.copy_(embedding)
        self.head = head

    def fused(self, embeddings: Tensor, features: Tensor) -> Tensor:
        """embeddings [S,R,H] of the token behind each row, features [S,R,H] -> [S,R,H]."""
        result: Tensor = self.fc(torch.cat([embeddings, features], -1))
        return result

    def weights(self, features: Tensor) -> Tensor:
        """features [S,N,H] -> [S,C,N], what each query takes of each row."""
        return (self.queries @ features.transpose(1, 2)).softmax(-1)

    def compressed(self, features: Tensor) -> Tensor:
        """features [S,N,H] -> [S,C,H]."""
        return self.weights(features) @ features

    def features(self, out: Tensor) -> Tensor:
        """Rows after attention [S,R,H] -> [S,R,K,H]."""
        result: Tensor = self.layers.ar_proj(out).unflatten(-1, (self.config.heads, -1))
        return result

    def states(self, batch: Batch) -> Iterator[Tensor]:
        """Features [S,M - 1 - i,H] of what comes i positions behind the next token, i = 0 .. K - 1."""
        root, rows = batch.prompt_length - 1, batch.features.shape[1]
        for i, own in enumerate(self.ahead(batch).unbind(2)):
            yield own[:, : rows - root - 1 - i]

    def logits(self, features: Tensor, _: int) -> Tensor:
        """Features [...,H] -> [...,V], through the target's head."""
        return logits_of(features, self.head)

    def ahead(self, batch: Batch) -> Tensor:
        """The K features [S,rows,K,H] of the rows from which a draft starts."""
        x = self.fused(self.embed_tokens(batch.ids), batch.features)
        rotation = rotations(self.rotary, batch.positions)
        bias = causal_bias(batch.valid, batch.prompt_length, x.shape[1])
        old = None
        if self.config.queries:
            bias = bias + self.beyond(x.shape[1], batch.prompt_length)
            old = self.old_rows(batch)
        out = self.layers.attend(x, rotation, bias, old)
        return self.features(out[:, batch.prompt_length - 1 :])

    def beyond(self, rows: int, prompt: int) -> Tensor:
        """Additive bias [rows,rows] that hides rows of the image older than the window."""
        row = torch.arange(rows)
        hidden = (row >= prompt) & (row[:, None] - row >= self.config.window)
        return torch.zeros(rows, rows).masked_fill_(hidden, -torch.inf)

    def old_rows(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """`old` of FlashLayer.attend: for every row, the compressed rows of the image beyond its window."""
        features, prompt = batch.features, batch.prompt_length
        count, rows = self.config.queries, features.shape[1]
        scores = features[:, prompt:] @ self.queries.T  # [S,N,C]
        share = (scores - scores.amax(1, keepdim=True)).exp()[..., None]
        sums = (share * features[:, prompt:, None]).cumsum(1) / share.cumsum(1).clamp_min(1e-30)
        last = (
            torch.arange(rows) - self.config.window - prompt
        )  # newest row that each row compresses
        old = sums[:, last.clamp_min(0)]
        positions = batch.positions - self.config.window + 1
        compressed = (positions[..., None] - count + torch.arange(count)).clamp_min(0)
        turns = self.rotary[compressed]
        if compressed.dim() == 3:
            turns = turns[:, None]
        there = torch.zeros(rows).masked_fill_(last < 0, -torch.inf).view(1, 1, 1, rows, 1)
        return old, turns, there


def train_layout(features: Tensor, pad: float = 0.0) -> Tensor:
    """K features of every row [S,R,K,H] -> [S,K*R,H]: block i holds at row i + j entry i of row j.

    Rows of a block that nothing is guessed for hold `pad`.
    """
    rows = features.shape[1]
    blocks = [
        F.pad(own[:, : rows - i], (0, 0, i, 0), value=pad)
        for i, own in enumerate(features.unbind(2))
    ]
    return torch.cat(blocks, 1)


def published_loss(
    features: Tensor, head: Head, target: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The published training's losses: smooth L1, soft cross entropy, and the first + 0.1 of the second.

    features [S,R,K,H]; head: the target's; target [S,R,H]: the next row's; mask [S,R]: rows that count.
    """
    count = features.shape[2]
    layout, mask = train_layout(features), mask.float().repeat(1, count)
    target = target.repeat(1, count, 1)
    errors = F.smooth_l1_loss(layout, target, reduction="none").mean(-1)
    scale = mask.sum() + 1e-5

    def terms(rows: Sequence[Tensor]) -> Iterator[Tensor]:
        for part in row_parts(layout.shape[1], len(layout) * codes_of(head)):
            with torch.no_grad():
                distributions = logits_of(target[:, part], head).softmax(-1)
            entropy = -(distributions * logits_of(rows[0][:, part], head).log_softmax(-1)).sum(-1)
            yield (entropy * mask[:, part]).sum() / scale

    first, second = (errors * mask).sum() / scale, summed(terms, [layout], [])
    return first, second, first + 0.1 * second
