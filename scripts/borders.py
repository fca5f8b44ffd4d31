"""Measures how well a region that is generated anew fits what follows it, by the number of candidates.

    python scripts/borders.py [--out borders/] [--images 16] [--candidates 1,4,16] [-m models/demo/bundle] [-t N]

Generates images of captions and then a rectangle of each anew under its own caption, by `generate --region`. The border
error of a rectangle is the mean absolute difference, in steps of 0 to 255, between the pixels on both sides of its lower
and its right border. What lies there is kept, and the model does not see it while it generates the rectangle. The upper
and the left border, behind which it sees everything, are measured beside them, and both in the images before the change;
the excess is what the error grew by. Prints a table and writes borders.json, a file for scripts/results.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import statistics
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from comparison import ROOT
from numpy.typing import NDArray
from PIL import Image

PROGRAM = ROOT / "build" / "lamplighter"
SUBJECTS = (
    "lighthouse",
    "sailboat",
    "house",
    "windmill",
    "tent",
    "tree",
    "balloon",
    "castle",
    "car",
    "mushroom",
)
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")
PLACES = (
    "on a meadow",
    "in the desert",
    "in the snow",
    "in an autumn field",
    "in a lavender field",
)
TIMES = ("at dawn", "at noon", "at dusk", "at night", "in a storm")
GRID, TOKEN = 16, 16  # tokens of a side of the demo's images, pixels of a token
Region = tuple[int, int, int, int]


def captions(count: int) -> list[str]:
    chosen = random.Random(59)
    return [
        f"a {chosen.choice(COLOURS)} {chosen.choice(SUBJECTS)} {chosen.choice(PLACES)} {chosen.choice(TIMES)}"
        for _ in range(count)
    ]


def regions(count: int) -> list[Region]:
    """Wide rectangles above the middle, in pixels: what they show of a subject goes on below them."""
    chosen = random.Random(60)
    found = []
    for _ in range(count):
        width, height = chosen.randint(8, 12), chosen.randint(4, 6)
        x, y = chosen.randint(1, GRID - 1 - width), chosen.randint(3, 6)
        found.append((x * TOKEN, y * TOKEN, width * TOKEN, height * TOKEN))
    return found


def across(pixels: NDArray[np.int64], region: Region) -> tuple[float, float]:
    """The differences across the borders behind which the model does not see, and across the others."""
    x, y, width, height = region
    right, below = x + width, y + height
    rows, columns = slice(y, below), slice(x, right)
    unseen = (
        pixels[below - 1, columns] - pixels[below, columns],
        pixels[rows, right - 1] - pixels[rows, right],
    )
    seen = (pixels[y - 1, columns] - pixels[y, columns], pixels[rows, x - 1] - pixels[rows, x])
    return tuple(float(np.abs(np.concatenate(both)).mean()) for both in (unseen, seen))  # type: ignore[return-value]


def generate(
    options: argparse.Namespace, caption: str, output: Path, *flags: object
) -> dict[str, Any]:
    words = (PROGRAM, "generate", "-q", "--json", "-m", options.model, "-t", options.threads, "--overwrite", "-p",
             caption, "-o", output, *flags)  # fmt: skip
    ran = subprocess.run(
        [str(word) for word in words], stdout=subprocess.PIPE, text=True, check=True
    )
    line: dict[str, Any] = json.loads(ran.stdout)
    return line


def pixels_of(path: Path) -> NDArray[np.int64]:
    return np.asarray(Image.open(path).convert("RGB")).astype(np.int64)


def interval(values: list[float]) -> list[float]:
    """The mean with two standard errors around it."""
    mean, error = statistics.mean(values), statistics.stdev(values) / len(values) ** 0.5
    return [round(mean - 2 * error, 2), round(mean + 2 * error, 2)]


def row(
    way: tuple[int, str] | None, before: list[tuple[float, float]], after: list[tuple[float, float]],
    scores: list[float], passes: list[int],
) -> list[Any]:  # fmt: skip
    """Means over images; the excess is what the error grew by, image by image."""
    unseen, seen = [one[0] for one in after], [one[1] for one in after]
    error = [round(statistics.mean(unseen), 2), None, None, round(statistics.mean(seen), 2)]
    if way is None:
        return ["before", None, *error, None, None]
    excess = [one[0] - other[0] for one, other in zip(after, before)]
    error[1:3] = [round(statistics.mean(excess), 2), interval(excess)]
    gain = round(statistics.mean(scores), 1)
    return [str(way[0]), way[1], *error, gain, round(statistics.mean(passes), 1)]


def measure(options: argparse.Namespace) -> list[list[Any]]:
    options.out.mkdir(parents=True, exist_ok=True)
    ways = [(k, "best") for k in options.candidates] + [(max(options.candidates), "sample")]
    before: list[tuple[float, float]] = []
    after: dict[tuple[int, str], list[tuple[float, float]]] = {way: [] for way in ways}
    scores: dict[tuple[int, str], list[float]] = {way: [] for way in ways}
    passes: dict[tuple[int, str], list[int]] = {way: [] for way in ways}
    for number, (caption, region) in enumerate(
        zip(captions(options.images), regions(options.images))
    ):
        codes, image = options.out / f"{number}.json", options.out / f"{number}.png"
        generate(options, caption, image, "--seed", 1000 + number, "--save-codes", codes)
        before.append(across(pixels_of(image), region))
        for k, pick in ways:
            output = options.out / f"{number}-{k}-{pick}.png"
            line = generate(options, caption, output, "--seed", 2000 + number, "--from", codes, "--region",
                            ",".join(map(str, region)), "--candidates", k, "--pick", pick)  # fmt: skip
            after[k, pick].append(across(pixels_of(output), region))
            all_scores = line.get("log_probabilities", [0.0])
            scores[k, pick].append(all_scores[line.get("picked", 0)] - all_scores[0])
            passes[k, pick].append(line.get("passes_of_all", line["target_passes"]))
    return [
        row(None, before, before, [], []),
        *(row(way, before, after[way], scores[way], passes[way]) for way in ways),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("borders"))
    parser.add_argument("--images", type=int, default=16)
    parser.add_argument(
        "--candidates",
        type=lambda text: [int(part) for part in text.split(",")],
        default=[1, 4, 16],
    )
    parser.add_argument("-m", "--model", type=Path, default=ROOT / "models" / "demo" / "bundle")
    parser.add_argument("-t", "--threads", type=int, default=1)
    options = parser.parse_args()
    columns = [
        "candidates", "pick", "border", "excess", "excess_interval", "border_above_and_left", "log_probability_gain",
        "passes",
    ]  # fmt: skip
    rows = measure(options)
    run = {
        "title": "how a region fits what follows it",
        "machine": "any",
        "processor": "any",
        "instructions": None,
        "date": datetime.date.today().isoformat(),
        "model": "models/demo/bundle",
        "command": ".venv/bin/python scripts/borders.py",
        "note": f"{options.images} captions with a region each; intervals are two standard errors around the mean.",
        "columns": columns,
        "rows": rows,
    }
    (options.out / "borders.json").write_text(json.dumps(run, indent=1) + "\n")
    print("| " + " | ".join(columns) + " |\n|" + " --- |" * len(columns))
    for one in rows:
        print("| " + " | ".join("" if cell is None else str(cell) for cell in one) + " |")


if __name__ == "__main__":
    main()
