"""Measures a bundle of the demo's classes: do the pictures show their subject and time of day, how real do they look?

    python -m models.mar.demo.evaluate models/mar/demo/bundle -n 4 --method cspd

draws every class four times with the engine's command and judges the pictures with the demo's classifier. What is
not known here goes to the engine.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
import torch

from models.demo.evaluate import BINARY, contact_sheet, draw_requests
from models.demo.render.vocabulary import ATTRIBUTES
from models.demo.render.world import render
from models.demo.training.classifier import JUDGED, SceneClassifier, judge, load_classifier
from models.evaluate.arithmetic import frechet, statistics
from models.mar.demo.world import CLASSES, class_name, class_of, halved, scene_of

UNSEEN = 10**7  # seeds from here on are no training's
NAMED = ("subject", "time")


def seen(model: SceneClassifier, pictures: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the classifier, which knows pictures of twice the size, answers and what it reads from them."""
    return judge(model, pictures.repeat(2, 1).repeat(2, 2))


def truth(classes: list[int]) -> np.ndarray:
    """Indices [N,2] of the values that the classes name."""
    return np.array([
        [ATTRIBUTES[name].index(value) for name, value in zip(NAMED, class_name(c), strict=True)]
        for c in classes
    ])  # fmt: skip


def renderings(count: int, first: int = UNSEEN) -> tuple[np.ndarray, list[int]]:
    """Pictures [N,128,128,3] that nothing was trained on, and their classes."""
    scenes = [(scene_of(seed), seed) for seed in range(first, first + count)]
    pictures = np.stack([render(scene, seed) for scene, seed in scenes])
    small = halved(torch.from_numpy(pictures).movedim(3, 1).float()).round().byte().movedim(1, 3)
    return small.numpy(), [class_of(scene) for scene, _ in scenes]


def shares(answers: np.ndarray, classes: list[int]) -> dict[str, float]:
    """Of the pictures that show what their class names."""
    columns = [JUDGED.index(name) for name in NAMED]
    right = (answers[:, columns] == truth(classes)).mean(0)
    return {name: round(float(share), 4) for name, share in zip(NAMED, right, strict=True)}


def evaluate(pictures: np.ndarray, classes: list[int]) -> dict[str, object]:
    """Shares of right pictures, and a Frechet distance to as many renderings; the same of others of those."""
    model, _ = load_classifier()
    count = len(classes)
    answers, features = seen(model, pictures)
    report: dict[str, object] = {"pictures": count, "drawn": shares(answers, classes)}
    sets = [renderings(count, UNSEEN + i * count) for i in range(2)]
    judged = [seen(model, images) for images, _ in sets]
    real = [statistics(f) for _, f in judged]
    report["renderings"] = shares(judged[0][0], sets[0][1])
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
    parser.add_argument("-n", type=int, default=4, help="pictures of every class")
    parser.add_argument("--seed", type=int, default=0, help="of the first picture")
    parser.add_argument("--binary", type=Path, default=BINARY)
    parser.add_argument("--sheet", type=Path, help="saves the pictures, a row for every subject")
    options, rest = parser.parse_known_args()
    classes = [c for c in range(CLASSES) for _ in range(options.n)]
    requests = [{"class": c, "seed": options.seed + i} for i, c in enumerate(classes)]
    with tempfile.TemporaryDirectory() as name:
        pictures = draw_requests(options.binary, options.bundle, requests, Path(name), rest)
    if options.sheet:
        contact_sheet(pictures, 5 * options.n, options.sheet)
    print(json.dumps(evaluate(pictures, classes), indent=1))


if __name__ == "__main__":
    main()
