"""The subject's colours, its shadow and its reflection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.demo.render.paint import SCALE, SIDE, Canvas, mix, rgb
from models.demo.render.sky import Light

PAINTS: dict[str, tuple[float, float, float]] = {
    "red": (0.90, 0.10, 0.10),
    "orange": (1.0, 0.50, 0.05),
    "yellow": (1.0, 0.87, 0.10),
    "green": (0.10, 0.68, 0.25),
    "blue": (0.12, 0.35, 0.92),
    "purple": (0.56, 0.18, 0.78),
    "pink": (1.0, 0.50, 0.72),
    "white": (0.97, 0.97, 0.96),
}


@dataclass(frozen=True)
class Brush:
    """What all painters need: the canvas, the subject's colours in this light, and random numbers."""

    canvas: Canvas
    light: Light
    paint: np.ndarray  # the subject's colour, lit
    rng: np.random.Generator

    def lit(self, r: float, g: float, b: float) -> np.ndarray:
        return rgb((r, g, b)) * rgb(self.light.subject)

    def lamp(self) -> np.ndarray:
        """Colour of a window: dark glass by day, warm light otherwise."""
        return mix(self.lit(0.22, 0.32, 0.45), (1.0, 0.86, 0.42), min(1.0, self.light.lamps * 1.4))


def shadow(brush: Brush, x: float, y: float, half: float, flat: float = 3.0) -> None:
    record, brush.canvas.record = brush.canvas.record, False
    box = [(x - half, y - flat), (x + half, y + flat)]
    brush.canvas.shape(box, (0.03, 0.04, 0.08), ellipse=True, blur=1.5, opacity=0.45)
    brush.canvas.record = record


def reflect(canvas: Canvas, y: float, rng: np.random.Generator) -> None:
    """Mirrors what was recorded above row y in the water below it, broken by waves."""
    foot = int(y * SCALE)
    rows = np.arange(foot, SIDE)
    depth = rows - foot
    source = np.clip(foot - 1 - (depth * 1.25).astype(int), 0, SIDE - 1)
    sway = (np.sin(depth * 0.9 + rng.uniform(0, 6)) * (1.0 + depth * 0.09)).astype(int)
    columns = (np.arange(SIDE)[None] + sway[:, None]).clip(0, SIDE - 1)
    covered = canvas.mask[source[:, None], columns].astype(np.float32)
    fade = np.linspace(0.55, 0.15, len(rows), dtype=np.float32)[:, None]
    colour = canvas.pixels[source[:, None], columns] * np.float32(0.82)
    record, canvas.record = canvas.record, False
    canvas.blend(covered * fade * ~canvas.mask[rows], colour, foot, 0)
    canvas.record = record
