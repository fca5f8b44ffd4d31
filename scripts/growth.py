"""Measures how time and memory grow with the image size, the batch size and the draft tree.

    python scripts/growth.py --size B --grids 16,24 [--out growth/] [--method eagle] [-t N]

Generates with bundles of `models.demo.enlarge --grid N`, which it writes to --out once. Nothing is downloaded, and a
token costs as much as in the published model. Every measurement is a process of its own, `ar` and the method are
interleaved, and figures are medians of --rounds. Larger grids are untrained, so compare milliseconds per target pass
rather than S. Writes growth.json (curves, for the page of `lamplighter bench --export-html F --growth growth.json`)
and growth.md (tables).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from comparison import ROOT

PROGRAM = ROOT / "build" / "lamplighter"
CAPTION = "a red sailboat on the sea at dusk"
Point = dict[str, Any]


def numbers(text: str) -> list[int]:
    parts = [part for part in text.split(",") if part]
    if not parts or not all(part.isdigit() and int(part) > 0 for part in parts):
        raise argparse.ArgumentTypeError(f"got {text}, expected numbers above 0, as in 16,24")
    return [int(part) for part in parts]


def highest_memory(process: subprocess.Popen[bytes]) -> float:
    """Waits for a process and returns its peak memory in MB. The system's own figure would include the parent's."""
    kilobytes = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s*(\d+)", status)
        kilobytes = max(kilobytes, int(found[1]) if found else 0)
        time.sleep(0.01)
    return kilobytes / 1024


def generate(bundle: Path, options: argparse.Namespace, images: int, *flags: str) -> Point:
    """Runs one process: tokens per pass, milliseconds of prefill and decoding, and peak memory."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as out:
        words = [PROGRAM, "generate", "--json", "-q", "-m", bundle, "-p", CAPTION, "-b", images,
                 "--batch-size", images, "--device", options.device, "-t", options.threads, "--skip-checksums",
                 "-o", f"{folder}/%03d.png", *flags]  # fmt: skip
        process = subprocess.Popen([str(word) for word in words], stdout=out)
        memory = highest_memory(process)
        if process.returncode:
            raise SystemExit(process.returncode)
        out.seek(0)
        records = [json.loads(line) for line in out]
    timings = records[0]["ms"]  # times of the batch, the same in every record
    passes = max(record["target_passes"] for record in records)
    ms = timings["prefill"] + timings["decode"]
    return {
        "S": sum(r["tokens"] for r in records) / sum(r["target_passes"] for r in records),
        "ms": ms / images, "ms a pass": ms / passes, "MB": memory,
    }  # fmt: skip


def compare(
    bundle: Path, options: argparse.Namespace, axis: Point, images: int, *flags: str
) -> list[Point]:
    """Measures `ar` and the method in interleaved rounds; `ratio` compares milliseconds per image."""
    methods = {"ar": ("--method", "ar"), options.method: ("--method", options.method, *flags)}
    rounds: dict[str, list[Point]] = {name: [] for name in methods}
    for _ in range(options.rounds):
        for name, words in methods.items():
            rounds[name].append(generate(bundle, options, images, *words))
    points = []
    for name, measured in rounds.items():
        middle = {key: statistics.median(point[key] for point in measured) for key in measured[0]}
        points.append({"method": name, **axis, **middle})
    points[1]["ratio"] = points[0]["ms"] / points[1]["ms"]
    return [{k: round(v, 3) if isinstance(v, float) else v for k, v in p.items()} for p in points]


def bundle_of(options: argparse.Namespace, grid: int) -> Path:
    from models.demo.enlarge import BUNDLE, GPT_SIZES, enlarge

    folder = options.out / f"demo-{options.size}-{grid}"
    if not (folder / "manifest.json").is_file():
        print(f"writing {folder}", flush=True)
        enlarge(BUNDLE, folder, f"LlamaGen-{options.size}", GPT_SIZES[options.size], grid=grid)
    return folder


def curves(options: argparse.Namespace) -> dict[str, list[Point]]:
    found: dict[str, list[Point]] = {"image": [], "batch": [], "tree": []}

    def add(curve: str, *arguments: Any) -> None:
        for point in compare(*arguments):
            found[curve].append(point)
            print(curve, json.dumps(point), flush=True)

    for grid in options.grids:
        add("image", bundle_of(options, grid), options, {"grid": grid}, 1, "--tree", options.tree)
    smallest = bundle_of(options, min(options.grids))
    for count in options.batches:
        add("batch", smallest, options, {"images": count}, count, "--tree", options.tree)
    for tree in options.trees:
        add("tree", smallest, options, {"tree": tree}, 1, "--tree", tree)
    return found


def main() -> None:
    words = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = words.add_argument
    add("--size", choices=("B", "L", "XL", "XXL", "3B"), default="B")
    add("--grids", type=numbers, default=[16, 24, 32, 48, 64], metavar="LIST")
    add("--batches", type=numbers, default=[1, 2, 4, 8], metavar="LIST")
    add("--trees", type=lambda text: text.split(","), default=["chain-1", "chain-3", "chain-5", "chain-7", "lantern-26", "lantern-58"], metavar="LIST")  # fmt: skip
    add("--method", default="eagle", help="lossless: eagle, eagle-2, ngram or sjd")
    add("--tree", default="chain-5", help="tree for the curves over image and batch size")
    add("--rounds", type=int, default=3)
    add("--device", default="cpu")
    add("-t", "--threads", type=int, default=1)
    add("--out", type=Path, default=Path("growth"))
    options = words.parse_args()
    if options.rounds < 1 or options.threads < 1:
        words.error("--rounds and --threads: expected 1 or more")
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    from models.evaluate.report import markdown, publish, to_json

    options.out.mkdir(parents=True, exist_ok=True)
    found = curves(options)
    settings = {"size": options.size, "threads": options.threads, "rounds": options.rounds}
    publish(options.out / "growth.json", to_json({"settings": settings, "curves": found}))
    text = "\n".join(f"## {name}\n\n{markdown(points)}" for name, points in found.items() if points)
    publish(options.out / "growth.md", text)
    print(text)


if __name__ == "__main__":
    main()
