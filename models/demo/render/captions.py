"""Captions of demo scenes: several phrasings, synonyms, and optional parts."""

from __future__ import annotations

import numpy as np

from models.demo.render.scene import Scene

SUBJECT_WORDS: dict[str, tuple[str, ...]] = {
    "lighthouse": ("lighthouse", "lighthouse", "light house", "tower with a light"),
    "sailboat": ("sailboat", "sail boat", "boat", "yacht", "sailing boat"),
    "house": ("house", "cottage", "cabin", "small house"),
    "windmill": ("windmill", "windmill", "wind mill", "old mill"),
    "tent": ("tent", "tent", "camping tent"),
    "tree": ("tree", "tree", "big tree"),
    "balloon": ("balloon", "hot air balloon", "hot-air balloon"),
}
COLOUR_WORDS: dict[str, tuple[str, ...]] = {
    "red": ("red", "red", "crimson"),
    "orange": ("orange",),
    "yellow": ("yellow", "yellow", "golden"),
    "green": ("green",),
    "blue": ("blue",),
    "purple": ("purple", "purple", "violet"),
    "pink": ("pink",),
    "white": ("white",),
}
TIME_PHRASES: dict[str, tuple[str, ...]] = {
    "dawn": ("at dawn", "at sunrise", "in the morning", "in the early morning", "in morning light"),
    "day": ("at noon", "by day", "on a sunny day", "under a blue sky", "in daylight"),
    "dusk": ("at dusk", "at sunset", "in the evening", "in evening light", "under a red sky"),
    "night": ("at night", "by night", "under the stars", "in the moonlight", "under a starry sky"),
    "storm": (
        "in a storm",
        "under stormy skies",
        "in stormy weather",
        "during a storm",
        "under dark clouds",
    ),
}
TIME_TAGS: dict[str, tuple[str, ...]] = {
    "dawn": ("dawn", "sunrise", "morning"),
    "day": ("day", "noon", "sunny", "daylight", "sunny day", "blue sky"),
    "dusk": ("dusk", "sunset", "evening"),
    "night": ("night", "starry night", "moonlight"),
    "storm": ("storm", "stormy", "stormy sky", "thunderstorm"),
}
GROUND_PHRASES: dict[str, tuple[str, ...]] = {
    "meadow": (
        "on a meadow",
        "in a green field",
        "on the grass",
        "in a flower meadow",
        "in a meadow",
    ),
    "sea": ("on the sea", "on the ocean", "at sea", "on the water", "on the waves"),
    "desert": ("in the desert", "on the sand", "in the dunes", "among sand dunes"),
    "snow": ("in the snow", "on the snow", "in winter", "on a snowy field"),
    "autumn": ("in an autumn field", "in autumn", "on an autumn meadow", "in the fall"),
    "lavender": (
        "in a lavender field",
        "in the lavender",
        "among lavender",
        "in a field of lavender",
    ),
}
COAST_PHRASES = (
    "on the coast",
    "on the shore",
    "by the sea",
    "by the ocean",
    "on a rock in the sea",
)
OVER_PHRASES: dict[str, tuple[str, ...]] = {
    "meadow": ("over a meadow", "over a green field", "above the grass"),
    "sea": ("over the sea", "over the ocean", "above the water", "over the coast"),
    "desert": ("over a desert", "over the desert", "above the dunes", "over the sand"),
    "snow": ("over the snow", "above a snowy field", "over a winter landscape"),
    "autumn": ("over an autumn field", "over an autumn landscape", "above autumn meadows"),
    "lavender": ("over a lavender field", "above the lavender", "over lavender"),
}
BACKGROUND_PHRASES: dict[str, tuple[str, ...]] = {
    "none": (),
    "mountains": (
        "in front of mountains",
        "with mountains behind",
        "with mountains in the background",
        "below tall mountains",
    ),
    "hills": (
        "in front of hills",
        "with hills behind",
        "with hills in the background",
        "below green hills",
    ),
    "forest": (
        "in front of a forest",
        "with a forest behind",
        "with trees in the background",
        "by the woods",
    ),
}
SIDE_PHRASES: dict[str, tuple[str, ...]] = {
    "left": ("on the left", "to the left", "at the left side"),
    "centre": ("in the centre", "in the middle", "in the center"),
    "right": ("on the right", "to the right", "at the right side"),
}
OPENINGS = ("", "", "", "", "a picture of ", "a photo of ", "a painting of ", "a view of ")


def _pick(rng: np.random.Generator, options: tuple[str, ...]) -> str:
    return options[int(rng.integers(len(options)))]


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeiou" else "a"


def ground_phrases(scene: Scene) -> tuple[str, ...]:
    """The place phrases that fit the subject: boats are on the sea, lighthouses on the coast."""
    if scene.subject == "balloon":
        return OVER_PHRASES[scene.ground]
    if scene.subject == "lighthouse" and scene.ground == "sea":
        return COAST_PHRASES
    return GROUND_PHRASES[scene.ground]


def _noun(scene: Scene, rng: np.random.Generator, article: bool) -> str:
    words = [_pick(rng, SUBJECT_WORDS[scene.subject])]
    if rng.random() < 0.95:
        words.insert(0, _pick(rng, COLOUR_WORDS[scene.colour]))
    noun = " ".join(words)
    if not article:
        return noun
    return f"{'the' if rng.random() < 0.1 else _article(noun)} {noun}"


def caption(scene: Scene, rng: np.random.Generator) -> str:
    """A random lower-case caption of the scene.

    Subject always, colour, time and ground nearly always, background and side about half of the
    time. Either one sentence, a sentence that begins with time or place, or a list of tags.
    """
    ground = _pick(rng, ground_phrases(scene)) if rng.random() < 0.95 else ""
    time = _pick(rng, TIME_PHRASES[scene.time]) if rng.random() < 0.95 else ""
    tag = _pick(rng, TIME_TAGS[scene.time]) if time else ""
    behind = BACKGROUND_PHRASES[scene.background]
    background = _pick(rng, behind) if behind and rng.random() < 0.55 else ""
    side = _pick(rng, SIDE_PHRASES[scene.side]) if rng.random() < 0.35 else ""
    style = rng.random()
    if style < 0.2:
        parts = [_noun(scene, rng, rng.random() < 0.5), ground, background, side, tag]
        text = ", ".join(part for part in parts if part)
        return text.replace(", ", " ", 1) if ground and rng.random() < 0.6 else text
    noun = _noun(scene, rng, True)
    if style < 0.35 and time:
        return f"{time} " + " ".join(p for p in (noun, side, ground, background) if p)
    if style < 0.45 and ground and scene.subject != "balloon":
        return f"{ground}, " + " ".join(p for p in (noun, side, background, time) if p)
    order = [side, ground, background] if rng.random() < 0.7 else [ground, background, side]
    order.insert(int(rng.integers(4)) if rng.random() < 0.4 else 3, time)
    return _pick(rng, OPENINGS) + " ".join(p for p in [noun, *order] if p)
