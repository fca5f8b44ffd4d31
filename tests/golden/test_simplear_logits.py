"""Guidance and filters of SimpleAR's sampling on recorded logits of all ids."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from torch import Tensor

KINDS = ("families/simplear_logits",)


def penalised(logits: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """What the official code makes of the conditional row; the engine lacks this rule."""
    ids = seen.unique()
    scores = logits[ids]
    return logits.index_copy(0, ids, torch.where(scores < 0, scores * penalty, scores / penalty))


def pair_of(case: Case, number: int, row: dict[str, Any]) -> Tensor:
    conditional = case.tensors["cond_logits"][number]
    if row["repetition_penalty"] != 1:
        seen = case.long("input_ids")[number]
        conditional = penalised(conditional, seen, row["repetition_penalty"])
    return torch.stack([conditional, case.tensors["uncond_logits"][number]])


def probabilities(pair: Tensor, row: dict[str, Any]) -> Tensor:
    settings = (row.get("temperature", 1.0), row["top_k"] or 0, row.get("top_p", 1.0))
    if row["cfg"] == 1:
        return engine.probabilities(pair[:1], *settings)[0]
    return engine.probabilities(pair, *settings, guidance=row["cfg"])[0]


def test_rows(case: Case) -> None:
    for number, row in enumerate(case.info["rows"]):
        got = probabilities(pair_of(case, number, row), row)
        scores = case.tensors["processed_scores"][number].double()
        expected, what = scores.softmax(-1), row["label"]
        engine.assert_close(what, got, expected, 1e-4)
        engine.assert_same_support(what, got, expected)
        assert int((expected > 0).sum()) <= row["kept"]
        assert int(scores.isfinite().sum()) == row["kept"], what


def test_guided_scores(case: Case) -> None:
    """The distribution before the filters."""
    for number, row in enumerate(case.info["rows"]):
        whole = {"cfg": row["cfg"], "top_k": 0}
        got = probabilities(pair_of(case, number, row), whole)
        expected = case.tensors["guided_scores"][number].double().softmax(-1)
        engine.assert_close(row["label"], got, expected, 1e-4)


def formula(size: int, seed: int) -> Tensor:
    """The input of the published size, exact in fp32."""
    number = (torch.arange(size) * 2654435761 + seed * 97) % 2**32
    return (number >> 8).float() * 2**-20 - 8


def test_reference_size(case: Case) -> None:
    """Among all ids, and among the codes alone, which is another distribution: it lacks the text's share."""
    full = case.info["full"]
    pair = torch.stack([formula(full["vocab_size"], full[f"seed_{h}"]) for h in ("cond", "uncond")])
    got = engine.probabilities(pair, 1.0, full["top_k"], 1.0, guidance=full["cfg"])[0]
    kept = (got > 0).int()
    best = case.long("full.top_ids")
    scores = case.tensors["full.top_scores"].double()
    found = got[best].double().log()
    engine.assert_close("scores", found - found[0], scores - scores[0], 1e-4)
    threshold = case.tensors["full.threshold"].double()
    visible = scores[0] - threshold < 80  # else the least kept ones are no normal numbers
    if visible:
        assert int(kept.sum()) == full["kept"]
        blocks = [int(block.sum()) for block in kept.split(8192)]
        assert blocks == case.tensors["full.kept_per_block"].tolist()
    first = full["first_image_id"]
    mass = got[first:].double().sum()
    engine.assert_close("mass", mass, case.tensors["full.image_mass"][0], 1e-4)
    codes = engine.probabilities(pair[:, first:].contiguous(), 1.0, 0, 1.0, guidance=full["cfg"])[0]
    likely = got[first:] > 1e-6
    engine.assert_close("codes", codes[likely] * mass, got[first:][likely], 1e-6)
