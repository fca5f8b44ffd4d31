"""Contents of the demo's images: which scenes make sense, and which are kept from training."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from .vocabulary import (
    ATTRIBUTES,
    BACKGROUNDS,
    COLOURS,
    GROUNDS,
    NONE,
    SIDES,
    SUBJECTS,
    TIMES,
)

#: Combinations that no training image shows, so that it can be measured whether they are sampled rightly
#: all the same: pairs of an attribute and its value, of one subject or of the two subjects of a scene.
WITHHELD: tuple[dict[str, str], ...] = (
    {"subject": "sailboat", "colour": "purple"},
    {"subject": "windmill", "colour": "pink"},
    {"subject": "house", "colour": "green"},
    {"subject": "castle", "colour": "orange"},
    {"subject": "lighthouse", "time": "dawn"},
    {"subject": "tent", "ground": "snow"},
    {"subject": "car", "ground": "lavender"},
    {"subject": "tree", "weather": "rainbow"},
    {"subject": "house", "second": "balloon"},
    {"subject": "windmill", "second": "car"},
)
TWO = 0.25  # share of scenes with a second subject
AFLOAT = ("sailboat",)  # what is on the water only
BOTH = ("lighthouse", "balloon")  # what goes with water and with land


@dataclass(frozen=True)
class Scene:
    """One image's content; every field holds one of the values in ATTRIBUTES.

    Of two subjects the one that SUBJECTS has first is `subject`. `side` is that of `subject`.
    """

    subject: str
    colour: str
    time: str
    ground: str
    background: str
    side: str
    weather: str = "fair"
    second: str = NONE
    second_colour: str = NONE

    def indices(self) -> np.ndarray:
        """uint8 [9]: the index of every attribute's value, in the order of ATTRIBUTES."""
        return np.array(
            [ATTRIBUTES[f.name].index(getattr(self, f.name)) for f in fields(self)], np.uint8
        )

    @staticmethod
    def from_indices(indices: np.ndarray) -> Scene:
        """The inverse of `indices`."""
        return Scene(*(values[int(i)] for values, i in zip(ATTRIBUTES.values(), indices)))

    @property
    def pair(self) -> bool:
        return self.second != NONE


def exchanged(scene: Scene) -> Scene:
    """The same image with its two subjects the other way round."""
    return replace(
        scene,
        subject=scene.second,
        colour=scene.second_colour,
        second=scene.subject,
        second_colour=scene.colour,
        side=mirror(scene).side,
    )


def ordered(scene: Scene) -> Scene:
    """The same image with its subjects in the order of SUBJECTS."""
    if scene.pair and SUBJECTS.index(scene.second) < SUBJECTS.index(scene.subject):
        return exchanged(scene)
    return scene


def withheld(scene: Scene) -> bool:
    """Whether the scene shows a combination of WITHHELD."""
    views = (scene, exchanged(scene)) if scene.pair else (scene,)
    return any(
        all(getattr(view, name) == value for name, value in combination.items())
        for combination in WITHHELD
        for view in views
    )


def _ground(subject: str, rng: np.random.Generator) -> str:
    """Boats float, lighthouses stand on the coast half of the time, balloons fly over everything."""
    if subject in AFLOAT:
        return "sea"
    if subject == "lighthouse" and rng.random() < 0.5:
        return "sea"
    land = [g for g in GROUNDS if g != "sea" or subject == "balloon"]
    return str(rng.choice(land))


def _weather(time: str, ground: str, rng: np.random.Generator) -> str:
    """Half of the scenes have weather of their own; a storm may bring rain."""
    if time == "storm":
        return "rain" if rng.random() < 0.3 else "fair"
    if ground == "snow":
        choices = ["clouds", "snowfall", "snowfall", "mist"]
    elif time in ("dawn", "day"):
        choices = ["clouds", "rain", "mist", "rainbow", "rainbow"]
    else:
        choices = ["clouds", "rain", "mist"]
    return str(rng.choice(choices)) if rng.random() < 0.5 else "fair"


def sample_any(rng: np.random.Generator) -> Scene:
    """A random sensible scene; every attribute but ground, weather and the second subject is uniform."""
    subject = str(rng.choice(SUBJECTS))
    colour, time = str(rng.choice(COLOURS)), str(rng.choice(TIMES))
    background, side = str(rng.choice(BACKGROUNDS)), str(rng.choice(SIDES))
    ground = _ground(subject, rng)
    scene = Scene(subject, colour, time, ground, background, side, _weather(time, ground, rng))
    if rng.random() >= TWO:
        return scene
    fitting = (*AFLOAT, *BOTH) if ground == "sea" else tuple(s for s in SUBJECTS if s not in AFLOAT)
    second = str(rng.choice([s for s in fitting if s != subject]))
    other = str(rng.choice([c for c in COLOURS if c != colour]))
    side = "left" if rng.random() < 0.5 else "right"
    return ordered(replace(scene, side=side, second=second, second_colour=other))


def sample_scene(rng: np.random.Generator) -> Scene:
    """A random scene that training may show."""
    while withheld(scene := sample_any(rng)):
        pass
    return scene


def sample_withheld(rng: np.random.Generator) -> Scene:
    """A random scene of those that training never shows; every combination is as likely."""
    wanted = WITHHELD[int(rng.integers(len(WITHHELD)))]
    while True:
        scene = sample_any(rng)
        changed = replace(scene, **wanted)
        if "second" in wanted:
            other = str(rng.choice([c for c in COLOURS if c != scene.colour]))
            side = "left" if rng.random() < 0.5 else "right"
            ground = "sea" if wanted["second"] in AFLOAT else scene.ground
            changed = replace(changed, second_colour=other, side=side, ground=ground)
        if sensible(changed):
            return ordered(changed)


def sensible(scene: Scene) -> bool:
    """Whether `sample_any` could have sampled the scene."""
    subjects = [s for s in (scene.subject, scene.second) if s != NONE]
    if scene.ground == "sea":
        fits = all(s in (*AFLOAT, *BOTH) for s in subjects)
    else:
        fits = all(s not in AFLOAT for s in subjects)
    stormy = scene.time == "storm"
    weather = {
        "fair": True,
        "clouds": not stormy,
        "rain": scene.ground != "snow" or stormy,
        "snowfall": scene.ground == "snow" and not stormy,
        "mist": not stormy,
        "rainbow": scene.time in ("dawn", "day") and scene.ground != "snow",
    }[scene.weather]
    if scene.pair:
        fits = fits and scene.side != "centre" and scene.second != scene.subject
        fits = fits and scene.second_colour not in (NONE, scene.colour)
    return fits and weather


def mirror(scene: Scene) -> Scene:
    """The scene that the horizontally flipped image shows."""
    return replace(scene, side={"left": "right", "right": "left"}.get(scene.side, scene.side))
