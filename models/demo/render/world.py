"""Renders scenes: 128x128 pictures that depend on nothing but the scene and a seed."""

from __future__ import annotations

import numpy as np

from models.demo.render import brush, landscape, sky, subjects
from models.demo.render.paint import SIDE, SIZE, Canvas, rgb
from models.demo.render.scene import Scene, mirror, sample_scene

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

CELLS = 16  # token cells per side
COVERED = 0.12  # share of a cell's area that makes it one of the subject's cells

_COLUMNS = {"left": 39.0, "centre": 64.0, "right": 89.0}


def _paint_subject(canvas: Canvas, scene: Scene, x: float, rng: np.random.Generator) -> None:
    light = sky.LIGHTS[scene.time]
    paint = (
        rgb(brush.PAINTS[scene.colour]) * rgb(light.subject) * np.float32(rng.uniform(0.95, 1.04))
    )
    tools = brush.Brush(canvas, light, paint, rng)
    canvas.record = True
    if scene.subject == "balloon":
        subjects.balloon(tools, x, float(rng.uniform(80, 86)))
    elif scene.subject == "lighthouse":
        foot = float(rng.uniform(106, 112))
        subjects.lighthouse(tools, x, foot, scene.ground == "sea")
    else:
        foot = float(rng.uniform(109, 116))
        getattr(subjects, scene.subject)(tools, x, foot)
    if scene.ground == "sea" and scene.subject != "balloon":
        brush.reflect(canvas, foot + (6 if scene.subject == "lighthouse" else 1), rng)
    canvas.record = False


def render_with_cells(scene: Scene, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The picture, uint8 [128, 128, 3], and the token cells the subject covers, bool [16, 16]."""
    rng = np.random.default_rng([11, seed])
    canvas, light = Canvas(), sky.LIGHTS[scene.time]
    horizon = float(rng.uniform(72, 82))
    x = _COLUMNS[scene.side] + float(rng.uniform(-4, 4))
    sky.sky(canvas, light, horizon, rng)
    if scene.time == "night":
        sky.stars(canvas, horizon, rng)
    sun = sky.celestial(canvas, scene.time, light, horizon, x, rng)
    if scene.time == "storm" or rng.random() < 0.75:
        sky.clouds(canvas, scene.time, light, horizon, rng)
    if scene.background != "none":
        landscape.BACKDROPS[scene.background](canvas, light, horizon, rng)
    landscape.GROUND_PAINTERS[scene.ground](canvas, light, horizon, rng)
    if scene.ground == "sea" and scene.time != "storm":
        landscape.glitter(canvas, light, horizon, sun, rng)
    _paint_subject(canvas, scene, x, rng)
    cell = SIDE // CELLS
    covered = canvas.mask.reshape(CELLS, cell, CELLS, cell).mean((1, 3))
    return canvas.finish(), covered >= COVERED


def render(scene: Scene, seed: int) -> np.ndarray:
    """The picture, uint8 [128, 128, 3]; the same for the same scene and seed."""
    return render_with_cells(scene, seed)[0]


def object_cells(scene: Scene, seed: int) -> np.ndarray:
    """The cells, bool [16, 16], of which the subject covers a good part."""
    return render_with_cells(scene, seed)[1]
