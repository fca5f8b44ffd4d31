"""Image encoders against the official ones: latents, and codes wherever the nearest row is clear."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import golden_engine as engine
import pytest
import torch
from golden_cases import FOLDER, Case
from PIL import Image
from safetensors.torch import load_file, save_file

KINDS = ("families/janus_encoder", "families/emu3_encoder", "families/cosmos_encoder")


def completed(case: Case, folder: Path) -> Path:
    """The model of the case that this one completes, with the encoder among its weights."""
    base = FOLDER / case.info["shape"]["completes"] / "model"
    shutil.copytree(base, folder)
    state = load_file(case.folder / "encoder.safetensors")
    for path in folder.iterdir():
        if path.suffix == ".safetensors":
            state |= load_file(path)
        elif path.suffix == ".bin":
            state |= torch.load(path)
        if path.suffix in (".safetensors", ".bin") or path.name.endswith(".index.json"):
            path.unlink()
    save_file(state, folder / "model.safetensors")
    return folder


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, completes = tmp_path_factory.mktemp("encoder"), case.info["shape"]["completes"]
    if case.kind == "families/cosmos_encoder":
        parts = {
            "decoder": FOLDER / completes / "decoder.jit",
            "encoder": case.folder / "encoder.jit",
        }
        return engine.export(folder / "bundle", "simplear", {}, **parts)
    images = engine.images_of(((run["width"], run["height"]) for run in case.info["runs"]), 64)
    family, model = completes.partition("/")[0], completed(case, folder / "model")
    return engine.export(folder / "bundle", family, images, "--dtype", "fp32", model=model)


@torch.inference_mode()
def test_latents_and_codes(case: Case, bundle: Path) -> None:
    """Every code is the official one: none has a second row as near as rounding reaches."""
    module = engine.load_module(bundle, "image_encoder")
    allowed = case.info["tolerance"]
    for number in range(len(case.info["runs"])):
        rgb = case.tensors[f"image_{number}"].float().permute(2, 0, 1)[None] / 255 * 2 - 1
        latents = module.latents(rgb.contiguous())
        engine.assert_recorded(case, f"latents_{number}", latents[0], allowed["latents"])
        assert float(case.tensors[f"margin_{number}"].min()) > allowed["margin"]
        assert torch.equal(module.nearest(latents)[0], case.long(f"codes_{number}"))


def test_encode(case: Case, bundle: Path, tmp_path: Path) -> None:
    """`lamplighter encode` gives them, too."""
    for number, run in enumerate(case.info["runs"]):
        Image.fromarray(case.tensors[f"image_{number}"].numpy()).save(tmp_path / f"{number}.png")
        out = tmp_path / f"{number}.json"
        engine.run(
            engine.BUILD / "lamplighter", "encode", tmp_path / f"{number}.png", "-m", bundle, "-o", out,
            "--threads", 1, "--device", "cpu",
        )  # fmt: skip
        (image,) = json.loads(out.read_text(encoding="utf-8"))["images"]
        codes = case.tensors[f"codes_{number}"]
        assert [image["rows"], image["columns"]] == list(codes.shape), run
        assert image["codes"] == codes.flatten().tolist(), run


def test_check(bundle: Path) -> None:
    engine.check(bundle)
