"""Measures a bundle of the demo's classes: do images show subject and time of day, do they look real?

    python -m models.mar.demo.evaluate models/mar/demo/bundle -n 4 --method cspd

generates every class four times with the engine's command and classifies the images with the demo's classifier. What is
not known here goes to the engine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from ...demo.evaluate import BINARY, contact_sheet, generate_requests
from ...demo.render.vocabulary import ATTRIBUTES
from ...demo.render.world import render
from ...demo.training.classifier import CLASSIFIED, SceneClassifier, classify, load_classifier
from ...frechet import frechet, statistics
from .world import CLASSES, class_name, class_of, halved, scene_of

UNSEEN = 10**7  # seeds from here on are no training's
NAMED = ("subject", "time")


def seen(model: SceneClassifier, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers and features of the classifier, which knows images of twice the size."""
    return classify(model, images.repeat(2, 1).repeat(2, 2))


def truth(classes: list[int]) -> np.ndarray:
    """Indices [N,2] of the values that the classes name."""
    return np.array(
        [
            [
                ATTRIBUTES[name].index(value)
                for name, value in zip(NAMED, class_name(c), strict=True)
            ]
            for c in classes
        ]
    )


def renderings(count: int, first: int = UNSEEN) -> tuple[np.ndarray, list[int]]:
    """Images [N,128,128,3] that nothing was trained on, and their classes."""
    scenes = [(scene_of(seed), seed) for seed in range(first, first + count)]
    images = np.stack([render(scene, seed) for scene, seed in scenes])
    small = halved(torch.from_numpy(images).movedim(3, 1).float()).round().byte().movedim(1, 3)
    return small.numpy(), [class_of(scene) for scene, _ in scenes]


def shares(answers: np.ndarray, classes: list[int]) -> dict[str, float]:
    """Shares of images that show what their class names."""
    columns = [CLASSIFIED.index(name) for name in NAMED]
    right = (answers[:, columns] == truth(classes)).mean(0)
    return {name: round(float(share), 4) for name, share in zip(NAMED, right, strict=True)}


def evaluate(images: np.ndarray, classes: list[int]) -> dict[str, object]:
    """Shares of right images, and a Frechet distance to as many renderings; the same of others of those."""
    model, _ = load_classifier()
    count = len(classes)
    answers, features = seen(model, images)
    report: dict[str, object] = {"images": count, "generated": shares(answers, classes)}
    sets = [renderings(count, UNSEEN + i * count) for i in range(2)]
    classified = [seen(model, found) for found, _ in sets]
    real = [statistics(f) for _, f in classified]
    report["renderings"] = shares(classified[0][0], sets[0][1])
    report["frechet"] = round(frechet(statistics(features), real[0]), 3)
    report["frechet of renderings"] = round(frechet(real[1], real[0]), 3)
    return report


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.mar.demo.evaluate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument("-n", type=int, default=4, help="images of every class")
    parser.add_argument("--seed", type=int, default=0, help="of the first image")
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--sheet", type=Path, help="saves the images, a row for every subject")
    options, rest = parser.parse_known_args()
    classes = [c for c in range(CLASSES) for _ in range(options.n)]
    requests = [{"class": c, "seed": options.seed + i} for i, c in enumerate(classes)]
    with tempfile.TemporaryDirectory() as name:
        images = generate_requests(options.binary, options.bundle, requests, Path(name), rest)
    if options.sheet:
        contact_sheet(images, 5 * options.n, options.sheet)
    print(json.dumps(evaluate(images, classes), indent=1))


if __name__ == "__main__":
    main()
