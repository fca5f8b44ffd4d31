"""Trains the demo model: python -m models.demo.train all, or one stage after the other.

    codes      encoder and codebook, on fresh renderings   work/codes.pt
    tokenise   20,000 scenes and more, rendered, to codes  work/tokens-*.npz
    decoder    image decoder for the codes                 work/vq.pt
    text       tokenizer and text encoder on captions      work/text.model, work/text.pt
    ar         GPT, at a constant rate                     work/ar.pt
    cool       its last steps, with a falling rate         work/ar-cooled.pt
    classifier the evaluation's classifier                 work/classifier.pt
    export     the bundle, with the classifier beside it   --out
    encoder    image encoder for its codes and decoder     work/encoder.pt, then into the bundle
    drafter    EAGLE's, on the bundle's own images         work/drafter.pt, then into the bundle
    flash      a FLASH drafter on the same images          work/flash.pt, then into the bundle
    eagle-3    a drafter that reads inner layers           work/eagle3.pt, then into the bundle
    refine     a refiner, on windows that it drafts        work/refine.pt, then into the bundle

Every stage continues where it was stopped and ends after the given minutes, which are processor time of one
process, so that a busy machine trains as well as an idle one. More minutes for `ar` prolong it.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import torch

from .export import BUNDLE, add_encoder, export_bundle
from .training import classifier, data, encoder, text, vq_codes, vq_decoder
from .training.ar_train import Options, train_ar
from .training.model import gpt_config

MINUTES = {
    "codes": 20,
    "decoder": 50,
    "text": 8,
    "ar": 210,
    "cool": 13,
    "classifier": 11,
    "encoder": 6,
    "drafter": 27,
    "flash": 42,
    "eagle-3": 32,
    "refine": 32,
}
# Folder of the images, if training takes any, and further flags of their generation; file and command of
# the training; name.
DRAFTERS: dict[str, tuple[str, list[Any], str, list[Any], str]] = {
    "drafter": (
        "drafter",
        ["--images", 4096],
        "drafter.pt",
        ["eagle.train", "--input-norm", "--ffn", 448],
        "eagle",
    ),
    "flash": (
        "drafter",
        ["--images", 9728],
        "flash.pt",
        ["heads.train", "flash", "--heads", 4, "--groups", 1],
        "flash",
    ),
    "eagle-3": (
        "inner",
        ["--images", 9728, "--layers", 2, 4, 5],
        "eagle3.pt",
        ["eagle.train", "--recipe", "eagle-3", "--ffn", 448],
        "eagle-3",
    ),
    "refine": (
        "",
        [],
        "refine.pt",
        ["heads.train_refiner", "--captions", "demo"],
        "refine",
    ),
}
STAGES = (
    "codes",
    "tokenise",
    "decoder",
    "text",
    "ar",
    "cool",
    "classifier",
    "export",
    "encoder",
    *DRAFTERS,
)


def add_drafter(stage: str, work: Path, bundle: Path, minutes: float) -> None:
    """Generates images with the bundle, trains a drafter on them and puts it into the bundle."""
    folder, more, file, training, name = DRAFTERS[stage]
    images, weights = work / folder, work / file
    own, storage = ["--bundle", bundle], ["--dtype", "bf16", "--overwrite"]
    generation = ["eagle.data", *own, "--captions", "demo", "--out", images, *more]
    data = ["--data", images] if folder else []
    for module, *arguments in (
        *([generation] if folder else []),
        [*training, *own, *data, "--out", weights, "--minutes", minutes],
        ["export", stage, *own, "--name", name, "--drafter", weights, *storage],
    ):
        command = [sys.executable, "-m", f"models.{module}", *map(str, arguments)]
        subprocess.run(command, check=True)


def run(stage: str, options: argparse.Namespace) -> None:
    work: Path = options.work
    minutes = options.minutes or MINUTES.get(stage, 0)
    if stage == "codes":
        if not (work / "codes.pt").exists():
            vq_codes.train_codes(work, 60 * minutes)
    elif stage == "tokenise":
        data.tokenise_all(work, options.shards)
    elif stage == "decoder":
        vq_decoder.train_decoder(work, 60 * minutes)
    elif stage == "text":
        text.pretrain_text(work, gpt_config().dim, minutes)
    elif stage in ("ar", "cool"):
        train_ar(
            work,
            Options(
                minutes=minutes,
                cool=stage == "cool",
                processes=options.processes,
                batch=options.batch,
                device=options.device,
            ),
        )
    elif stage == "classifier":
        if not (work / "classifier.pt").exists():
            classifier.train_classifier(60 * minutes, path=work / "classifier.pt")
    elif stage == "export":
        export_bundle(work, options.out)
        if options.out == BUNDLE:
            shutil.copy(work / "classifier.pt", classifier.CLASSIFIER)
    elif stage == "encoder":
        if not (work / "encoder.pt").exists():
            encoder.train_encoder(work, options.out, 60 * minutes)
        add_encoder(work, options.out)
    else:
        add_drafter(stage, work, options.out, minutes)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.demo.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", choices=["all", *STAGES])
    parser.add_argument(
        "--work", type=Path, default=data.WORK, help="folder for intermediate files"
    )
    parser.add_argument("--out", type=Path, default=BUNDLE, help="folder of the bundle")
    parser.add_argument(
        "--shards", type=int, default=24, help="1000 scenes each (tokenise; default: %(default)s)"
    )
    parser.add_argument(
        "--minutes", type=float, help="processor time of one training stage; not for all"
    )
    parser.add_argument(
        "--processes",
        type=int,
        default=2,
        help="of ar and cool, one thread each (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="images per process (ar, cool; default: %(default)s)"
    )
    parser.add_argument(
        "--device", default="cpu", help="cpu or cuda (ar, cool; default: %(default)s)"
    )
    options = parser.parse_args()
    if options.stage == "all" and options.minutes:
        parser.error("--minutes: give it with a single stage")
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    for stage in STAGES if options.stage == "all" else [options.stage]:
        print(f"== {stage}", flush=True)
        run(stage, options)


if __name__ == "__main__":
    main()
