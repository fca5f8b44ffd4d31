"""What a picture of the demo world shows: six attributes, chosen independently where that makes sense."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

SUBJECTS = ("lighthouse", "sailboat", "house", "windmill", "tent", "tree", "balloon")
COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")
TIMES = ("dawn", "day", "dusk", "night", "storm")
GROUNDS = ("meadow", "sea", "desert", "snow", "autumn", "lavender")
BACKGROUNDS = ("none", "mountains", "hills", "forest")
SIDES = ("left", "centre", "right")

#: Name of each attribute and its values, in the order of the attribute columns of the data set.
ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "subject": SUBJECTS,
    "colour": COLOURS,
    "time": TIMES,
    "ground": GROUNDS,
    "background": BACKGROUNDS,
    "side": SIDES,
}


@dataclass(frozen=True)
class Scene:
    """One picture's content; every field holds one of the values in ATTRIBUTES."""

    subject: str
    colour: str
    time: str
    ground: str
    background: str
    side: str

    def indices(self) -> np.ndarray:
        """uint8 [6]: the index of every attribute's value, in the order of ATTRIBUTES."""
        return np.array(
            [ATTRIBUTES[f.name].index(getattr(self, f.name)) for f in fields(self)], np.uint8
        )

    @staticmethod
    def from_indices(indices: np.ndarray) -> Scene:
        """The inverse of `indices`."""
        return Scene(*(values[int(i)] for values, i in zip(ATTRIBUTES.values(), indices)))


def _ground(subject: str, rng: np.random.Generator) -> str:
    """Boats float, lighthouses stand on the coast half of the time, balloons fly over everything."""
    if subject == "sailboat":
        return "sea"
    if subject == "lighthouse" and rng.random() < 0.5:
        return "sea"
    land = [g for g in GROUNDS if g != "sea" or subject == "balloon"]
    return str(rng.choice(land))


def sample_scene(rng: np.random.Generator) -> Scene:
    """A random sensible scene; every attribute but the ground is uniform."""
    subject = str(rng.choice(SUBJECTS))
    colour, time = str(rng.choice(COLOURS)), str(rng.choice(TIMES))
    background, side = str(rng.choice(BACKGROUNDS)), str(rng.choice(SIDES))
    return Scene(subject, colour, time, _ground(subject, rng), background, side)


def mirror(scene: Scene) -> Scene:
    """The scene that the horizontally flipped picture shows."""
    return replace(scene, side={"left": "right", "right": "left"}.get(scene.side, scene.side))
