"""The demo's own evaluation: a classifier that knows the demo's world judges pictures of its captions.

Needs no download: the classifier ships with the demo, and the pictures compared with are rendered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from ..demo.render.captions import (
    BACKGROUND_PHRASES,
    COAST_PHRASES,
    COLOUR_WORDS,
    GROUND_PHRASES,
    OVER_PHRASES,
    SUBJECT_WORDS,
    TIME_PHRASES,
    TIME_TAGS,
)
from ..demo.render.scene import ATTRIBUTES
from ..demo.render.world import render
from ..demo.training.classifier import JUDGED, held_out_scenes, judge, load_classifier
from .arithmetic import Statistics, frechet, statistics

UNSAID = -1


def phrase_tables() -> dict[str, list[tuple[str, str]]]:
    """Phrases of every attribute and their values, the longest first."""
    groups = {
        "background": (BACKGROUND_PHRASES,),
        "time": (TIME_PHRASES, TIME_TAGS),
        "ground": (GROUND_PHRASES, OVER_PHRASES, {"sea": COAST_PHRASES}),
        "subject": (SUBJECT_WORDS,),
        "colour": (COLOUR_WORDS,),
    }
    tables = {}
    for name, group in groups.items():
        pairs = {
            (text, value) for table in group for value, texts in table.items() for text in texts
        }
        tables[name] = sorted(pairs, key=lambda pair: (-len(pair[0]), pair))
    return tables


PHRASES = phrase_tables()


def named_values(text: str) -> list[int]:
    """The value that a caption names for each of JUDGED, as an index; UNSAID where it names none.

    What one attribute's phrase has said is taken out: the sky of a dusk is red whatever the house.
    """
    text, found = text.lower(), dict.fromkeys(PHRASES, UNSAID)
    for name, pairs in PHRASES.items():
        for phrase, value in pairs:
            match = re.search(rf"\b{re.escape(phrase)}\b", text)
            if match:
                found[name] = ATTRIBUTES[name].index(value)
                text = text[: match.start()] + " , " + text[match.end() :]
                break
    return [found[name] for name in JUDGED]


@lru_cache(maxsize=4)
def renderings(first: int, count: int) -> Statistics:
    """Of the classifier's features of held-out renderings."""
    model, _ = load_classifier()
    step = 50
    parts = [
        judge(model, np.stack([render(s, seed) for seed, s in held_out_scenes(at, min(step, first + count - at))]))[1]
        for at in range(first, first + count, step)
    ]  # fmt: skip
    return statistics(np.concatenate(parts))


def judged(
    batches: Iterable[np.ndarray], truth: np.ndarray, said: np.ndarray
) -> tuple[dict[str, float], Statistics]:
    """Accuracy by attribute over the captions that name it, and the statistics of the features.

    batches: pictures uint8 [B, 128, 128, 3], N in all; truth int [N, 4] in the order of JUDGED; said bool [N, 4].
    """
    model, _ = load_classifier()
    answers, features = zip(*(judge(model, images) for images in batches))
    right = (np.concatenate(answers) == truth) & said
    shares = right.sum(0) / np.maximum(said.sum(0), 1)
    accuracy = {name: float(x) for name, x, n in zip(JUDGED, shares, said.sum(0)) if n}
    return accuracy, statistics(np.concatenate(features))


def score(batches: Iterable[np.ndarray], captions: list[str]) -> dict[str, float]:
    """The demo's metrics of pictures that belong to captions; a caption of another world says nothing."""
    truth = np.array([named_values(text) for text in captions])
    accuracy, drawn = judged(batches, truth, truth != UNSAID)
    count = len(captions)
    scores = {f"demo_{name}": round(value, 4) for name, value in accuracy.items()}
    return {**scores, "demo_frechet": round(frechet(drawn, renderings(count, count)), 3)}
