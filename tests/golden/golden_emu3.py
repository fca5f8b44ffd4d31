"""Exports recorded cases of Emu3 and Emu3.5 and compares bundles with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import golden_pixels as pixels
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

TEXT_LENGTH = 200


def cell(case: Case) -> int:
    """Pixels a side of a code."""
    vq = case.info["shape"]["vq"]
    return int(2 ** (len(vq.get("channel_multiplier", vq.get("ch_mult", [1, 1]))) - 1))


def size(case: Case, run: dict[str, Any]) -> tuple[int, int]:
    """Width and height in pixels."""
    rows, columns = run["grid"]
    return cell(case) * columns, cell(case) * rows


def export(case: Case, folder: Path) -> Path:
    images = engine.images_of((size(case, run) for run in case.info["runs"]), TEXT_LENGTH)
    vq = case.folder / "vq" if (case.folder / "vq").is_dir() else None
    words, model = ("--dtype", "fp32"), case.folder / "model"
    return engine.export(folder / "bundle", "emu3", images, *words, model=model, vq=vq)


def check_prompts(case: Case, bundle: Path) -> None:
    requests = [
        {"prompt": run["prompt"], "negative_prompt": run["negative_prompt"],
         "width": size(case, run)[0], "height": size(case, run)[1]}
        for run in case.info["runs"]
    ]  # fmt: skip
    for run, found in zip(case.info["runs"], engine.encode(bundle, *requests), strict=True):
        assert found["ids"] == case.tensors[f"{run['run']}.ids"].tolist(), run["run"]
        assert found["unconditional"] == case.tensors[f"{run['run']}.negative_ids"].tolist()


def check_grids(case: Case, bundle: Path) -> None:
    """What the engine forces around the codes is what the recorded program allows there."""
    manifest = engine.manifest(bundle)
    for run in case.info["runs"]:
        width, height = size(case, run)
        (grid,) = (g for g in manifest["grids"] if (g["width"], g["height"]) == (width, height))
        tokens = case.long(f"{run['run']}.tokens").tolist()
        first = manifest["tokens"]["first_image_id"]
        rows = [tokens[i : i + grid["columns"]] for i in row_starts(grid)]
        assert all(min(row) >= first for row in rows) and len(rows) == grid["rows"]
        between = [tokens[i - 1] for i in row_starts(grid)[1:]]
        assert between == grid["row_end"] * (grid["rows"] - 1)
        behind = tokens[row_starts(grid)[-1] + grid["columns"] :]
        assert behind in (grid["after"], [*grid["row_end"], *grid["after"]])


def row_starts(grid: dict[str, Any]) -> list[int]:
    """Places of the first code of every row."""
    return [row * (grid["columns"] + 1) for row in range(grid["rows"])]


def codes_of(case: Case, run: dict[str, Any], bundle: Path) -> Tensor:
    """[rows, columns]."""
    rows, columns = run["grid"]
    first = Target(bundle, 1, 1).tokens["first_image_id"]
    tokens = case.long(f"{run['run']}.tokens")[: rows * (columns + 1)]
    return tokens.view(rows, columns + 1)[:, :-1] - first


@torch.inference_mode()
def check_logits(case: Case, bundle: Path) -> None:
    """Prompts of unequal length side by side, then id by id with the cache; what is left by top-k."""
    for run in case.info["runs"]:
        name = run["run"]
        tokens = case.long(f"{name}.tokens")
        pair = [case.long(f"{name}.ids"), case.long(f"{name}.negative_ids")]
        target = Target(bundle, 2, max(map(len, pair)) + len(tokens))
        hidden = [torch.stack([rows[-1] for rows in target.prefill(pair)])]
        hidden += [target.step(token) for token in tokens[:-1]]
        logits = target.logits(torch.stack(hidden, 1))
        for got, half in zip(logits, ("logits", "negative_logits"), strict=True):
            engine.assert_recorded(case, f"{name}.{half}", got, "logits")
        if case.has(f"{name}.scores"):
            check_scores(case, run, logits)


def check_scores(case: Case, run: dict[str, Any], logits: Tensor) -> None:
    """Probabilities wherever codes are due, whatever the row ends that are forced."""
    scores = case.tensors[f"{run['run']}.scores"].double()
    due = scores.isfinite().any(-1)
    assert int(due.sum()) == run["grid"][0] * run["grid"][1]
    for pair, expected in zip(logits.transpose(0, 1)[due], scores[due].softmax(-1), strict=True):
        got = engine.probabilities(pair, 1.0, run["top_k"], 1.0, guidance=run["guidance"])[0]
        engine.assert_close(run["run"], got, expected, case.info["tolerance"]["probabilities"])
        engine.assert_same_support(run["run"], got, expected)


def check_codes(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Codes and pixels of greedy images by the program."""
    for run in (run for run in case.info["runs"] if not run["top_k"]):
        width, height = size(case, run)
        engine.generate(
            bundle, "-p", run["prompt"], "--negative-prompt", run["negative_prompt"], "-W", width, "-H", height,
            "--cfg-scale", run["guidance"], "-o", folder / "image.png",
            "--save-codes", folder / "codes.json", "--method", *method,
        )  # fmt: skip
        (image,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        assert image["codes"] == codes_of(case, run, bundle).flatten().tolist(), run["run"]
        check_levels(case, run, bundle, pixels.read_png(folder / "image.png"))


@torch.inference_mode()
def check_levels(case: Case, run: dict[str, Any], bundle: Path, got: Tensor) -> None:
    """Bytes, and the floats that they are made of."""
    image = engine.load_module(bundle, "image_decoder").decode(codes_of(case, run, bundle)[None])[0]
    name, allowed = run["run"], case.info["tolerance"]["image"]
    engine.assert_recorded(case, f"{name}.image", image, allowed)
    levels = case.tensors[f"{name}.levels"].permute(1, 2, 0)
    pixels.assert_truncated(name, got, levels, image, 127.5 * allowed)
