"""Trees of Medusa's candidates: the decisions of judge_tree on recorded logits."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from torch import Tensor

KINDS = ("methods/medusa/",)
EXACT, TYPICAL, PAPER = 0, 6, 0  # src/acceptance/rules.h


def judge(
    case: Case, turn: int, temperature: float, rule: int, bounds: list[float]
) -> tuple[list[int], Tensor]:
    """Accepted nodes, the root first, and the distribution [V] of the last token."""
    logits = case.tensors[f"round{turn}.tree_logits"].float()
    tokens = case.tensors[f"round{turn}.tree_tokens"].long()
    parents = case.tensors["tree.parent"].long()
    nodes = len(tokens)
    target = torch.softmax(logits / (temperature or 1.0), -1)
    path, count, _, final, status = engine.operators().judge_tree(
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


def test_greedy_decisions(case: Case) -> None:
    for result in results(case, "greedy"):
        check(result, *judge(case, result["round"], 0.0, EXACT, []))


def test_typical_decisions(case: Case) -> None:
    for result in results(case, "typical"):
        bounds = [result["posterior_threshold"], result["posterior_alpha"]]
        check(result, *judge(case, result["round"], result["temperature"], TYPICAL, bounds))
