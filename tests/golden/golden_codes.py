"""Exports recorded cases of GLM-Image and Tar, whose images are codes alone, and compares bundles with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import torch
from golden_cases import Case
from golden_chameleon import Target
from safetensors.torch import load_file
from torch import Tensor

TEXT_LENGTH = 150


def is_tar(case: Case) -> bool:
    return case.kind == "families/tar_generate"


def size(case: Case, rows: int, columns: int) -> tuple[int, int]:
    """Width and height in pixels."""
    cell = 14 if is_tar(case) else 32
    return cell * columns, cell * rows


def export(case: Case, folder: Path) -> Path:
    shape = case.info["shape"]
    grids = [(side, side) for side in shape["sides"]] if is_tar(case) else [shape["grid"]]
    images = engine.images_of((size(case, *grid) for grid in grids), TEXT_LENGTH)
    family, model = "tar" if is_tar(case) else "glm-image", case.folder / "model"
    return engine.export(folder / "bundle", family, images, "--dtype", "fp32", model=model)


def check_prompts(case: Case, bundle: Path) -> None:
    """Of Tar's the scale's id comes last."""
    sizes = [size(case, *run["grid"]) for run in case.info["runs"]]
    requests = [
        {"prompt": run["prompt"], "width": width, "height": height}
        for run, (width, height) in zip(case.info["runs"], sizes, strict=True)
    ]
    for run, found in zip(case.info["runs"], engine.encode(bundle, *requests), strict=True):
        assert found["ids"] == case.tensors[f"{run['run']}.ids"].tolist(), run["run"]


def check_grids(case: Case, bundle: Path) -> None:
    """The small image in front of GLM-Image's has the sides that the processor gives it."""
    grids = {(grid["rows"], grid["columns"]): grid for grid in engine.manifest(bundle)["grids"]}
    for run in case.info["runs"]:
        preview = grids[tuple(run["grid"])].get("preview")
        if case.has(f"{run['run']}.preview"):
            sides = case.tensors[f"{run['run']}.preview"].tolist()
            assert preview and [preview["rows"], preview["columns"]] == sides
        else:
            assert is_tar(case) and preview is None


@torch.inference_mode()
def check_logits(case: Case, bundle: Path) -> None:
    """Id by id with the cache; what is left by top-k of those that were sampled."""
    for run in case.info["runs"]:
        name = run["run"]
        tokens, prompt = case.long(f"{name}.tokens"), case.long(f"{name}.ids")
        target = Target(bundle, 1, len(prompt) + len(tokens))
        hidden = [target.prefill([prompt])[0][-1:]]
        hidden += [target.step(token) for token in tokens[:-1]]
        logits = target.logits(torch.stack(hidden, 1))[0]
        if case.has(f"{name}.logits"):
            engine.assert_recorded(case, f"{name}.logits", logits, "logits")
        else:
            check_scores(case, run, logits)


def check_scores(case: Case, run: dict[str, Any], logits: Tensor) -> None:
    """Probabilities of every code."""
    scores = case.tensors[f"{run['run']}.scores"].double()
    for row, expected in zip(logits, scores.softmax(-1), strict=True):
        got = engine.probabilities(row[None], 1.0, run["top_k"], run.get("top_p", 1.0))[0]
        engine.assert_close(run["run"], got, expected, case.info["tolerance"]["probabilities"])
        engine.assert_same_support(run["run"], got, expected)


def check_codes(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Codes of greedy images by the program, in both kinds of files."""
    first = engine.manifest(bundle)["tokens"]["first_image_id"]
    for run in (run for run in case.info["runs"] if not run["top_k"]):
        rows, columns = run["grid"]
        width, height = size(case, rows, columns)
        tokens = case.long(f"{run['run']}.tokens") - first
        preview, codes = tokens[: -rows * columns], tokens[-rows * columns :]
        for file in (folder / "codes.json", folder / "codes.safetensors"):
            words = ("-p", run["prompt"], "-W", width, "-H", height, "--method", *method)
            engine.generate(bundle, *words, "--save-codes", file)
        (image,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        assert (image["rows"], image["columns"]) == (rows, columns)
        assert image["codes"] == codes.tolist(), run["run"]
        tensors = load_file(folder / "codes.safetensors")
        assert torch.equal(tensors["codes.0"], codes.view(rows, columns))
        assert ("preview" in image) == (len(preview) > 0)
        if len(preview):
            assert image["preview"] == preview.tolist(), run["run"]
            assert torch.equal(tensors["preview.0"], preview)
