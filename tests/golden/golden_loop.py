"""Speculative decoding of one guided image from a bundle's modules and operators, in Python.

It repeats LANTERN's program for LlamaGen, whose drafter also attends to the padding of the prompt.
Shapes: T prompt positions, N tree nodes (the root first), V ids, H width of features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
import torch.nn.functional as F
from golden_drafter import Drafting, Node, Warper, draft_dynamic, draft_static, words
from torch import Tensor

from models.llamagen.gpt import GPT

# In the order of the enumerations of src/acceptance/rules.h.
RULES = ["exact", "lantern", "lantern++", "traversal", "block"]
RESIDUALS = [
    "paper",
    "optimal",
    "official-static",
    "official-dynamic",
    "official-lumina-static",
    "official-lumina-dynamic",
]
BEYOND = 64  # rotary rows past the image, all zero: tree nodes may reach there


def padded_features(model: GPT, condition: Tensor, mask: Tensor) -> Tensor:
    """Features [2,T,H] of left-padded features [1,T,C] and of the null caption, as LANTERN's.

    It adds the causal and the padding mask, each with the smallest number instead of minus
    infinity. A padded row thus sees the padding up to itself and all that is not padding.
    """
    length = mask.shape[1]
    smallest = torch.finfo(torch.float32).min
    later = torch.ones(length, length).triu(1) > 0
    bias = torch.zeros(length, length).masked_fill(later, smallest)
    bias = bias + torch.zeros(length).masked_fill(mask[0] == 0, smallest)
    with torch.inference_mode():
        x = model.embed_condition(torch.cat([condition, model.unconditional(condition)]))
        for layer in model.layers:
            x = layer(x, model.rotation[:length], bias[None, None])
        return model.norm(x)


@dataclass
class Tree:
    """A drafted tree."""

    tokens: Tensor  # [N]
    parents: Tensor  # [N], root -1
    depths: Tensor  # [N]
    mask: Tensor  # [N,N] ancestors and the node itself
    rows: Tensor | None = (
        None  # [E,V] what the children of the nodes with children are sampled from
    )
    draft_rows: Tensor | None = None  # [N] row of every node's children, -1 for leaves


def static_tree(paths: Sequence[Sequence[int]]) -> tuple[list[Node], Tree]:
    """Nodes of child-rank paths by depth and path, the root first, and their tree; tokens are 0."""
    nodes: list[Node] = sorted([(), *map(tuple, paths)], key=lambda node: (len(node), node))
    parents = torch.tensor([-1, *(nodes.index(node[:-1]) for node in nodes[1:])])
    mask = torch.tensor([[node[: len(seen)] == seen for seen in nodes] for node in nodes])
    depths = torch.tensor([len(node) for node in nodes])
    return nodes, Tree(torch.zeros_like(parents), parents, depths, mask)


class Replay:
    """Target and drafter after the prompt; sequence 0 is conditional, 1 unconditional."""

    def __init__(self, bundle: Path, drafter: str, features: Tensor, warper: Warper) -> None:
        """features [1,n,C]: of the prompt without padding."""
        manifest = engine.manifest(bundle)
        shape = manifest["cache"]
        self.warper, self.valid = warper, features.shape[1]
        self.length = int(manifest["prompt"]["length"])
        self.target = engine.load_module(bundle, "target")
        self.target.rotary = F.pad(self.target.rotary, (0, 0, 0, 0, 0, BEYOND))
        slots = shape["max_length"] + BEYOND
        self.cache = torch.zeros(shape["layers"], 2, 2, shape["kv_heads"], slots, shape["head_dim"])
        self.drafting = Drafting.load(bundle, drafter)
        self.tokens: list[int] = []  # committed; the root of the next tree is the one after them
        mask = torch.ones(1, self.valid, dtype=torch.int64)
        rows = (self.target.embed_condition(features, mask), self.target.embed_unconditional(mask))
        positions = torch.arange(self.length - self.valid, self.length).expand(2, -1).contiguous()
        causal, start = torch.empty(0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        self.prompt, _ = self.target(torch.cat(rows), positions, causal, start, self.cache)
        self.first_logits = self.target.logits(self.prompt[:, -1:].contiguous())

    @property
    def lengths(self) -> Tensor:
        return torch.full((2,), self.valid + len(self.tokens))

    def start(self, padded: Tensor, root: int) -> Tensor:
        """Runs the drafter over the prompt [2,T,H] and the first token -> hidden of the last row."""
        prompt = torch.cat([padded[:, : self.length - self.valid], self.prompt], 1)
        ids = torch.zeros(self.length, dtype=torch.int64)
        ids[-1] = root
        return self.drafting.extend(prompt, ids)[:, -1:]

    def verify(self, tree: Tree) -> tuple[Tensor, Tensor]:
        """The target's features [2,N,H] of the tree and its logits [2,N,V]."""
        x = self.target.embed(tree.tokens.expand(2, -1).contiguous())
        positions = self.length + len(self.tokens) + tree.depths
        hidden, features = self.target(
            x, positions.expand(2, -1).contiguous(), words(tree.mask), self.lengths, self.cache
        )
        return features, self.target.logits(hidden)

    def commit(self, tree: Tree, features: Tensor, path: Sequence[int], root: int) -> Tensor:
        """Keeps the accepted path (root first) -> the drafter's hidden of the last row."""
        nodes = torch.tensor([list(path)])
        count = torch.tensor([len(path) - 1])
        engine.operators().compact_cache(self.cache, self.lengths, nodes, count)
        kept = [int(tree.tokens[node]) for node in path]
        self.tokens += kept
        ids = torch.tensor([*kept[1:], root])
        return self.drafting.extend(features[:, list(path)], ids)[:, -1:]

    def draft_dynamic(self, last: Tensor, root: int, shape: dict[str, int], nodes: int) -> Tree:
        """shape: top_k and depth of the drafter's description."""
        tree = draft_dynamic(
            self.drafting, last, root, self.warper, shape["top_k"], shape["depth"], nodes
        )
        return Tree(tree.tokens, tree.parents, tree.depths, tree.mask)

    def draft_static(
        self, last: Tensor, root: int, paths: Sequence[Sequence[int]], tokens: Tensor | None = None
    ) -> Tree:
        """Children are the most probable ids, or the recorded `tokens` [N]."""
        nodes, tree = static_tree(paths)
        children: dict[Node, Tensor] = {}
        rows: list[Tensor] = []
        tree.draft_rows = torch.full((len(nodes),), -1)
        zero = torch.zeros(1, dtype=torch.int64)
        count = 1 + max(path[-1] for path in paths)
        for level in draft_static(self.drafting, paths, last, children):
            probabilities = self.warper.probabilities(level.logits)
            index = torch.tensor([nodes.index(node) for node in level.nodes])
            tree.draft_rows[index] = torch.arange(len(index)) + len(children)
            sampled, _ = engine.operators().sample_children(
                probabilities, zero, zero, index, count, False
            )
            rows.append(probabilities[0])
            for node, best in zip(level.nodes, sampled[0], strict=True):
                children[node] = best
                if tokens is not None:
                    own = [i for i, other in enumerate(nodes) if other and other[:-1] == node]
                    children[node] = tokens[own]
        tree.rows = torch.cat(rows)
        chosen = [int(children[node[:-1]][node[-1]]) for node in nodes[1:]]
        tree.tokens = torch.tensor([root, *chosen])
        return tree


