"""Exports recorded cases of Tar's de-tokenizer and compares bundles with them."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import golden_engine as engine
import numpy as np
import torch
from golden_cases import Case
from PIL import Image
from torch import Tensor


def export(case: Case, folder: Path) -> Path:
    """A bundle in fp32."""
    model = case.folder / "model"
    files = {"gpt": "ar_dtok_lp_small.pth", "ta-tok": "ta_tok.pth", "vq": "vq_ds16_t2i.pt"}
    return engine.export(
        folder / "bundle", "tar-decoder", {"n_head": case.info["shape"]["heads"]}, "--dtype", "fp32",
        **{name: model / file for name, file in files.items()},
    )  # fmt: skip


def encoded(case: Case, bundle: Path, run: dict[str, Any]) -> Tensor:
    """The features [1,T,C] of a run's codes."""
    ids = case.long(f"{run['run']}.codes")[None]
    with torch.inference_mode():
        found: Tensor = engine.load_module(bundle, "text_encoder").encode(ids, torch.ones_like(ids))
    return found


def check_features(case: Case, bundle: Path) -> None:
    for run in case.info["runs"]:
        expected = case.tensors[f"{run['run']}.features"]
        found = encoded(case, bundle, run)[0]
        engine.assert_close(run["run"], found, expected, case.tolerance("features"))


@torch.inference_mode()
def check_logits(case: Case, bundle: Path) -> None:
    """Guided, with and without the condition side by side, behind the recorded tokens."""
    target = engine.load_module(bundle, "target")
    sizes = engine.manifest(bundle)["cache"]
    for run in case.info["runs"]:
        name, scale = run["run"], run["cfg_scale"]
        tokens, features = case.long(f"{name}.tokens"), encoded(case, bundle, run)
        mask = torch.ones(features.shape[:2], dtype=torch.int64)
        prefix = [target.embed_condition(features, mask), target.embed_unconditional(mask)]
        image = target.embed(tokens[None, :-1]).expand(2, -1, -1)
        rows = torch.cat([torch.cat(prefix), image], 1).contiguous()
        length = rows.shape[1]
        cache = torch.zeros(sizes["layers"], 2, 2, sizes["kv_heads"], length, sizes["head_dim"])
        positions = torch.arange(length).repeat(2, 1)
        none, lengths = torch.empty(0, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
        hidden, _ = target.forward(rows, positions, none, lengths, cache)
        conditional, other = target.logits(hidden[:, mask.shape[1] - 1 :].contiguous())
        guided = other + (conditional - other) * scale
        engine.assert_close(
            name, guided, case.tensors[f"{name}.logits"], scale * case.tolerance("logits")
        )


def check_pixels(case: Case, bundle: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for run in case.info["runs"]:
        codes = case.long(f"{run['run']}.tokens")
        side = math.isqrt(len(codes))
        with torch.inference_mode():
            found = decoder.decode(codes.view(1, side, side))[0] / 2 + 0.5
        expected = case.tensors[f"{run['run']}.pixels"]
        engine.assert_close(run["run"], found, expected, case.tolerance("pixels"))


def codes_file(path: Path, images: list[Tensor]) -> Path:
    """A file as --save-codes writes it, of images of square grids."""
    listed = [
        {"rows": math.isqrt(len(codes)), "columns": math.isqrt(len(codes)), "codes": codes.tolist()}
        for codes in images
    ]
    content = {"format": "lamplighter codes", "schema": 1, "images": listed}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def check_images(case: Case, bundle: Path, folder: Path, method: tuple[object, ...]) -> None:
    """Greedy images by the program, all that share a scale of guidance in one run."""
    for scale in sorted({run["cfg_scale"] for run in case.info["runs"]}):
        names = [run["run"] for run in case.info["runs"] if run["cfg_scale"] == scale]
        given = codes_file(folder / "given.json", [case.tensors[f"{name}.codes"] for name in names])
        engine.generate(
            bundle, "--prompt-codes", given, "--cfg-scale", scale, "--method", *method,
            "--save-codes", folder / "codes.json", "-o", folder / "image-%d.png",
        )  # fmt: skip
        images = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
        for number, (name, image) in enumerate(zip(names, images, strict=True)):
            assert image["codes"] == case.tensors[f"{name}.tokens"].tolist(), name
            check_levels(case, name, folder / f"image-{number}.png")


def check_levels(case: Case, name: str, file: Path) -> None:
    """Bytes of a PNG; one that lies at the edge of its level may be the next one."""
    found = torch.from_numpy(np.array(Image.open(file)))
    scaled = case.tensors[f"{name}.pixels"].permute(1, 2, 0).clamp(0, 1).double() * 255
    edge = (scaled - scaled.round()).abs() <= 255 * case.tolerance("pixels")
    off = (found.int() - case.tensors[f"{name}.image"].int()).abs()
    assert int(off.max()) <= 1 and not (off.bool() & ~edge).any(), name


def check(case: Case, folder: Path) -> None:
    """All of it."""
    bundle = export(case, folder)
    check_features(case, bundle)
    check_logits(case, bundle)
    check_pixels(case, bundle)
    for method in engine.METHODS:
        check_images(case, bundle, folder, method)
