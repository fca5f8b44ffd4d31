"""Drives an exported drafter as the recorded program did: sequence 0 conditional, 1 unconditional.

Shapes: R rows, H width of features, V ids, W expanded nodes of a level, k children of each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from torch import Tensor

Node = tuple[int, ...]  # child ranks from the root


@dataclass
class Warper:
    """What is done to guided logits before children are taken; none when `settings` is None."""

    scale: float
    settings: dict[str, Any] | None

    @property
    def sampled(self) -> bool:
        return self.settings is not None

    def probabilities(self, logits: Tensor) -> Tensor:
        """logits [2,W,V] -> [1,W,V]: temperature, then top-p, then top-k."""
        chosen = self.settings or {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        return engine.operators().guide_and_filter(
            logits.contiguous(),
            torch.tensor([self.scale]),
            torch.tensor([float(chosen["temperature"])]),
            torch.tensor([int(chosen["top_k"])]),
            torch.tensor([float(chosen["top_p"])]),
            "eagle",
        )

    def guided(self, logits: Tensor) -> Tensor:
        """logits [2,...,V] -> [...,V]."""
        return logits[1] + (logits[0] - logits[1]) * self.scale


def words(mask: Tensor) -> Tensor:
    """Visible columns [R,C] as words of 64 bits [1,R,ceil(C/64)]."""
    rows, columns = mask.shape
    padded = torch.zeros(rows, -(-columns // 64) * 64, dtype=torch.int64)
    padded[:, :columns] = mask
    bits = padded.view(rows, -1, 64) << torch.arange(64)
    return bits.sum(-1)[None]


class Drafting:
    """A drafter, its cache and how much of it is committed."""

    def __init__(self, module: Any, cache: Tensor) -> None:
        self.module, self.cache = module, cache
        self.committed = 0

    @classmethod
    def load(cls, bundle: Path, name: str) -> Drafting:
        manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        entry = manifest["drafters"][name]
        shape = (1, 2, 2, entry["kv_heads"], entry["max_length"], entry["head_dim"])
        return cls(engine.load_module(bundle, f"drafter-{name}"), torch.zeros(shape))

    def logits(self, hidden: Tensor) -> Tensor:
        return self.module.logits(hidden.contiguous())

    def forward(
        self, features: Tensor, ids: Tensor, positions: Tensor, mask: Tensor, lengths: Tensor
    ) -> Tensor:
        """features [2,R,H], ids and positions [R], mask of words, lengths as in `attend`."""
        embeddings = self.module.embed(ids.long().expand(2, -1).contiguous())
        positions = positions.long().expand(2, -1).contiguous()
        return self.module(embeddings, features.contiguous(), positions, mask, lengths, self.cache)

    def extend(self, features: Tensor, ids: Tensor) -> Tensor:
        """Commits rows behind what is committed -> hidden [2,R,H]."""
        rows = len(ids)
        positions = torch.arange(self.committed, self.committed + rows)
        lengths = torch.full((2,), self.committed)
        causal = torch.empty(0, dtype=torch.int64)
        hidden = self.forward(features, ids, positions, causal, lengths)
        self.committed += rows
        return hidden

    def level(self, features: Tensor, ids: Tensor, mask: Tensor, depth: int) -> Tensor:
        """Rows of tree depth `depth` (from 1) -> hidden [2,R,H]; mask [R, all tree rows so far]."""
        written = self.committed + mask.shape[1] - mask.shape[0]
        lengths = torch.tensor([[self.committed] * 2, [written] * 2])
        positions = torch.full((len(ids),), self.committed + depth - 1)
        return self.forward(features, ids, positions, words(mask), lengths)


@dataclass
class Level:
    """What happened at one depth of a static tree."""

    nodes: list[Node]  # expanded, in order; their children are drawn
    logits: Tensor  # [2,W,V]
    hidden: Tensor  # [2,W,H]


def expanded_nodes(paths: Sequence[Sequence[int]]) -> list[Node]:
    """Nodes with children, the root first, then by depth and path."""
    parents = {tuple(path[:-1]) for path in paths}
    return sorted(parents, key=lambda path: (len(path), path))


def draft_static(
    drafting: Drafting, paths: Sequence[Sequence[int]], last: Tensor, tokens: dict[Node, Tensor]
) -> Iterator[Level]:
    """Levels of a static tree. last [2,1,H]: hidden of the last committed row.

    Before it goes on, the caller puts the children [k] of every node of a level into `tokens`.
    """
    nodes = expanded_nodes(paths)
    yield Level([()], drafting.logits(last), last)
    hidden = {(): last[:, 0]}
    seen: list[Node] = []
    for depth in range(1, max(map(len, nodes)) + 1):
        rows = [node for node in nodes if len(node) == depth]
        seen += rows
        mask = torch.tensor([[node[: len(s)] == s for s in seen] for node in rows])
        ids = torch.stack([tokens[node[:-1]][node[-1]] for node in rows])
        features = torch.stack([hidden[node[:-1]] for node in rows], 1)
        out = drafting.level(features, ids, mask, depth)
        hidden.update({node: out[:, i] for i, node in enumerate(rows)})
        yield Level(rows, drafting.logits(out), out)


@dataclass
class DynamicTree:
    """An EAGLE-2 tree; node 0 is the root."""

    tokens: Tensor  # [N]
    parents: Tensor  # [N]
    depths: Tensor  # [N]
    mask: Tensor  # [N,N] ancestors and the node itself
    scores: Tensor  # [N-1] cumulative log-probabilities
    pool_index: Tensor  # [N-1]


def draft_dynamic(
    drafting: Drafting, last: Tensor, root: int, warper: Warper, k: int, passes: int, nodes: int
) -> DynamicTree:
    """last [2,1,H]: hidden of the last committed row; `nodes` drafted nodes are kept."""
    ops = engine.operators()
    rows = warper.probabilities(drafting.logits(last))
    tokens, scores, frontier = ops.expand_dynamic(rows, torch.zeros(1, 1), k)
    pool_tokens, pool_scores, frontiers = [tokens], [scores], []
    features = last.expand(-1, k, -1)
    mask = torch.zeros(k, 0, dtype=torch.bool)
    for depth in range(1, passes + 1):
        frontiers.append(frontier)
        chosen = frontier[0]
        parents = chosen // k if depth > 1 else torch.arange(k)
        mask = torch.cat([mask[parents], torch.eye(k, dtype=torch.bool)], 1)
        hidden = drafting.level(features, pool_tokens[-1][0, chosen], mask, depth)
        rows = warper.probabilities(drafting.logits(hidden))
        above = pool_scores[-1].gather(1, frontier)
        tokens, scores, frontier = ops.expand_dynamic(rows, above, k)
        features = hidden[:, frontier[0] // k]
        pool_tokens.append(tokens)
        pool_scores.append(scores)
    pool = torch.cat(pool_scores, 1)
    tree_tokens, parents, depths, bits, index = ops.rerank_dynamic(
        torch.cat(pool_tokens, 1), pool, torch.stack(frontiers, 1), nodes
    )
    tree_tokens[0, 0] = root
    columns = torch.arange(nodes + 1)
    return DynamicTree(
        tree_tokens[0],
        parents[0],
        depths[0],
        (bits[0] >> columns) & 1 == 1,
        pool[0, index[0]],
        index[0],
    )