def verified(
    tree: Tree, target: Tensor, temperature: float, uniforms: Tensor | None = None, **options: Any
) -> tuple[list[int], int, Tensor]:
    """verify_tree for one image -> accepted path, last token, the distribution it comes from.

    target [N,V]; options: rule, residual, neighbours, k, bound, sampled.
    """
    nodes = len(tree.tokens)
    neighbours = options.get("neighbours")
    given = torch.zeros(1, nodes + 1)
    if uniforms is not None:
        given[0, 1 : 1 + len(uniforms)] = uniforms
    rows = tree.rows if tree.rows is not None else torch.zeros(0, target.shape[-1])
    draft_rows = tree.draft_rows if tree.draft_rows is not None else torch.full((nodes,), -1)
    depth = int(tree.depths.max())
    path, count, token, final, status = engine.operators().verify_tree(
        target[None].contiguous(),
        rows[None].contiguous(),
        tree.tokens[None].contiguous(),
        tree.parents[None].contiguous(),
        draft_rows[None].contiguous(),
        given,
        torch.tensor([temperature]),
        neighbours if neighbours is not None else torch.empty(0, dtype=torch.int32),
        RULES.index(options.get("rule", "exact")),
        RESIDUALS.index(options.get("residual", "paper")),
        options.get("sampled", False),
        options.get("k", 0),
        torch.tensor([options["bound"]]) if "bound" in options else torch.empty(0),
        0,
        depth,
    )
    assert int(status[0]) == 0, f"verify_tree: status {int(status[0])}"
    return path[0, : int(count[0]) + 1].tolist(), int(token[0]), final[0]
