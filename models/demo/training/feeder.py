"""Feeds the GPT's training: batches of codes with freshly sampled captions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..render.scene import Scene
from ..render.vocabulary import ATTRIBUTES
from .data import SHARD, TokenSet, held_out, load_tokens, token_shards
from .text import CaptionReader, facts

SECOND = tuple(ATTRIBUTES).index("second")


@dataclass
class Feeding:
    """How batches are sampled."""

    batch: int = 8  # images per process and step
    processes: int = 2
    null: float = 0.1  # share of captions replaced by the null condition
    noise: float = 0.05  # share of input codes replaced by others of the batch
    pairs: int = 3  # times a scene of two subjects comes in a pass: whose colour comes slowly
    seed: int = 0


@dataclass
class Batch:
    ids: Tensor  # int64 [B, T], right padded
    mask: Tensor  # int64 [B, T]
    tokens: Tensor  # int64 [B, 256]
    inputs: Tensor  # int64 [B, 256]: tokens, some replaced
    cells: Tensor  # bool [B, 256]
    facts: Tensor  # int64 [B, FACTS]: what the scenes show, kind by kind
    drop: Tensor  # bool [B]: null condition
    pairs: Tensor  # int64 [P]: scenes whose captions name two colours
    wrong_ids: Tensor  # int64 [P, T]: captions of these that exchange the colours
    wrong_mask: Tensor  # int64 [P, T]

    def to(self, device: str) -> Batch:
        return Batch(**{name: value.to(device) for name, value in vars(self).items()})


class Feeder:
    """Samples batches from one process's share of the data; picks up new shards as they appear."""

    def __init__(self, work: Path, rank: int, step: int, settings: Feeding) -> None:
        self.work, self.settings, self.rank = work, settings, rank
        self.rng = np.random.default_rng([settings.seed, rank, step])
        self.reader = CaptionReader(work / "text.model")
        self.shards: list[int] = []
        self.queue = np.empty(0, np.int64)
        self.refresh()

    def refresh(self) -> None:
        """Adds shards that have been finished since the last call to the current pass."""
        shards = token_shards(self.work)
        if shards == self.shards:
            return
        old_rows = 0 if not self.shards else len(self.data.tokens)
        pending = None if not self.shards else self._key(self.data)[self.queue]
        fresh = set(shards) - set(self.shards)
        self.data, self.shards = load_tokens(self.work, shards), shards
        mine = ~held_out(self.data.seeds) & (self.data.seeds % self.settings.processes == self.rank)
        self.rows = np.flatnonzero(mine)
        two = self.rows[self.data.attributes[self.rows][:, SECOND] != 0]
        self.rows = np.concatenate([self.rows, *[two] * (self.settings.pairs - 1)])
        if pending is not None:
            new = np.isin(self.data.seeds[self.rows] // SHARD, list(fresh))
            waiting = np.isin(self._key(self.data)[self.rows], pending)
            self.queue = self.rng.permutation(self.rows[new | waiting])
        if self.rank == 0:
            print(
                f"data: {len(shards)} shards, {old_rows} -> {len(self.data.tokens)} rows",
                flush=True,
            )

    @staticmethod
    def _key(data: TokenSet) -> np.ndarray:
        return data.seeds * 2 + data.mirrored

    def next(self) -> Batch:
        count = self.settings.batch
        while len(self.queue) < count:
            self.queue = np.concatenate([self.queue, self.rng.permutation(self.rows)])
        rows, self.queue = self.queue[:count], self.queue[count:]
        return make_batch(
            self.data, rows, self.reader, self.rng, self.settings.null, self.settings.noise
        )


def make_batch(
    data: TokenSet,
    rows: np.ndarray,
    reader: CaptionReader,
    rng: np.random.Generator,
    null: float = 0.0,
    noise: float = 0.0,
) -> Batch:
    """Joins rows of the data with freshly sampled captions."""
    scenes = [Scene.from_indices(a) for a in data.attributes[rows]]
    seeds = rng.integers(1 << 32, size=len(rows))
    ids, mask = reader.phrase(scenes, seeds)
    tokens = data.tokens[rows].astype(np.int64)
    replaced = rng.random(tokens.shape) < noise
    drop = rng.random(len(rows)) < null
    pairs = [
        i for i, s in enumerate(scenes) if s.pair and s.colour != s.second_colour and not drop[i]
    ]
    exchanged = [
        replace(s, colour=s.second_colour, second_colour=s.colour)
        for s in (scenes[i] for i in pairs)
    ]
    wrong_ids, wrong_mask = reader.phrase(exchanged, seeds[pairs])
    inputs = np.where(replaced, rng.permutation(tokens.ravel()).reshape(tokens.shape), tokens)
    return Batch(
        ids=ids,
        mask=mask,
        tokens=torch.from_numpy(tokens),
        inputs=torch.from_numpy(inputs),
        cells=torch.from_numpy(data.cells[rows]),
        facts=torch.from_numpy(facts(data.attributes[rows])),
        drop=torch.from_numpy(drop),
        pairs=torch.tensor(pairs, dtype=torch.int64),
        wrong_ids=wrong_ids,
        wrong_mask=wrong_mask,
    )
