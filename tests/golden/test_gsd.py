"""Groups of tokens that are alike: the decisions of verify_tree on recorded windows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from golden_jacobi import Pass, Verdict, tolerance
from torch import Tensor

KINDS = ("methods/gsd/",)
GROUPED = 7  # src/acceptance/rules.h


class Scenario:
    """A window's rows and drafts, verified once."""

    def __init__(self, case: Case, info: dict[str, Any]) -> None:
        self.case = case
        self.info = info
        settings = case.info["settings"]
        self.bounds = (settings["probability_difference"], settings["squared_distance"])
        drafts = self["tokens"].long()
        self.window = Pass(
            self["target"], self["draft"], torch.cat([torch.zeros(1).long(), drafts])
        )

    def __getitem__(self, name: str) -> Tensor:
        return self.case.tensors[f"s{self.info['scenario']}.{name}"]

    def has(self, name: str) -> bool:
        return self.case.has(f"s{self.info['scenario']}.{name}")

    def where(self) -> str:
        return f"{self.case.name} scenario {self.info['scenario']}"

    def verify(self, window: Pass, tests: Tensor, last: float) -> Verdict:
        embedding = self.case.tensors["embedding"].contiguous()
        return window.verify(tests, last, GROUPED, self.bounds, embedding)

    def alone(self, row: int) -> Pass:
        """One draft and its rows."""
        target, draft = self.window.target, self.window.draft
        tokens = self.window.tokens[[0, row + 1]]
        return Pass(target[row : row + 2], draft[row : row + 1], tokens)


def scenarios(case: Case) -> Iterator[Scenario]:
    yield from (Scenario(case, info) for info in case.info["scenarios"])


def test_decisions(case: Case) -> None:
    for each in scenarios(case):
        last = float(each["residual_u"]) if each.has("residual_u") else 0.5
        verdict = each.verify(each.window, each["accept_u"], last)
        assert verdict.accepted == each.info["accepted"], each.where()
        kept = verdict.accepted
        assert verdict.tokens[:kept] == each["tokens"][:kept].tolist(), each.where()
        allowed = tolerance(case, "probabilities")
        distribution = each["residual"] if each.has("residual") else each["target"][-1]
        engine.assert_close(each.where(), verdict.final, distribution, allowed)
        if each.has("residual_u"):
            assert verdict.tokens[-1] == each.info["resampled_token"], each.where()


def test_acceptance_probabilities(case: Case) -> None:
    """Every draft by itself, with uniforms on both sides of the recorded probability."""
    margin = 10 * tolerance(case, "probabilities")
    tested = 0
    for each in scenarios(case):
        for row, chance in enumerate(each["accept_probability"].tolist()):
            if row in each.info["rows_with_removed_ids_in_slice"]:
                continue  # the order among removed ids is undefined
            tried = each.alone(row)
            if chance > margin:
                below = torch.tensor([min(chance, 1.0) * (1 - margin)])
                assert each.verify(tried, below, 0.5).accepted == 1, (each.where(), row)
            if chance < 1 - margin:
                above = torch.tensor([chance + margin])
                assert each.verify(tried, above, 0.5).accepted == 0, (each.where(), row)
            tested += 1
    assert tested
