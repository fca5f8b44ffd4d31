"""A small bundle of continuous tokens: random checkpoints, exported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from mar_files import random_model, save_checkpoint, save_kl

from models.bundle import BundleModule, add_part, edited
from models.chameleon.vqgan import VQGANConfig
from models.export.__main__ import main as export
from models.export.mar.bundle import KIND
from models.mar.config import MARConfig, square_shape
from models.mar.diffusion import schedule
from models.mar.target_module import TargetModule
from models.recording import Recorder

CHANNELS, SIDE, STEPS, CLASSES = 4, 4, 5, 7
SHAPE = MARConfig(
    positions=SIDE * SIDE, channels=CHANNELS, classes=CLASSES, buffer=3,
    encoder=square_shape(24, 1, 2), decoder=square_shape(32, 1, 4), head_depth=2, head_width=40,
)  # fmt: skip
DRAFT_SHAPE = replace(
    SHAPE, encoder=square_shape(16, 1, 2), decoder=square_shape(16, 1, 2), head_depth=1,
    head_width=16,
)  # fmt: skip
KL_SHAPE = VQGANConfig(ch=32, ch_mult=(1, 1, 1, 1), num_res_blocks=1, z_channels=CHANNELS)


def write_continuous(folder: Path, steps: int = STEPS) -> Path:
    """Writes `folder`/bundle with a drafter `small` and a drafter `twin`, which is the target."""
    target = random_model(SHAPE)
    files = {
        "model": save_checkpoint(folder / "model.pth", target),
        "drafter": save_checkpoint(folder / "small.pth", random_model(DRAFT_SHAPE, 9)),
        "vae": save_kl(folder / "kl16.ckpt", KL_SHAPE),
        "out": folder / "bundle",
    }
    words = [str(word) for name, path in files.items() for word in (f"--{name}", path)]
    # A chain from the last training step would amplify rounding by thousands and reject the twin.
    respacing = f"{steps}@40-960"
    heads = ("--heads", "2,4", "--drafter-heads", "2")
    assert export(["mar", *words, *heads, "--respacing", respacing, "--cfg-scale", "2"]) == 0
    with edited(files["out"]) as (copy, manifest):
        module = TargetModule(target, schedule(respacing))
        twin = BundleModule(module, torch.float32, entries={"kind": KIND})
        add_part(copy, manifest, Recorder(), "drafters", "twin", twin)
    return files["out"]
