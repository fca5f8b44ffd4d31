"""Rows that are sampled side by side: schedules, and the compiled loop on recorded images.

The recorded codes are put in the place of the loop's own, so that every row of every pass can be
compared; what it samples of its distributions with the recorded uniforms are the recorded codes again. The loop
runs a row's end that is fed once more behind the rows that decide, the record has it in front.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_jacobi import sample, tolerance
from torch import Tensor

KINDS = ("methods/zipar/",)
VISIBILITIES = {"clean": "clean.", "official": ""}  # and how the record names its tensors


def is_image(case: Case) -> bool:
    return case.info["component"] == "zipar"


def schedule(grid: int, window: int) -> dict[str, Any]:
    """The engine's passes of a square grid."""
    return dict(json.loads(engine.run(engine.BUILD / "golden_rows", grid, grid, window)))


def carried(row: list[int], produced: list[int]) -> list[int]:
    """The positions of a pass as the record has them: one that decides nothing in front."""
    return row[len(produced) :] + row[: len(produced)]


def test_schedules(case: Case) -> None:
    if is_image(case):
        pytest.skip("one image")
    for entry in case.info["schedules"]:
        grid, window = entry["grid"], entry["window"]
        passes = schedule(grid, window)["passes"]
        assert len(passes) + 1 == entry["passes"] == 2 * grid + (grid - 2) * window
        assert max(len(one["fed"]) for one in passes) == entry["max_rows"]
        fed, produced = (
            case.tensors[f"w{grid}_s{window}.{name}"].tolist() for name in ("fed", "produced")
        )
        for number, one in enumerate(passes):
            where = f"grid {grid}, window {window}, pass {number}"
            places = carried(one["fed"], one["produced"])
            assert places == [p for p in fed[number] if p >= 0], where
            assert one["produced"] == [p for p in produced[number] if p >= 0], where


def needs_image(case: Case) -> None:
    if not is_image(case):
        pytest.skip("no image")


def passes_of(case: Case) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The engine's schedule, and the recorded passes behind the prompt's."""
    plan = schedule(case.info["dims"]["grid"], case.info["settings"]["window"])
    return plan, case.info["passes"][1:]


def test_passes(case: Case) -> None:
    """Which positions are run and decided, and which tokens stand in for those that are lacking."""
    needs_image(case)
    plan, recorded = passes_of(case)
    assert len(plan["passes"]) == len(recorded) == case.info["pass_count"] - 1
    for prefix in VISIBILITIES.values():
        codes = case.long(f"{prefix or 'released.'}tokens")[plan["order"]]
        for one, expected in zip(plan["passes"], recorded, strict=True):
            where = f"{case.name} {prefix} pass {expected['index']}"
            assert carried(one["fed"], one["produced"]) == expected["image_positions"], where
            assert one["produced"] == expected["produces"], where
            tokens = codes[carried(one["codes"], one["produced"])]
            assert torch.equal(tokens, case.long(f"{prefix}p{expected['index']}.tokens")), where


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    needs_image(case)
    dims = case.info["dims"]
    model = {"n_head": dims["heads"], "grid": dims["grid"]}
    out = tmp_path_factory.mktemp("zipar") / "bundle"
    return engine.export(
        out, "llamagen", {"gpt": model}, gpt=case.folder / case.info["weights_file"]
    )


def condition(case: Case) -> dict[str, Tensor]:
    """The prompt as the compiled loop takes it, padding behind it."""
    if case.info["class_id"] is not None:
        return {"class_ids": torch.tensor([case.info["class_id"]])}
    mask = case.long("text_mask")
    features = case.tensors["text_features"][mask > 0]
    padding = len(mask) - len(features)
    return {
        "features": torch.cat([features, torch.zeros(padding, features.shape[1])])[None],
        "mask": mask.sort(descending=True).values[None],
    }


@pytest.mark.parametrize("visibility", VISIBILITIES)
def test_images(case: Case, bundle: Path, visibility: str) -> None:
    prefix, settings = VISIBILITIES[visibility], case.info["settings"]
    codes = case.tensors[f"{prefix or 'released.'}tokens"]
    forced = engine.decode(
        bundle,
        {**condition(case), "forced_tokens": codes[None]},
        method="zipar",
        ahead=settings["window"],
        zipar=visibility,
        cfg_scale=settings["guidance"],
        top_k=settings["top_k"],
        temperature=settings["temperature"],
    )
    names = ["logits_cond", "logits_uncond"][: forced["logits"].shape[1]]
    assert len(names) == (1 if settings["guidance"] == 1 else 2)
    step = 0
    for one in case.info["passes"]:
        count, where = len(one["produces"]), f"{case.name} {visibility} pass {one['index']}"
        for half, name in enumerate(names):
            expected = case.tensors[f"{prefix}p{one['index']}.{name}"][-count:]
            got = forced["logits"][step : step + count, half]
            engine.assert_close(f"{where} {name}", got, expected, tolerance(case, "logits"))
        step += count
    plan, _ = passes_of(case)
    assert step == len(plan["order"]) == len(codes)
    sampled = sample(forced["probabilities"][:, 0], case.tensors["uniforms"])
    assert sampled == codes[plan["order"]].tolist()
