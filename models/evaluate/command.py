"""Quality and speed of folders that `lamplighter batch` has generated, in one table.

    scripts/evaluate.py out/ar out/eagle --metrics fid,clip --reference coco/val2017 --resize 256 \\
        --inception-weights inception-2015-12-05.pt --clip-weights ViT-B-32.pt

NAME=FOLDER gives a row a name; else it is the run's method in the words of `bench --methods`. S is tokens a
target pass; ms and ratio are of the prompt's pass and the cycles, per image, from the folders' manifests.
Nothing is downloaded: weights and reference images are given by path.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import torch

from ..export.command import run_command
from . import report
from .clip import PROTOCOLS
from .errors import EvaluationError
from .folders import Folder, read_folder
from .metrics import METRICS, Settings, scorers


def metric_list(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(name for name in text.split(",") if name))
    for name in names:
        if name not in METRICS:
            raise argparse.ArgumentTypeError(f"got {name}, expected some of {', '.join(METRICS)}")
    return names


def positive(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"got {text}, expected a number above 0")
    return int(text)


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(
        prog="scripts/evaluate.py",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = words.add_argument
    add("folders", nargs="+", metavar="[NAME=]FOLDER", help="of `lamplighter batch`")
    add("--metrics", type=metric_list, default=(), metavar="LIST", help=", ".join(METRICS))
    add(
        "--reference",
        type=Path,
        metavar="FOLDER|NPZ",
        help="real images, or mu and sigma of pytorch-fid or clean-fid",
    )
    add(
        "--save-reference",
        type=Path,
        metavar="NPZ",
        help="keep the reference's features for the next time",
    )
    add(
        "--fid-protocol",
        choices=("clean", "legacy"),
        default="clean",
        help="clean-fid's `clean` mode (default), or pytorch-fid",
    )
    add(
        "--inception-weights",
        type=Path,
        metavar="FILE",
        help="inception-2015-12-05.pt (clean), pt_inception-2015-12-05-6726825d.pth (legacy)",
    )
    add(
        "--resize",
        type=positive,
        metavar="N",
        help="score the middle square at N x N pixels, also of the reference; LANTERN: 256",
    )
    add(
        "--clip-protocol",
        choices=tuple(PROTOCOLS),
        default="lantern",
        help="lantern: mean cosine, ViT-B/32, 'A photo depicts ' before the caption (default); b16: ViT-B/16, x100, no words before it",
    )
    add(
        "--clip-weights",
        type=Path,
        metavar="FILE",
        help="OpenAI's ViT-B-32.pt or ViT-B-16.pt, or open-clip's file of it",
    )
    add("--hpsv2-weights", type=Path, metavar="FILE", help="HPS_v2.1_compressed.pt")
    add(
        "--neighbours",
        type=positive,
        default=3,
        metavar="K",
        help="of precision / recall (default: 3)",
    )
    add("--batch-size", type=positive, default=50, metavar="N")
    add("--device", type=torch.device, default=torch.device("cpu"), metavar="NAME")
    add("-t", "--threads", type=positive, metavar="N")
    add(
        "--export-json",
        type=Path,
        metavar="FILE",
        help="the table with all digits, and the settings",
    )
    add("--export-csv", type=Path, metavar="FILE")
    add("--export-markdown", type=Path, metavar="FILE")
    add(
        "--scores",
        type=Path,
        metavar="FILE",
        help="scores by method, for `lamplighter bench --scores`",
    )
    return words


def read_folders(texts: list[str]) -> list[Folder]:
    """Reports missing images. Raises EvaluationError when two rows have one name."""
    folders = [read_folder(text) for text in texts]
    for folder in folders:
        lost = [
            f"{n} {word}"
            for n, word in ((folder.failed, "failed"), (folder.missing, "missing"))
            if n
        ]
        if lost:
            have = len(folder.images)
            print(f"{folder.path}: {' and '.join(lost)}, {have} are measured", file=sys.stderr)
        if not folder.images:
            raise EvaluationError(f"{folder.path}: no images to measure")
    for name, count in Counter(folder.name for folder in folders).items():
        if count > 1:
            raise EvaluationError(f"folders: got {name} twice (hint: NAME=FOLDER)", exit_code=2)
    return folders


def check_outputs(options: argparse.Namespace) -> None:
    for flag in ("export_json", "export_csv", "export_markdown", "scores", "save_reference"):
        file = getattr(options, flag)
        if file is not None and not file.parent.is_dir():
            raise EvaluationError(
                f"--{flag.replace('_', '-')}: {file.parent}: no such folder", exit_code=7
            )


def settings_of(options: argparse.Namespace) -> Settings:
    return Settings(
        options.metrics,
        options.reference,
        options.save_reference,
        options.fid_protocol,
        options.inception_weights,
        options.clip_protocol,
        options.clip_weights,
        options.hpsv2_weights,
        options.neighbours,
        options.resize,
        options.batch_size,
        options.device,
    )


def described(options: argparse.Namespace) -> dict[str, str]:
    """The settings that affect the numbers, as text."""
    deciding = (
        "metrics",
        "reference",
        "resize",
        "fid_protocol",
        "inception_weights",
        "clip_protocol",
        "clip_weights",
        "hpsv2_weights",
        "neighbours",
    )
    values = {name: getattr(options, name) for name in deciding}
    return {
        name: ",".join(value) if isinstance(value, tuple) else str(value)
        for name, value in values.items()
        if value is not None
    }


def run(options: argparse.Namespace) -> None:
    if options.threads:
        torch.set_num_threads(options.threads)
    check_outputs(options)
    folders = read_folders(options.folders)
    made = scorers(settings_of(options))
    scores: list[dict[str, float]] = []
    for folder in folders:
        scores.append({name: value for each in made for name, value in each(folder).items()})
    table = report.rows(folders, scores)
    print(report.text_table(table))
    whole = {"settings": described(options), "rows": table}
    for file, text in (
        (options.export_json, report.to_json(whole)),
        (options.export_csv, report.comma_separated(table)),
        (options.export_markdown, report.markdown(table)),
        (options.scores, report.to_json(report.named_scores(table))),
    ):
        if file is not None:
            report.publish(file, text)


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    return run_command(lambda: run(options))
