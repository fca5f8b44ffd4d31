"""Medusa's heads and candidates, and the decisions of verify_tree on recorded logits."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from safetensors.torch import load_file
from torch import Tensor

from models.heads.medusa import Heads, HeadsConfig
from models.heads.medusa_module import HeadsModule

KINDS = ("methods/medusa/",)
EXACT, TYPICAL, PAPER = 0, 6, 0  # src/acceptance/rules.h


def verify(
    case: Case, turn: int, temperature: float, rule: int, bounds: list[float]
) -> tuple[list[int], Tensor]:
    """Accepted nodes, the root first, and the distribution [V] of the last token."""
    logits = case.tensors[f"round{turn}.tree_logits"].float()
    tokens = case.tensors[f"round{turn}.tree_tokens"].long()
    parents = case.tensors["tree.parent"].long()
    nodes = len(tokens)
    target = torch.softmax(logits / (temperature or 1.0), -1)
    path, count, _, final, status = engine.operators().verify_tree(
        target[None], target[None, :0], tokens[None], parents[None], torch.full((1, nodes), -1),
        torch.zeros(1, nodes), torch.tensor([temperature]), torch.empty(0, dtype=torch.int32),
        rule, PAPER, False, 0, torch.tensor(bounds), 0, nodes - 1,
    )  # fmt: skip
    assert int(status) == 0
    return path[0, : int(count) + 1].tolist(), final[0]


def results(case: Case, rule: str) -> list[dict[str, Any]]:
    found = [result for result in case.info["results"] if result["rule"] == rule]
    assert found, f"{case.name}: no results of rule {rule}"
    return found


def check(result: dict[str, Any], path: list[int], final: Tensor) -> None:
    """Padding behind a leaf is never accepted: `expected`, not `official`."""
    expected = result["expected"]
    assert path == expected["path_nodes"][: expected["accept_length"] + 1], result
    assert int(final.argmax()) == expected["next_root"], result


def test_heads_and_candidates(case: Case) -> None:
    """Plain and scripted heads give the recorded logits; nodes are their most probable tokens."""
    dims = case.info["dims"]
    shape = (dims["hidden"], dims["vocabulary"], dims["heads"], dims["res_blocks_per_head"])
    heads = Heads(HeadsConfig(*shape)).requires_grad_(False)
    heads.load_state_dict(load_file(case.folder / "weights.safetensors"))
    engine.operators()
    module = torch.jit.script(HeadsModule(heads))
    module.prepare(torch.empty(0))
    hidden, expected = case.tensors["round0.hidden"], case.tensors["round0.medusa_logits"]
    plain = torch.stack([heads.logits(hidden, head) for head in range(len(heads))])
    torch.testing.assert_close(plain, expected, atol=2e-5, rtol=0)
    scripted = module.heads(hidden[None, None])[0]
    torch.testing.assert_close(scripted, expected, atol=2e-5, rtol=0)
    ranked = scripted.topk(dims["candidates_per_head"]).indices
    choices = sorted(case.info["choices"], key=lambda path: (len(path), path))
    tokens = [int(ranked[len(path) - 1, path[-1]]) for path in choices]
    assert tokens == case.tensors["round0.tree_tokens"][1:].tolist()


def test_greedy_decisions(case: Case) -> None:
    for result in results(case, "greedy"):
        check(result, *verify(case, result["round"], 0.0, EXACT, []))


def test_typical_decisions(case: Case) -> None:
    for result in results(case, "typical"):
        bounds = [result["posterior_threshold"], result["posterior_alpha"]]
        check(result, *verify(case, result["round"], result["temperature"], TYPICAL, bounds))
