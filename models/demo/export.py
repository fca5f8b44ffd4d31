"""Writes the demo bundle from the trained parts in the work folder."""

from __future__ import annotations

from pathlib import Path

import torch

from .. import ops
from ..bundle import Storage, add_part, edited
from ..export.common import encoder_part
from ..export.llamagen.bundle import Parts, TokenizerFile, llamagen_bundle
from ..llamagen.vq import VQModel
from ..recording import Recorder
from .encoder_module import DemoEncoderModule
from .render.vocabulary import known
from .training.bundled import load_decoder
from .training.data import WORK
from .training.model import load_average
from .training.vq_model import ImageEncoder, load_tokenizer

BUNDLE = Path(__file__).parent / "bundle"
SOURCE = "trained from scratch on procedurally rendered landscapes by models/demo"
SAMPLING = {"cfg_scale": 2.0, "temperature": 0.9, "top_k": 50, "top_p": 1.0}
STORAGE = {
    "target": Storage(torch.bfloat16),
    "text_encoder": Storage(torch.bfloat16),
    "image_decoder": Storage(torch.float16),
}
ENCODER = "image_encoder"


def image_tokenizer(work: Path) -> VQModel:
    """Codebook and decoder as far as it is trained."""
    trained = work / "vq.pt"
    return load_tokenizer(trained if trained.exists() else work / "codes.pt").vq


def export_bundle(work: Path = WORK, out: Path = BUNDLE) -> None:
    """Replaces the folder `out` by a bundle of the averaged weights and the image decoder."""
    model = load_average(work)
    model.requires_grad_(False)
    vq = image_tokenizer(work)
    vq.requires_grad_(False)
    pieces = TokenizerFile(work / "text.model", extra_ids=0, cleaning="lower")
    parts = Parts(gpt=model.gpt, vq=vq, t5=model.text, tokenizer=pieces)
    bundle = llamagen_bundle(parts, "lamplighter-demo", "Apache-2.0", SOURCE, SAMPLING, STORAGE)
    bundle.entries["prompt"]["vocabulary"] = known()
    bundle.write(out, overwrite=True)
    size = sum(p.stat().st_size for p in out.iterdir())
    print(f"{out}: {size / 1e6:.2f} MB")


def add_encoder(work: Path, bundle: Path) -> None:
    """Puts the image encoder into a bundle, in place of one that is there; nothing else changes."""
    ops.load()
    vq = load_decoder(bundle)
    vq.encoder = ImageEncoder()
    vq.encoder.load_state_dict(torch.load(work / "encoder.pt", weights_only=True))
    vq.requires_grad_(False)
    part = encoder_part(vq, vq.config.downsample, torch.float16, DemoEncoderModule)[ENCODER]
    with edited(bundle) as (folder, manifest):
        recorded = Recorder.load(folder, manifest, without=ENCODER)
        if old := manifest["modules"].pop(ENCODER, None):
            (folder / old["file"]).unlink()
        add_part(folder, manifest, recorded, "modules", ENCODER, part)
        recorded.save(folder, manifest)
