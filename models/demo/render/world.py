"""Renders scenes: 256x256 images that depend on nothing but the scene and a seed."""

from __future__ import annotations

import numpy as np

from . import buildings, landscape, sky, subjects
from .canvas import CELLS, SIZE, Canvas
from .scene import Scene, mirror, sample_scene

__all__ = [
    "SIZE",
    "CELLS",
    "Scene",
    "mirror",
    "object_cells",
    "render",
    "render_with_cells",
    "sample_scene",
]

COVERED = 0.12  # share of a cell's area that makes it one of the subjects' cells

_COLUMNS = {"left": 80.0, "centre": 128.0, "right": 176.0}
_PAIR_COLUMNS = {"left": 64.0, "right": 192.0}
_OTHER = {"left": "right", "right": "left"}


def _paint_subject(
    c: Canvas,
    light: sky.Light,
    scene: Scene,
    name: str,
    colour: str,
    x: float,
    rng: np.random.Generator,
) -> None:
    """One subject at column x; its cells are recorded."""
    brush = subjects.Brush(c, light, colour, 1 if rng.random() < 0.5 else -1)
    low = float(rng.choice([216, 224]))
    c.record = True
    if name == "balloon":
        subjects.balloon(brush, x, low - 56)
    elif name == "lighthouse":
        buildings.lighthouse(brush, x, low - 8, scene.ground == "sea")
    else:
        painter = getattr(subjects, name, None) or getattr(buildings, name)
        painter(brush, x, low)
    c.record = False


def _paint_sky(
    c: Canvas, light: sky.Light, scene: Scene, horizon: float, left: bool, rng: np.random.Generator
) -> float | None:
    """Everything above the horizon but the background; returns the column of sun or moon, if it is seen."""
    sky.sky(c, light, horizon)
    if scene.time == "storm" or scene.weather in ("rain", "snowfall"):
        sky.bank(c, light, rng)
        if scene.weather == "rain":
            sky.rain(c, light, horizon)
        elif scene.weather == "snowfall":
            sky.snowfall(c, light, horizon)
        elif rng.random() < 0.7:
            x = float(rng.choice([32, 64] if left else [192, 224]))
            sky.bolt(c, x, 1 if rng.random() < 0.5 else -1)
        return None
    if scene.time == "night":
        sky.stars(c, rng)
    if scene.weather == "rainbow":
        sky.rainbow(c, light, horizon, left)
    sun = sky.celestial(c, scene.time, light, horizon, left, rng)
    if scene.weather == "clouds" or rng.random() < 0.6:
        sky.clouds(c, light, sun, scene.weather == "clouds", rng)
    return sun


def render_with_cells(scene: Scene, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The image, uint8 [256, 256, 3], and the token cells the subjects cover, bool [16, 16]."""
    rng = np.random.default_rng([12, seed])
    c, light = Canvas(), sky.light_of(scene.time, scene.weather)
    horizon = float(rng.choice([144, 152, 160]))
    shift = float(rng.choice([-8, 0, 8]))
    x = _PAIR_COLUMNS[scene.side] if scene.pair else _COLUMNS[scene.side] + shift
    left = rng.random() < 0.5 if 104 < x < 152 or scene.pair else x > 128
    sun = _paint_sky(c, light, scene, horizon, bool(left), rng)
    if scene.background != "none":
        landscape.BACKDROPS[scene.background](c, light, horizon, rng)
    if scene.weather == "mist":
        sky.mist(c, light, horizon)
    landscape.GROUND_PAINTERS[scene.ground](c, light, horizon, rng)
    if scene.ground == "sea" and sun is not None:
        landscape.glitter(c, light, horizon, sun)
    if scene.pair:
        away = _PAIR_COLUMNS[_OTHER[scene.side]]
        _paint_subject(c, light, scene, scene.second, scene.second_colour, away, rng)
    _paint_subject(c, light, scene, scene.subject, scene.colour, x, rng)
    return c.finish(), c.covered() >= COVERED


def render(scene: Scene, seed: int) -> np.ndarray:
    """The image, uint8 [256, 256, 3]; the same for the same scene and seed."""
    return render_with_cells(scene, seed)[0]


def object_cells(scene: Scene, seed: int) -> np.ndarray:
    """The cells, bool [16, 16], of which the subjects cover a good part."""
    return render_with_cells(scene, seed)[1]
