"""Trains the demo pair of continuous tokens: python -m models.mar.demo.train all, or stage by stage.

    kl        the autoencoder, on fresh renderings           work/kl-training.pt
    latents   renderings of one subject, encoded             work/latents-*.pt, work/kl16.ckpt
    target    MAR                                            work/checkpoint-last.pth
    generated images that it generates                       work/generated-*.pt
    drafter   a smaller MAR that follows its chains          work/drafter.pth
    export    the bundle                                     --out

Every stage continues where it was stopped and ends after the given minutes, which are processor time of the
process, so that a busy machine trains as well as an idle one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import torch

from ...export.__main__ import main as export
from . import autoencoder, drafter, target
from .stage import Options

BUNDLE = Path(__file__).parent / "bundle"
# Users of containers may have no home.
HOME = Path(os.environ.get("HOME") or tempfile.gettempdir())
WORK = HOME / ".cache" / "lamplighter" / "mar-demo"
STAGES = ("kl", "latents", "target", "generated", "drafter", "export")
MINUTES = {"kl": 12.0, "target": 90.0, "drafter": 8.0}
BATCH = {"kl": 8, "target": 32, "drafter": 8}
GUIDANCE = 3
LICENCE = "Apache-2.0"
SOURCE = "trained from scratch on procedurally rendered landscapes by models/mar/demo"


def write_bundle(work: Path, out: Path) -> int:
    heads = [f"{c.encoder.heads},{c.decoder.heads}" for c in (target.CONFIG, drafter.CONFIG)]
    words = [
        "mar",
        "--model",
        work / target.FILE,
        "--vae",
        work / autoencoder.FILE,
        "--heads",
        heads[0],
        "--drafter",
        work / drafter.FILE,
        "--drafter-heads",
        heads[1],
        "--dtype",
        "fp16",
        "--cfg-scale",
        GUIDANCE,
        "--name",
        "lamplighter-demo-continuous",
        "--licence",
        LICENCE,
        "--source",
        SOURCE,
        "--out",
        out,
        "--overwrite",
    ]
    status = export([str(word) for word in words])
    if status == 0:
        size = sum(path.stat().st_size for path in out.iterdir())
        print(f"{out}: {size / 1e6:.2f} MB")
    return status


def run(stage: str, options: argparse.Namespace) -> int:
    minutes = options.minutes or MINUTES.get(stage, 0)
    batch = options.batch or BATCH.get(stage, 1)
    how = Options(options.work, options.device, minutes, batch)
    if stage == "latents":
        autoencoder.write_latents(options.work, options.shards)
    elif stage == "generated":
        drafter.write_images(how, options.generated)
    elif stage == "export":
        return write_bundle(options.work, options.out)
    else:
        {"kl": autoencoder, "target": target, "drafter": drafter}[stage].train(how)
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.mar.demo.train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", choices=["all", *STAGES])
    parser.add_argument("--work", type=Path, default=WORK, help="folder for intermediate files")
    parser.add_argument("--out", type=Path, default=BUNDLE, help="folder of the bundle")
    parser.add_argument("--minutes", type=float, help="processor time of a stage; not for all")
    parser.add_argument(
        "--shards", type=int, default=24, help="500 renderings each (latents; default: %(default)s)"
    )
    parser.add_argument(
        "--generated", type=int, default=1000, help="images for the drafter (generated)"
    )
    parser.add_argument("--batch", type=int, help="images of a step; not for all")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of the CPU (default: %(default)s)")
    options = parser.parse_args(arguments)
    if options.stage == "all" and (options.minutes or options.batch):
        parser.error("--minutes, --batch: give them with a single stage")
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    for stage in STAGES if options.stage == "all" else [options.stage]:
        print(f"== {stage}", flush=True)
        if status := run(stage, options):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
