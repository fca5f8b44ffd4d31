"""LANTERN's drafter of the Chameleon family in plain PyTorch and double precision, without caches.

Shapes: R rows, C rows so far, H width of features, D width of a head, V ids, k children of a node.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from golden_cases import Case
from golden_drafter import Node, expanded_nodes
from safetensors.torch import save_file
from torch import Tensor

WEIGHTS = "pytorch_model.bin"


class PlainDrafter:
    """One sequence; rows of a tree see the committed ones and those that their mask shows."""

    def __init__(self, weights: dict[str, Tensor], dims: dict[str, Any]) -> None:
        self.weights = {name: weight.double() for name, weight in weights.items()}
        self.dims = dims
        self.keys = self.values = torch.empty(0)  # [heads,C,D]
        self.committed = 0

    def weight(self, name: str) -> Tensor:
        return self.weights[f"layers.0.{name}.weight"]

    def norm(self, x: Tensor, name: str) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], self.weight(name), self.dims["rms_norm_eps"])

    def rotate(self, x: Tensor, positions: Tensor) -> Tensor:
        """x [heads,R,D]; features i and i + D/2 turn together."""
        half = x.shape[-1] // 2
        theta = self.dims["rope_theta"] ** -(torch.arange(half).double() / half)
        cos, sin = (f(positions.double()[:, None] * theta) for f in (torch.cos, torch.sin))
        a, b = x[..., :half], x[..., half:]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def heads(self, x: Tensor, part: str, count: int) -> Tensor:
        """x [R,H] -> [count,R,D], normed for queries and keys."""
        out = (x @ self.weight(f"self_attn.{part}_proj").T).unflatten(-1, (count, -1))
        if part != "v":
            out = F.layer_norm(out, out.shape[-1:], eps=self.dims["qk_norm_eps"])
            norm = f"layers.0.self_attn.{part}_norm"
            out = out * self.weights[f"{norm}.weight"] + self.weights[f"{norm}.bias"]
        return out.transpose(0, 1)

    def rows(self, features: Tensor, ids: Tensor, positions: Tensor, seen: Tensor) -> Tensor:
        """features [R,H], ids [R], seen [R,C] of all rows, these included -> hidden [R,H]."""
        count, kv_count = self.dims["heads"], self.dims["kv_heads"]
        embeddings = self.weights["embed_tokens.weight"][ids]
        x = torch.cat([embeddings, features.double()], -1) @ self.weights["fc.weight"].T
        x = x + self.weights["fc.bias"]
        h = self.norm(x, "input_layernorm")
        q = self.rotate(self.heads(h, "q", count), positions)
        k = self.rotate(self.heads(h, "k", kv_count), positions)
        v = self.heads(h, "v", kv_count)
        # Every key/value head serves heads / kv_heads neighbouring query heads.
        shared = torch.arange(count) // (count // kv_count)
        self.keys = torch.cat([self.keys, k[shared]], 1) if len(self.keys) else k[shared]
        self.values = torch.cat([self.values, v[shared]], 1) if len(self.values) else v[shared]
        scores = q @ self.keys.transpose(1, 2) * q.shape[-1] ** -0.5
        mixed = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ self.values
        x = x + mixed.transpose(0, 1).flatten(1) @ self.weight("self_attn.o_proj").T
        h = self.norm(x, "post_attention_layernorm")
        gated = F.silu(h @ self.weight("mlp.gate_proj").T) * (h @ self.weight("mlp.up_proj").T)
        return x + gated @ self.weight("mlp.down_proj").T

    def commit(self, features: Tensor, ids: Tensor) -> Tensor:
        """Rows of the sequence -> hidden [R,H]."""
        self.forget()
        total = self.committed + len(ids)
        seen = torch.ones(total, total, dtype=torch.bool).tril()[self.committed :]
        hidden = self.rows(features, ids, torch.arange(self.committed, total), seen)
        self.committed = total
        return hidden

    def level(self, features: Tensor, ids: Tensor, mask: Tensor, depth: int) -> Tensor:
        """Rows of tree depth `depth` (from 1), mask [R, all tree rows so far] -> hidden [R,H]."""
        seen = torch.cat([torch.ones(len(ids), self.committed, dtype=torch.bool), mask], 1)
        return self.rows(features, ids, torch.full_like(ids, self.committed + depth - 1), seen)

    def forget(self) -> None:
        """Drops the rows of the last tree."""
        self.keys, self.values = (
            t[:, : self.committed] if len(t) else t for t in (self.keys, self.values)
        )


class Recording:
    """What a case records of the drafter, computed from the case's weights and inputs.

    Inputs are the features and ids that every call brings, and the sampled ids of static trees.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.dims, self.tree = case, case.info["dims"], case.info["tree"]
        self.tensors: dict[str, Tensor] = {}
        self.smallest_gap = torch.inf  # between the last score that is kept and the next one
        weights = torch.load(case.folder / WEIGHTS, weights_only=True)
        modes = {name.partition(".")[0] for name in case.tensors if ".call" in name}
        for mode in sorted(modes):
            self.pair = [PlainDrafter(weights, self.dims) for _ in range(2)]
            calls = {m[0] for n in case.tensors if (m := re.match(rf"{mode}\.call\d+", n))}
            for call in sorted(calls):
                last = self.commit(call)
                grow = self.static if mode == "static" else self.dynamic
                grow(call, last, mode != "greedy")

    def put(self, name: str, tensor: Tensor) -> None:
        """Keeps what the case has recorded, too."""
        if self.case.has(name):
            self.tensors[name] = tensor.to(self.case.tensors[name].dtype).contiguous()

    def commit(self, call: str) -> Tensor:
        """Commits what a call brings -> hidden [2,H] of the last rows."""
        features, ids = self.case.tensors[f"{call}.hidden"], self.case.long(f"{call}.input_ids")
        rows = features.shape[1]
        hidden = torch.zeros(features.shape, dtype=torch.float64)
        for sequence, drafter in enumerate(self.pair):
            count = rows
            if call.endswith("call0"):  # the shorter sequence is padded in front
                count = int(self.case.tensors["padding_mask"][sequence].sum())
            fresh = features[sequence, -count:], ids[sequence, -count:]
            hidden[sequence, -count:] = drafter.commit(*fresh)
        self.put(f"{call}.pass0.hidden_out", hidden)
        return hidden[:, -1]

    def level(self, name: str, features: Tensor, ids: Tensor, mask: Tensor, depth: int) -> Tensor:
        """features [2,R,H] -> hidden [2,R,H]."""
        pairs = zip(self.pair, features, strict=True)
        hidden = torch.stack([d.level(f, ids, mask, depth) for d, f in pairs])
        committed = torch.tensor([[d.committed] for d in self.pair])
        self.put(f"{name}.hidden_in", features)
        self.put(f"{name}.ids", ids.expand(2, -1))
        self.put(f"{name}.pos", (committed + depth - 1).expand(2, len(ids)))
        self.put(f"{name}.tree_mask", mask[None, None])
        self.put(f"{name}.hidden_out", hidden)
        return hidden

    def scores(self, hidden: Tensor, warped: bool) -> Tensor:
        """hidden [2,R,H] -> log-probabilities [R,V] of the next id, guided and filtered."""
        ids, sampling = self.case.info["token_ids"], self.case.info["sampling"]
        warpers = sampling["warpers"]
        assert warpers["top_p"] == 1, "top-p is not written here"
        logits = hidden @ self.case.tensors["head_weight"].double().T
        guided = logits[1] + sampling["cfg_scale"] * (logits[0] - logits[1])
        images = torch.zeros(guided.shape[-1], dtype=torch.bool)
        images[ids["image_first"] : ids["image_first"] + ids["image_count"]] = True
        guided = guided.masked_fill(~images, -torch.inf)
        if warped:
            guided = guided / warpers["temperature"]
            top = guided.topk(warpers["top_k"] + 1).values
            self.note_gap(top[:, -2] - top[:, -1])
            guided = guided.masked_fill(guided < top[:, -2:-1], -torch.inf)
        return guided.log_softmax(-1)

    def note_gap(self, gaps: Tensor) -> None:
        self.smallest_gap = min(self.smallest_gap, float(gaps.min()))

    def best(self, scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The largest scores [...,count] and their indices, largest first."""
        values, index = scores.topk(min(count + 1, scores.shape[-1]))
        self.note_gap((values[..., :-1] - values[..., 1:]).abs())
        return values[..., :count], index[..., :count]

    def dynamic(self, call: str, last: Tensor, warped: bool) -> None:
        """last [2,H]. The pool is in the order of levels, slots and ranks."""
        k, depth = self.tree["top_k"], self.tree["depth"]
        first = self.scores(last[:, None], warped)
        self.put(f"{call}.logits_first", last @ self.case.tensors["head_weight"].double().T)
        self.put(f"{call}.logprobs_first", first)
        scores, tokens = self.best(first[0], k)
        pool, ids, parents, start = [scores], [tokens], [torch.full((k,), -1)], 0
        slots = torch.arange(k)  # pool indices of the nodes that are expanded
        features = last[:, None].expand(-1, k, -1)
        mask = torch.eye(k, dtype=torch.bool)
        for level in range(1, depth + 1):
            hidden = self.level(f"{call}.pass{level}", features, tokens, mask, level)
            rows = self.scores(hidden, warped)
            if level == 1:
                self.put(f"{call}.logprobs_level1", rows)
            found, children = self.best(rows, k)
            pool.append((found + scores[:, None]).flatten())
            ids.append(children.flatten())
            parents.append(slots.repeat_interleave(k))
            start += len(pool[-2])
            scores, chosen = self.best(pool[-1], k)
            slots, tokens = start + chosen, ids[-1][chosen]
            features = hidden[:, chosen // k]
            mask = torch.cat([mask[chosen // k], torch.eye(k, dtype=torch.bool)], 1)
        self.select(call, torch.cat(pool), torch.cat(ids), torch.cat(parents))

    def select(self, call: str, pool: Tensor, ids: Tensor, parents: Tensor) -> None:
        """The best nodes of the pool; parents [P] as pool indices, -1 for the root."""
        kept = self.best(pool, self.tree["selected_nodes"])[1].sort().values
        node_of = {-1: 0, **{int(index): node for node, index in enumerate(kept, 1)}}
        above = [-1, *(node_of[int(parents[index])] for index in kept)]
        paths = [[0]]
        for node, parent in enumerate(above[1:], 1):
            paths.append([*paths[parent], node])
        mask = torch.tensor([[node in path for node in range(len(paths))] for path in paths])
        leaves = [paths[node] for node in range(len(paths)) if node not in above]
        longest = max(map(len, leaves))
        padded = torch.tensor([[*path, *[-1] * (longest - len(path))] for path in leaves])
        root = self.case.long(f"{call}.input_ids")[0, -1:]
        self.put(f"{call}.draft_tokens", torch.cat([root, ids[kept]]))
        self.put(f"{call}.tree_mask", mask)
        self.put(f"{call}.tree_position_ids", torch.tensor([len(path) - 1 for path in paths]))
        self.put(f"{call}.retrieve_indices", padded)
        self.put(f"{call}.pool_scores", pool)
        self.put(f"{call}.selected_pool_index", kept)
        self.put(f"{call}.selected_scores", pool[kept])

    def static(self, call: str, last: Tensor, warped: bool) -> None:
        """last [2,H]; children are the recorded samples."""
        nodes = expanded_nodes([tuple(path) for path in self.tree["static_tree_paths"]])
        sampled = dict(zip(nodes, self.case.long(f"{call}.sampled_tokens"), strict=True))
        hidden: dict[Node, Tensor] = {(): last}
        seen: list[Node] = []
        rows = [self.scores(last[:, None], warped)]
        for depth in range(1, max(map(len, nodes)) + 1):
            level = [node for node in nodes if len(node) == depth]
            seen += level
            mask = torch.tensor([[node[: len(s)] == s for s in seen] for node in level])
            ids = torch.stack([sampled[node[:-1]][node[-1]] for node in level])
            features = torch.stack([hidden[node[:-1]] for node in level], 1)
            out = self.level(f"{call}.pass{depth}", features, ids, mask, depth)
            hidden.update({node: out[:, i] for i, node in enumerate(level)})
            rows.append(self.scores(out, warped))
        probabilities = torch.cat(rows).exp()
        chances = probabilities.gather(1, torch.stack([sampled[node] for node in nodes]))
        left = 1 - (chances.cumsum(1) - chances)
        self.put(f"{call}.probs", probabilities)
        self.put(f"{call}.conditional_probs", (chances / left).nan_to_num(0, 0, 0).clamp(0, 1))


def grouped_case(case: Case, kept: list[int], folder: Path) -> Case:
    """The case with the key/value heads `kept` alone, recorded anew."""
    weights = torch.load(case.folder / WEIGHTS, weights_only=True)
    heads = case.info["dims"]["kv_heads"]
    for part in ("k_proj.weight", "v_proj.weight", "k_norm.weight", "k_norm.bias"):
        name = f"layers.0.self_attn.{part}"
        weights[name] = weights[name].unflatten(0, (heads, -1))[kept].flatten(0, 1).clone()
    torch.save(weights, folder / WEIGHTS)
    settings = json.loads((case.folder / "config.json").read_text(encoding="utf-8"))
    settings["num_key_value_heads"] = len(kept)
    (folder / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    dims = {**case.info["dims"], "kv_heads": len(kept)}
    grouped = Case(f"{case.name}_grouped", folder)
    write(grouped, {**case.info, "dims": dims}, case.tensors)
    recording = Recording(Case(case.name, folder))
    gap = {"smallest_gap_in_any_top_k_decision": recording.smallest_gap}
    info = {**case.info, "dims": dims, "self_check": {**case.info["self_check"], **gap}}
    write(grouped, info, {**case.tensors, **recording.tensors})
    return grouped


def write(case: Case, info: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    (case.folder / "case.json").write_text(json.dumps(info), encoding="utf-8")
    fresh = case.folder / "io.safetensors.new"  # tensors may be mapped from the old file
    save_file(tensors, fresh)
    fresh.replace(case.folder / "io.safetensors")
