"""Trains the demo model: python -m models.demo.train all, or one stage after the other.

    render     pictures with attributes                   work/images-*.npy
    vq         codes: k-means over patches                work/vq-codes.pt
    tokenise   pictures to codes                          work/tokens-*.npy
    decoder    image decoder on the frozen codes          work/vq.pt
    text       tokenizer and text encoder on captions     work/text.model, work/text.pt
    ar         GPT and text encoder                       work/ar.pt
    classifier judge of the evaluation                    models/demo/classifier.pt
    export     the bundle                                 models/demo/bundle
    drafter    trained on the bundle's own pictures       work/drafter.pt, then into the bundle

Every stage continues where it was stopped. Stages end after the given time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import torch

from models.demo.export import BUNDLE, export_bundle
from models.demo.training import classifier, data, patch_codes, text, vq_decoder
from models.demo.training.ar_train import Options, train_ar
from models.demo.training.model import gpt_config

STAGES = ("render", "vq", "tokenise", "decoder", "text", "ar", "classifier", "export", "drafter")


def add_drafter(work: Path, bundle: Path, minutes: float) -> None:
    """Draws pictures with the bundle, trains a drafter on them and puts it into the bundle."""
    pictures, weights = work / "drafter", work / "drafter.pt"
    data = ["eagle.data", "--bundle", bundle, "--captions", "demo", "--out", pictures]
    train = ["eagle.train", "--bundle", bundle, "--data", pictures, "--out", weights]
    attach = ["export", "drafter", "--bundle", bundle, "--name", "eagle", "--drafter", weights]
    for module, *arguments in (
        [*data, "--images", 5632],
        [*train, "--minutes", minutes, "--input-norm", "--ffn", 768],
        [*attach, "--dtype", "bf16", "--overwrite"],
    ):
        command = [sys.executable, "-m", f"models.{module}", *map(str, arguments)]
        subprocess.run(command, check=True)


def run(stage: str, options: argparse.Namespace) -> None:
    work: Path = options.work
    minutes = options.minutes
    if stage == "render":
        data.render_all(work, options.shards)
    elif stage == "vq":
        if not (work / "vq-codes.pt").exists():
            patch_codes.fit_codes(work)
    elif stage == "tokenise":
        data.tokenise_all(work)
    elif stage == "decoder":
        vq_decoder.train_decoder(work, 60 * (minutes or 60))
    elif stage == "text":
        if not (work / "text.pt").exists():
            text.pretrain_text(work, gpt_config().dim, minutes or 3)
    elif stage == "ar":
        train_ar(
            work,
            Options(
                minutes=minutes or 80,
                processes=options.processes,
                batch=options.batch,
                device=options.device,
            ),
        )
    elif stage == "classifier":
        if not classifier.CLASSIFIER.exists():
            classifier.train_classifier(work, 60 * (minutes or 3))
    elif stage == "export":
        export_bundle(work, options.out)
    else:
        add_drafter(work, options.out, minutes or 57)


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
    parser.add_argument("--shards", type=int, default=30, help="2000 pictures each (render)")
    parser.add_argument("--minutes", type=float, help="time of one training stage; not for all")
    parser.add_argument("--processes", type=int, default=2, help="of the ar stage, one thread each")
    parser.add_argument("--batch", type=int, default=8, help="pictures per process (ar)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (ar)")
    options = parser.parse_args()
    if options.stage == "all" and options.minutes:
        parser.error("--minutes: give it with a single stage")
    torch.set_num_threads(1 if options.stage == "text" else torch.get_num_threads())
    for stage in STAGES if options.stage == "all" else [options.stage]:
        print(f"== {stage}", flush=True)
        run(stage, options)


if __name__ == "__main__":
    main()
