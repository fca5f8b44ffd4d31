"""Guidance, its schedule, structure and top-k of Lumina-mGPT 2.0 where codes are due."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_engine as engine
import golden_lumina2 as lumina2
import pytest
import torch
from golden_cases import Case
from layout_models import write_bundle
from torch import Tensor

from models.export.lumina2.bundle import OFFICIAL_SCHEDULE, SCHEDULE

KINDS = ("families/lumina2_logits", "families/lumina2_logits_full")

HEADER = 2  # sizes between the begin of an image and its first code
CELLS = 4  # codes in a row of a size token's unit


@dataclass
class Row:
    """Raw scores [2,V] and processed ones [V], of all ids."""

    info: dict[str, Any]
    pair: Tensor
    scores: Tensor


def formula(seed: int, count: int) -> Tensor:
    """Raw scores of the published size."""
    numbers = (torch.arange(count) * 2654435761 + seed * 97) % (1 << 32)
    return (numbers >> 8).float() * 2.0**-20 - 8


def rows(case: Case) -> Iterator[Row]:
    for number, info in enumerate(case.info["rows"]):
        if case.has("processed_scores"):
            halves = [case.tensors[f"{half}_scores"][number] for half in ("cond", "uncond")]
            yield Row(info, torch.stack(halves), case.tensors["processed_scores"][number])
            continue
        count = case.info["vocab_size"]
        pair = torch.stack([formula(info[f"seed_{half}"], count) for half in ("cond", "uncond")])
        first, last = case.long("offsets")[number : number + 2].tolist()
        scores = torch.full((count,), -torch.inf)
        scores[case.long("kept_ids")[first:last]] = case.tensors["kept_scores"][first:last]
        yield Row(info, pair, scores)


def codes(case: Case, scores: Tensor) -> Tensor:
    """The head holds the ids of codes only: all others are masked by construction."""
    first = case.info["token_ids"]["image_first"]
    return scores[..., first : first + case.info["token_ids"]["image_count"]]


def is_sampled(case: Case, row: Row) -> bool:
    """The engine samples codes: no text, no header of an image, nothing that is forced."""
    behind = row.info["tokens_after_boi"]
    if not row.info.get("image_open", behind is not None) or behind < HEADER:
        return False
    return bool((codes(case, row.scores) > -torch.inf).any())


def test_rows(case: Case) -> None:
    seen = 0
    for row in rows(case):
        if not is_sampled(case, row):
            continue
        info, what = row.info, row.info["label"]
        scale, settings = info["effective_cfg"], (info["temperature"], info["image_top_k"], 1.0)
        got = engine.probabilities(codes(case, row.pair), *settings, guidance=scale)[0]
        if scale == 1:
            alone = engine.probabilities(codes(case, row.pair[:1]), *settings)
            assert torch.equal(alone[0], got), what
        expected = codes(case, row.scores)
        assert int((row.scores > -torch.inf).sum()) == int((expected > -torch.inf).sum()), what
        engine.assert_same_support(what, got, expected.double().softmax(-1).float())
        visible = got > 1e-30
        found = got[visible].double().log() + expected.double().logsumexp(-1)
        allowed = 2 * case.tolerance("scores")  # of logarithms of fp32 probabilities, too
        engine.assert_close(what, found, expected[visible].double(), allowed)
        seen += 1
    assert seen


def schedule_bundle(folder: Path, sizes: list[tuple[int, int]], schedule: dict[str, Any]) -> Path:
    """Images of rows x columns codes, each for one id of its row's end, with their header."""
    grids = [
        {"width": 8 * columns, "height": 8 * rows, "rows": rows, "columns": columns,
         "before": [1, 2, 3], "row_end": [100]} for rows, columns in sizes
    ]  # fmt: skip
    bundle = write_bundle(folder, grids, 0)
    facts = engine.manifest(bundle)
    facts["sampling"]["schedule"] = schedule
    (bundle / "manifest.json").write_text(json.dumps(facts), encoding="utf-8")
    return bundle


def test_schedules(case: Case, tmp_path: Path) -> None:
    """The engine's scales of codes are the official solver's, which changes it at row ends, too."""
    if "schedules" not in case.info:
        pytest.skip("no recorded schedules")
    facts = case.info["schedules"]
    sizes = [(CELLS * entry["height_grids"], CELLS * entry["width_grids"]) for entry in facts]
    bundle = schedule_bundle(tmp_path / "bundle", list(dict.fromkeys(sizes)), OFFICIAL_SCHEDULE)
    for number, (entry, (rows, columns)) in enumerate(zip(facts, sizes, strict=True)):
        recorded = case.tensors[f"schedule_{number}"]
        found = lumina2.scales(bundle, 8 * columns, 8 * rows, entry["cfg"])
        assert len(found) == rows * columns
        steps = [code + code // columns for code in range(len(found))]
        due = [(scale, recorded[step]) for scale, step in zip(found, steps) if step < len(recorded)]
        got, expected = map(torch.tensor, zip(*due, strict=True))
        allowed = case.tolerance("schedule") * max(1.0, float(expected.max()))
        engine.assert_close(f"schedule {number}", got, expected, allowed)


def test_schedule_over_the_whole_image(case: Case, tmp_path: Path) -> None:
    """Without the official fault a scale falls over all codes, and one below the floor stays."""
    bundle = schedule_bundle(tmp_path / "bundle", [(8, 12)], SCHEDULE)
    scale, behind, expected = 7.0, 2, []
    for row in range(8):
        for _ in range(12):
            scale = max(4.0, scale * (1 - behind / 96))
            behind += 1
            expected.append(scale)
        scale = max(4.0, scale * (1 - behind / 96))  # the row's end
        behind += 1
    assert lumina2.scales(bundle, 96, 64, 7.0) == pytest.approx(expected, rel=1e-6)
    assert set(lumina2.scales(bundle, 96, 64, 3.0)) == {3.0}
    assert set(lumina2.scales(bundle, 96, 64, 1.0)) == {1.0}
