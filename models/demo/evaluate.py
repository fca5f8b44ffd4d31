"""Measures a demo bundle: do the images show what their captions say, and how real do they look?

    python -m models.demo.evaluate models/demo/bundle -n 500

generates held-out captions with the engine's command and classifies the images with the classifier.

    python -m models.demo.evaluate models/demo/bundle -n 500 --seeds 8 --method sjd

generates every caption eight times, which is what a difference between two methods needs: the standard errors
shrink, and the Frechet distance shows its scatter.

    python -m models.demo.evaluate models/demo/bundle -n 100 --captions captions.txt

writes those captions, for other commands.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from ..frechet import frechet, statistics
from .render.captions import caption
from .render.scene import Scene
from .scores import UNSAID, named_values, renderings
from .training.classifier import (
    CLASSIFIED,
    COLUMNS,
    classify,
    held_out_scenes,
    load_classifier,
    withheld_scenes,
)

BINARY = Path(__file__).resolve().parents[2] / "build" / "lamplighter"


def named(scene: Scene, text: str) -> list[bool]:
    """Which of the classified attributes the caption mentions, in the order of CLASSIFIED."""
    return [value != UNSAID for value in named_values(text)]


def generate(
    binary: Path,
    bundle: Path,
    captions: list[str],
    folder: Path,
    options: list[str],
    first_seed: int = 0,
) -> np.ndarray:
    """Images uint8 [N, 256, 256, 3] of the captions, made by the engine; image i has seed first_seed + i."""
    numbered = enumerate(captions, first_seed)
    requests = [{"prompt": text, "seed": seed} for seed, text in numbered]
    return generate_requests(binary, bundle, requests, folder, options)


def generate_requests(
    binary: Path,
    bundle: Path,
    requests: list[dict[str, object]],
    folder: Path,
    options: list[str],
) -> np.ndarray:
    """Images uint8 [N, h, w, 3] of lines of a prompt file, made by the engine."""
    prompts = folder / "prompts.jsonl"
    lines = [json.dumps(request) for request in requests]
    prompts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    command = [str(binary), "generate", "-q", "-m", str(bundle), "--prompt-file", str(prompts)]
    command += ["-o", str(folder / "%05d.png"), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    files = sorted(folder.glob("*.png"))
    if len(files) != len(requests):
        raise RuntimeError(f"{folder}: got {len(files)} images, expected {len(requests)}")
    return np.stack([np.asarray(Image.open(file).convert("RGB")) for file in files])


def contact_sheet(images: np.ndarray, columns: int, path: Path) -> None:
    """Saves the images row by row. What the last row lacks is white."""
    rows = -(-len(images) // columns)
    height, width = images.shape[1:3]
    white = np.full((rows * columns - len(images), height, width, 3), 255, np.uint8)
    tiles = np.concatenate([images, white]).reshape(rows, columns, height, width, 3)
    Image.fromarray(tiles.swapaxes(1, 2).reshape(rows * height, columns * width, 3)).save(path)


def asked(count: int, withheld: bool) -> tuple[list[tuple[int, Scene]], list[str]]:
    """Scenes that nothing was trained on, with their numbers, and their captions.

    withheld: scenes whose combinations training never showed, instead of scenes it might have shown.
    """
    rng = np.random.default_rng(2024)
    scenes = withheld_scenes(count) if withheld else held_out_scenes(0, count)
    return scenes, [caption(scene, rng) for _, scene in scenes]


def shares(right: np.ndarray, said: np.ndarray) -> dict[str, dict[str, float]]:
    """For the captions that name an attribute: share of images that show it, standard error, number of images.
    "all named" counts images that show everything that their caption names.

    right: bool [S, N, 8], run by caption by attribute in the order of CLASSIFIED; said bool [N, 8]. Images
    of one caption are alike, so the captions' means are what scatters.
    """
    table = {}
    right = np.concatenate([right, (right | ~said).all(2, keepdims=True)], 2)
    said = np.concatenate([said, said.any(1, keepdims=True)], 1)
    for name, shown, named_here in zip(
        (*CLASSIFIED, "all named"), np.moveaxis(right, 2, 0), said.T
    ):
        count = int(named_here.sum())
        if count == 0:
            continue
        means = shown[:, named_here].mean(0)
        error = float(np.sqrt(means.var(ddof=1) / count)) if count > 1 else 0.0
        table[name] = {
            "share": round(float(means.mean()), 4),
            "standard error": round(error, 4),
            "images": count * len(right),
        }
    return table


def spread(values: list[float]) -> dict[str, float | list[float]]:
    """A figure of every run, with the mean and its standard error where there are several."""
    report: dict[str, float | list[float]] = {"mean": round(float(np.mean(values)), 3)}
    if len(values) > 1:
        report["standard error"] = round(float(np.std(values, ddof=1) / len(values) ** 0.5), 3)
        report["runs"] = [round(value, 3) for value in values]
    return report


def evaluate(
    binary: Path,
    bundle: Path,
    count: int,
    sheet: Path | None,
    options: list[str],
    withheld: bool = False,
    seeds: int = 1,
) -> dict:
    """Accuracies over captions that name an attribute, Frechet distances; `seeds` images of every caption."""
    scenes, captions = asked(count, withheld)
    truth = np.stack([scene.indices()[COLUMNS] for _, scene in scenes])
    said = np.array([named(scene, text) for (_, scene), text in zip(scenes, captions)])
    model, accuracy = load_classifier()
    second = renderings(count, count)
    right, distances = [], []
    for number in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            images = generate(binary, bundle, captions, Path(folder), options, number * count)
        if sheet and number == 0:
            contact_sheet(images[:48], 8, sheet)
        answers, features = classify(model, images)
        right.append(answers == truth)
        distances.append(frechet(statistics(features), second))
    return {
        "bundle": str(bundle),
        "captions": count,
        "seeds": seeds,
        "scenes": "withheld combinations" if withheld else "held out",
        "options": options,
        "accuracy": shares(np.stack(right), said),
        "classifier accuracy on held-out renderings": accuracy,
        "frechet": {
            "images to renderings": spread(distances),
            "floor: renderings to renderings": round(frechet(renderings(0, count), second), 3),
            "n": count,
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.demo.evaluate", description=__doc__.splitlines()[0]
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("-n", type=int, default=500, help="number of captions (default 500)")
    parser.add_argument("--seeds", type=int, default=1, help="images of every caption (default 1)")
    parser.add_argument(
        "--withheld", action="store_true", help="generate combinations that training never showed"
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--sheet", type=Path, help="save a contact sheet of the first 48 images")
    parser.add_argument("--json", type=Path, help="also write the report here")
    parser.add_argument(
        "--captions", type=Path, help="write the captions here, and generate nothing"
    )
    options, rest = parser.parse_known_args()
    if options.captions:
        lines = asked(options.n, options.withheld)[1]
        options.captions.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    report = evaluate(
        options.binary,
        options.bundle,
        options.n,
        options.sheet,
        rest,
        options.withheld,
        options.seeds,
    )
    text = json.dumps(report, indent=1)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    sys.exit(main())
