"""Exports recorded cases of Janus-Pro in transformers' layout and compares bundles with them."""

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

TEXT_LENGTH = 150


def side_of(case: Case) -> int:
    """Of images in pixels."""
    shape = case.info["shape"]
    levels = len(shape["vq"].get("channel_multiplier", [1, 1]))
    return int(shape["side"] * 2 ** (levels - 1))


def export(case: Case, folder: Path) -> Path:
    side, model = side_of(case), case.folder / "model"
    images = engine.images_of([(side, side)], TEXT_LENGTH)
    return engine.export(folder / "bundle", "janus", images, "--dtype", "fp32", model=model)


def check_prompts(case: Case, bundle: Path) -> None:
    side, runs = side_of(case), case.info["runs"]
    requests = [{"prompt": run["prompt"], "width": side, "height": side} for run in runs]
    for run, found in zip(runs, engine.encode(bundle, *requests), strict=True):
        assert found["ids"] == case.tensors[f"{run['run']}.ids"].tolist(), run["run"]
        assert found["unconditional"] == case.tensors[f"{run['run']}.negative_ids"].tolist()


def check_grids(case: Case, bundle: Path) -> None:
    (grid,) = engine.manifest(bundle)["grids"]
    assert [grid["rows"], grid["columns"]] == [case.info["shape"]["side"]] * 2
    assert not grid["row_end"]


@torch.inference_mode()
def check_logits(case: Case, bundle: Path) -> None:
    """Both halves of guidance side by side, code by code with the cache."""
    for run in case.info["runs"]:
        name = run["run"]
        codes = case.long(f"{name}.codes")
        pair = [case.long(f"{name}.ids"), case.long(f"{name}.negative_ids")]
        target = Target(bundle, 2, len(pair[0]) + len(codes))
        hidden = [torch.stack([rows[-1] for rows in target.prefill(pair)])]
        hidden += [target.step(code + target.tokens["first_image_id"]) for code in codes[:-1]]
        halves = ("logits", "negative_logits")
        for got, half in zip(target.logits(torch.stack(hidden, 1)), halves, strict=True):
            engine.assert_recorded(case, f"{name}.{half}", got, "logits")


def check_codes(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Codes and pixels of greedy images by the program."""
    side = side_of(case)
    for run in case.info["runs"]:
        engine.generate(
            bundle, "-p", run["prompt"], "-W", side, "-H", side, "--cfg-scale", run["guidance"],
            "-o", folder / "image.png", "--save-codes", folder / "codes.json", "--method", *method,
        )  # fmt: skip
        (image,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        assert image["codes"] == case.tensors[f"{run['run']}.codes"].tolist(), run["run"]
        check_levels(case, run, bundle, pixels.read_png(folder / "image.png"))


@torch.inference_mode()
def check_levels(case: Case, run: dict[str, Any], bundle: Path, got: Tensor) -> None:
    """The floats that bytes are made of, and the bytes."""
    name, grid = run["run"], run["grid"]
    codes = case.long(f"{name}.codes").view(1, *grid)
    image = engine.load_module(bundle, "image_decoder").decode(codes)[0]
    allowed = case.info["tolerance"]["image"]
    engine.assert_recorded(case, f"{name}.image", image, allowed)
    levels = (image.permute(1, 2, 0).clamp(-1, 1) + 1) / 2 * 255
    pixels.assert_truncated(name, got, levels.byte(), image, 127.5 * allowed)
