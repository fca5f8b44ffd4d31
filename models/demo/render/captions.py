"""Captions of demo scenes: several phrasings, synonyms, and optional parts."""

from __future__ import annotations

import numpy as np

from .scene import Scene, exchanged
from .vocabulary import (
    BACKGROUND_PHRASES,
    COAST_PHRASES,
    COLOUR_WORDS,
    GROUND_PHRASES,
    JOINTS,
    OPENINGS,
    OVER_PHRASES,
    SIDE_PHRASES,
    SUBJECT_WORDS,
    TIME_PHRASES,
    TIME_TAGS,
    WEATHER_PHRASES,
)

_OPPOSITE = {"left": "right", "right": "left"}


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def ground_phrases(scene: Scene) -> tuple[str, ...]:
    """The location phrases that fit the subjects: boats are on the sea, lighthouses on the coast."""
    subjects = {scene.subject, scene.second} if scene.pair else {scene.subject}
    if subjects == {"balloon"}:
        return OVER_PHRASES[scene.ground]
    if subjects == {"lighthouse"} and scene.ground == "sea":
        return COAST_PHRASES
    return GROUND_PHRASES[scene.ground]


def _noun(subject: str, colour: str, rng: np.random.Generator, article: bool) -> str:
    words = [_pick(rng, SUBJECT_WORDS[subject])]
    if rng.random() < 0.95:
        words.insert(0, _pick(rng, COLOUR_WORDS[colour]))
    noun = " ".join(words)
    if not article:
        return noun
    return f"{'the' if rng.random() < 0.1 else _article(noun)} {noun}"


def _subjects(scene: Scene, rng: np.random.Generator, article: bool, sides: bool) -> str:
    """One noun, or both; with `sides`, each with the side where it stands."""
    first = _noun(scene.subject, scene.colour, rng, article)
    if not scene.pair:
        return first
    second = _noun(scene.second, scene.second_colour, rng, article)
    if sides:
        first += " " + _pick(rng, SIDE_PHRASES[scene.side])
        second += " " + _pick(rng, SIDE_PHRASES[_OPPOSITE[scene.side]])
    return f"{first} {_pick(rng, JOINTS)} {second}"


def caption(scene: Scene, rng: np.random.Generator) -> str:
    """A random lower-case caption of the scene; of two subjects either may be named first."""
    return _sentence(exchanged(scene) if scene.pair and rng.random() < 0.5 else scene, rng)


def _sentence(scene: Scene, rng: np.random.Generator) -> str:
    """Names the subjects in the scene's order.

    Subjects always, colour, time, ground and weather nearly always, background and sides about half
    of the time. Either one sentence, a sentence that begins with time or location, or a list of tags.
    """
    ground = _pick(rng, ground_phrases(scene)) if rng.random() < 0.95 else ""
    time = _pick(rng, TIME_PHRASES[scene.time]) if rng.random() < 0.95 else ""
    tag = _pick(rng, TIME_TAGS[scene.time]) if time else ""
    falling = WEATHER_PHRASES[scene.weather]
    weather = _pick(rng, falling) if falling and rng.random() < 0.9 else ""
    behind = BACKGROUND_PHRASES[scene.background]
    background = _pick(rng, behind) if behind and rng.random() < 0.55 else ""
    sides = rng.random() < 0.35
    side = _pick(rng, SIDE_PHRASES[scene.side]) if sides and not scene.pair else ""
    style = rng.random()
    if style < 0.2:
        noun = _subjects(scene, rng, rng.random() < 0.5, sides)
        parts = [noun, ground, background, side, weather, tag]
        text = ", ".join(part for part in parts if part)
        return text.replace(", ", " ", 1) if ground and rng.random() < 0.6 else text
    noun = _subjects(scene, rng, True, sides)
    if style < 0.35 and time:
        return f"{time} " + " ".join(p for p in (noun, side, ground, background, weather) if p)
    if style < 0.45 and ground and "balloon" not in (scene.subject, scene.second):
        return f"{ground}, " + " ".join(p for p in (noun, side, background, weather, time) if p)
    order = [side, ground, background] if rng.random() < 0.7 else [ground, background, side]
    order.insert(int(rng.integers(4)) if rng.random() < 0.4 else 3, time)
    order.insert(len(order) if rng.random() < 0.5 else order.index(time), weather)
    return _pick(rng, OPENINGS) + " ".join(p for p in [noun, *order] if p)
