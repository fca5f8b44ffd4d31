"""guide_and_filter and sample against the recorded rows, in both orders."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from torch import Tensor

KINDS = ("acceptance/sampling_filters",)


def filtered(case: Case, row: dict[str, Any], order: str) -> Tensor:
    """Probabilities [1, V] of one recorded row."""
    guidance = row.get("cfg_scale")
    if guidance is None:
        logits = case.tensors[f"{row['id']}.logits"][None]
    else:
        logits = torch.stack([case.tensors[f"{row['id']}.{half}"] for half in ("cond", "uncond")])
    settings = (row["temperature"], row["top_k"], row["top_p"])
    return engine.probabilities(logits, *settings, order=order, guidance=guidance)


def sample(probabilities: Tensor, uniform: float, temperature: float) -> int:
    return int(
        engine.operators().sample(
            probabilities[None], torch.tensor([[uniform]]), torch.tensor([temperature])
        )
    )


def too_close(case: Case, row: dict[str, Any]) -> bool:
    """The two best logits differ, but by less than fp32 probabilities can tell apart."""
    name = "combined" if "cfg_scale" in row else "logits"
    logits = case.tensors[f"{row['id']}.{name}"].double()
    best = logits.sort(descending=True).values[:2].tolist()
    return len(best) == 2 and 0 < best[0] - best[1] < 1e-5 * 1e-6


@pytest.mark.parametrize("order", ["ar", "eagle"])
def test_rows(case: Case, order: str) -> None:
    tolerance = case.tolerance("probs")
    for row in case.info["cases"]:
        where = f"{row['id']} ({order})"
        probabilities = filtered(case, row, order)
        note = row.get(order, "")
        if note == "bad row":
            assert not probabilities.any(), f"{where}: a bad row has no distribution"
            assert sample(probabilities, 0.5, row["temperature"]) == -1, where
        elif note.startswith("greedy"):
            assert sample(probabilities, 0.999, row["temperature"]) == row["argmax"], where
        else:
            expected = case.tensors[f"{row['id']}.{order}.probs"][None]
            engine.assert_close(where, probabilities, expected, tolerance)
            engine.assert_same_support(where, probabilities, expected)
            # Recorded samples use the uniform at temperature 0 as well.
            warmed = max(row["temperature"], 1e-5)
            assert sample(probabilities, row[f"{order}_u"], warmed) == row[f"{order}_token"], where


def test_temperature_zero(case: Case) -> None:
    """The most probable token, whatever the uniform."""
    for row in case.info["cases"]:
        if row.get("ar") != "bad row" and not too_close(case, row):
            probabilities = filtered(case, {**row, "temperature": 0.0}, "ar")
            assert sample(probabilities, 0.999, 0.0) == row["argmax"], row["id"]


def test_inverse_cumulative_distribution(case: Case) -> None:
    for example in case.info["inverse_cdf_examples"]:
        got = sample(torch.tensor([example["probs"]]), example["u"], 1.0)
        assert got == example["token"], example
