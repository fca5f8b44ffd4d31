"""Drives an exported drafter as the recorded program did: sequence 0 conditional, 1 unconditional.

Shapes: R rows, H width of features, V ids, W expanded nodes of a level, k children of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
import torch.nn.functional as F
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

    def probabilities(self, logits: Tensor, depth: int = 0) -> Tensor:
        """logits [2,W,V] of nodes `depth` below the root -> [1,W,V]: temperature, top-p, top-k."""
        chosen = self.settings or {"temperature": 1.0, "top_k": 0, "top_p": 1.0}
        rows = logits.contiguous()
        statistics = engine.operators().guide_and_filter(
            rows,
            torch.tensor([self.scale]),
            torch.tensor([float(chosen["temperature"])]),
            torch.tensor([int(chosen["top_k"])]),
            torch.tensor([float(chosen["top_p"])]),
            "eagle",
        )
        return engine.operators().probabilities(rows, statistics)

    def guided(self, logits: Tensor) -> Tensor:
        """logits [2,...,V] -> [...,V]."""
        return logits[1] + (logits[0] - logits[1]) * self.scale


@dataclass
class RowWarper(Warper):
    """The same where a token of its own ends every row of an image; it is the last of V + 1."""

    columns: int
    generated: int  # codes and row ends up to the root

    def probabilities(self, logits: Tensor, depth: int = 0) -> Tensor:
        rows = F.pad(super().probabilities(logits), (0, 1))
        if (self.generated + depth + 1) % (self.columns + 1) == 0:
            rows = torch.zeros_like(rows)
            rows[..., -1] = 1
        return rows


def words(mask: Tensor) -> Tensor:
    """Visible columns [R,C] as words of 64 bits [1,R,ceil(C/64)]."""
    rows, columns = mask.shape
    padded = torch.zeros(rows, -(-columns // 64) * 64, dtype=torch.int64)
    padded[:, :columns] = mask
    bits = padded.view(rows, -1, 64) << torch.arange(64)
    return bits.sum(-1)[None]


class Drafting:
    """A drafter, its cache and how much of it is committed."""

    def __init__(self, module: Any, cache: Tensor, ids: Tensor) -> None:
        """ids: of the codes, and of the row end if there is one."""
        self.module, self.cache, self.ids = module, cache, ids
        self.reset()

    @classmethod
    def load(cls, bundle: Path, name: str) -> Drafting:
        manifest = engine.manifest(bundle)
        entry, tokens = manifest["drafters"][name], manifest["tokens"]
        shape = (1, 2, 2, entry["kv_heads"], entry["max_length"], entry["head_dim"])
        codes = range(tokens["first_image_id"], tokens["first_image_id"] + tokens["codebook_size"])
        ids = torch.tensor([*codes, *manifest["grids"][0]["row_end"]])
        return cls(engine.load_module(bundle, f"drafter-{name}"), torch.zeros(shape), ids)

    def reset(self) -> None:
        self.lengths = torch.zeros(2, dtype=torch.int64)  # committed rows

    @property
    def committed(self) -> int:
        """Rows of the conditional sequence."""
        return int(self.lengths[0])

    def logits(self, hidden: Tensor) -> Tensor:
        return self.module.logits(hidden.contiguous())

    def forward(
        self, features: Tensor, ids: Tensor, positions: Tensor, mask: Tensor, lengths: Tensor
    ) -> Tensor:
        """features [2,R,H], ids [R] or [2,R], positions [2,R], mask of words, lengths: `attend`."""
        embeddings = self.module.embed(ids.long().expand(2, -1).contiguous())
        rows = (embeddings, features.contiguous(), positions)
        return self.module(*rows, mask, lengths, self.cache)

    def extend(self, features: Tensor, ids: Tensor, valid: Tensor | None = None) -> Tensor:
        """Commits rows, or the first `valid` [2] of each sequence, behind the rest -> [2,R,H]."""
        rows = features.shape[1]
        positions = self.lengths[:, None] + torch.arange(rows)
        causal = torch.empty(0, dtype=torch.int64)
        hidden = self.forward(features, ids, positions, causal, self.lengths)
        self.lengths = self.lengths + (rows if valid is None else valid)
        return hidden

    def level(self, features: Tensor, codes: Tensor, mask: Tensor, depth: int) -> Tensor:
        """Rows of tree depth `depth` (from 1) -> hidden [2,R,H]; mask [R, all tree rows so far]."""
        rows = mask.shape[0]
        lengths = torch.stack([self.lengths, self.lengths + mask.shape[1] - rows])
        positions = (self.lengths[:, None] + (depth - 1)).expand(2, rows).contiguous()
        return self.forward(features, self.ids[codes.long()], positions, words(mask), lengths)


@dataclass
class Level:
    """What happened at one depth of a static tree."""

    nodes: list[Node]  # expanded, in order; their children are sampled
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
        codes = torch.stack([tokens[node[:-1]][node[-1]] for node in rows])
        features = torch.stack([hidden[node[:-1]] for node in rows], 1)
        out = drafting.level(features, codes, mask, depth)
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
    pool: Tensor  # [P] cumulative log-probabilities of all candidates
    passes: list[Tensor]  # hidden [2,k,H] of the levels


def root_to_leaf(tree: DynamicTree) -> set[tuple[int, ...]]:
    parents = tree.parents.tolist()
    paths = set()
    for leaf in set(range(len(parents))) - set(parents):
        path = [leaf]
        while parents[path[0]] >= 0:
            path.insert(0, parents[path[0]])
        paths.add(tuple(path))
    return paths


def conditional(probabilities: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor]:
    """p of every token given that those before it in its row were not sampled, and the mass left."""
    chosen = probabilities.double().gather(1, tokens)
    left = probabilities.double().sum(1, keepdim=True) - (chosen.cumsum(1) - chosen)
    return (chosen / left).clamp(0, 1), left


def draft_dynamic(
    drafting: Drafting, last: Tensor, root: int, warper: Warper, k: int, passes: int, nodes: int
) -> DynamicTree:
    """last [2,1,H]: hidden of the last committed row; `nodes` drafted nodes are kept."""
    ops = engine.operators()
    rows = warper.probabilities(drafting.logits(last))
    tokens, scores, frontier = ops.expand_dynamic(rows, torch.zeros(1, 1), k)
    pool_tokens, pool_scores, frontiers = [tokens], [scores], []
    features = last.expand(-1, k, -1)
    levels: list[Tensor] = []
    mask = torch.zeros(k, 0, dtype=torch.bool)
    for depth in range(1, passes + 1):
        frontiers.append(frontier)
        chosen = frontier[0]
        parents = chosen // k if depth > 1 else torch.arange(k)
        mask = torch.cat([mask[parents], torch.eye(k, dtype=torch.bool)], 1)
        hidden = drafting.level(features, pool_tokens[-1][0, chosen], mask, depth)
        levels.append(hidden)
        rows = warper.probabilities(drafting.logits(hidden), depth)
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
        pool[0],
        levels,
    )
