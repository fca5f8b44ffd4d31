"""The demo's own evaluation: a classifier that knows the demo's world classifies images of its captions.

Needs no download: the classifier ships with the demo, and the images compared with are rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ..frechet import Statistics, frechet, statistics
from .render.vocabulary import (
    ATTRIBUTES,
    BACKGROUND_PHRASES,
    COAST_PHRASES,
    COLOUR_WORDS,
    GROUND_PHRASES,
    OVER_PHRASES,
    SUBJECT_WORDS,
    SUBJECTS,
    TIME_PHRASES,
    TIME_TAGS,
    WEATHER_PHRASES,
)
from .render.world import render
from .training.classifier import CLASSIFIED, classify, held_out_scenes, load_classifier

UNSAID = -1
Table = list[tuple[str, str]]


def _longest_first(*group: dict[str, tuple[str, ...]]) -> Table:
    """Phrases and their values."""
    pairs = {(text, value) for table in group for value, texts in table.items() for text in texts}
    return sorted(pairs, key=lambda pair: (-len(pair[0]), pair))


PHRASES: dict[str, Table] = {
    "background": _longest_first(BACKGROUND_PHRASES),
    "weather": _longest_first(WEATHER_PHRASES),
    "time": _longest_first(TIME_PHRASES, TIME_TAGS),
    "ground": _longest_first(GROUND_PHRASES, OVER_PHRASES, {"sea": COAST_PHRASES}),
}
_NOUNS, _COLOURS = dict(_longest_first(SUBJECT_WORDS)), dict(_longest_first(COLOUR_WORDS))
_NOUN = re.compile(
    rf"(?:\b({'|'.join(map(re.escape, _COLOURS))}) )?\b({'|'.join(map(re.escape, _NOUNS))})\b"
)


def named_subjects(text: str) -> list[tuple[str, str | None]]:
    """At most two subjects with their colours, if they are named, in the order of SUBJECTS."""
    found: dict[str, str | None] = {}
    for colour, noun in _NOUN.findall(text):
        found.setdefault(_NOUNS[noun], _COLOURS[colour] if colour else None)
    return sorted(list(found.items())[:2], key=lambda pair: SUBJECTS.index(pair[0]))


def named_values(text: str) -> list[int]:
    """The value that a caption names for each of CLASSIFIED, as an index; UNSAID where it names none.

    What one attribute's phrase has said is taken out: the sky of a dusk is red whatever the house.
    """
    text, found = text.lower(), dict.fromkeys(CLASSIFIED, UNSAID)
    for name, pairs in PHRASES.items():
        for phrase, value in pairs:
            match = re.search(rf"\b{re.escape(phrase)}\b", text)
            if match:
                found[name] = ATTRIBUTES[name].index(value)
                text = text[: match.start()] + " , " + text[match.end() :]
                break
    columns = (("subject", "colour"), ("second", "second_colour"))
    for (subject, colour), (kind, paint) in zip(columns, named_subjects(text)):
        found[subject] = ATTRIBUTES[subject].index(kind)
        found[colour] = ATTRIBUTES[colour].index(paint) if paint else UNSAID
    return [found[name] for name in CLASSIFIED]


@lru_cache(maxsize=4)
def renderings(first: int, count: int) -> Statistics:
    """Statistics of the classifier's features of held-out renderings."""
    model, _ = load_classifier()
    step = 50
    parts = [
        classify(
            model,
            np.stack(
                [render(s, seed) for seed, s in held_out_scenes(at, min(step, first + count - at))]
            ),
        )[1]
        for at in range(first, first + count, step)
    ]
    return statistics(np.concatenate(parts))


def classified(
    batches: Iterable[np.ndarray], truth: np.ndarray, said: np.ndarray
) -> tuple[dict[str, float], np.ndarray]:
    """Accuracy by attribute over the captions that name it, and the classifier's features [N, F].

    batches: N images in all, uint8 [B, 256, 256, 3]; truth int and said bool [N, 8] in the order of CLASSIFIED.
    """
    model, _ = load_classifier()
    answers, features = zip(*(classify(model, images) for images in batches))
    right = (np.concatenate(answers) == truth) & said
    shares = right.sum(0) / np.maximum(said.sum(0), 1)
    accuracy = {name: float(x) for name, x, n in zip(CLASSIFIED, shares, said.sum(0)) if n}
    return accuracy, np.concatenate(features)


def score(batches: Iterable[np.ndarray], captions: list[str]) -> dict[str, float]:
    """The demo's metrics of images that belong to captions; a caption of another world says nothing.

    One image has no Frechet distance.
    """
    truth = np.array([named_values(text) for text in captions])
    accuracy, generated = classified(batches, truth, truth != UNSAID)
    count = len(captions)
    scores = {f"demo_{name}": round(value, 4) for name, value in accuracy.items()}
    if count > 1:
        scores["demo_frechet"] = round(frechet(statistics(generated), renderings(count, count)), 3)
    return scores
