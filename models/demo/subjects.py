"""The seven subjects. Each painter gets the canvas, the centre column x and the row y of its foot."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np

from models.demo.landscape import Light
from models.demo.paint import SCALE, SIDE, Canvas, mix, rgb

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


def lighthouse(brush: Brush, x: float, y: float, at_sea: bool) -> None:
    c, paint = brush.canvas, brush.paint
    if at_sea:
        rock = brush.lit(0.36, 0.33, 0.32)
        left, right = float(brush.rng.uniform(24, 30)), float(brush.rng.uniform(24, 30))
        c.shape([(x - left - 3, y), (x + right + 3, y + 8)], brush.lit(0.9, 0.95, 1.0), ellipse=True, opacity=0.5)
        c.shape([(x - left, y + 6), (x - 21, y), (x - 14, y - 4), (x + 14, y - 4), (x + 20, y - 1), (x + right, y + 6)], rock, shade=(1.3, 0.6))
        c.shape([(x - 12, y + 6), (x - 7, y), (x + 4, y - 2), (x + 8, y + 6)], rock * 1.15, shade=(1.2, 0.8))
    else:
        shadow(brush, x + 3, y, 19)
    band = brush.lit(0.50, 0.55, 0.64) if paint.min() > 0.7 else brush.lit(0.97, 0.96, 0.93)
    top, foot = y - 56, y - 1

    def half(row: float) -> float:
        return 8.5 + 5.5 * (row - top) / (foot - top)

    for i in range(5):
        a, b = top + (foot - top) * i / 5, top + (foot - top) * (i + 1) / 5
        if i in (1, 3):
            a, b = a + 2.5, b - 2.5
        if i in (0, 2, 4):
            a, b = a - (2.5 if i else 0), b + (2.5 if i < 4 else 0)
        c.shape([(x - half(a), a), (x + half(a), a), (x + half(b), b), (x - half(b), b)], paint if i % 2 == 0 else band, shade=(1.18, 0.62))
    door, dark = brush.lit(0.25, 0.16, 0.12), brush.lit(0.16, 0.17, 0.22)
    c.shape([(x - 3.5, foot), (x - 3.5, foot - 8), (x + 3.5, foot - 8), (x + 3.5, foot)], door)
    c.shape([(x - 2, y - 34), (x + 2, y - 34), (x + 2, y - 29), (x - 2, y - 29)], brush.lamp())
    c.shape([(x - 11.5, top - 1), (x + 11.5, top - 1), (x + 10, top + 2.5), (x - 10, top + 2.5)], dark)
    shine = mix((1.0, 0.95, 0.6), (1.0, 0.98, 0.8), 0.5)
    c.shape([(x - 6, top - 10), (x + 6, top - 10), (x + 6, top - 1), (x - 6, top - 1)], shine)
    for dx in (-6, 0, 5.2):
        c.shape([(x + dx - 0.4, top - 10), (x + dx + 0.5, top - 10), (x + dx + 0.5, top - 1), (x + dx - 0.4, top - 1)], dark)
    c.shape([(x - 8, top - 10), (x, top - 17), (x + 8, top - 10)], mix(paint, dark, 0.55), shade=(1.3, 0.7))
    if brush.light.lamps > 0:
        beam(brush, x, top - 5.5)


def beam(brush: Brush, x: float, y: float) -> None:
    c, power = brush.canvas, brush.light.lamps
    c.record = False
    far = 80.0 if x < 64 else -80.0
    for spread, opacity in ((15, 0.10), (9, 0.15)):
        c.shape([(x, y - 1.5), (x + far, y - spread), (x + far, y + spread * 0.3), (x, y + 1.5)], (1.0, 0.96, 0.7), blur=1.0, opacity=opacity * power)
    c.glow(x, y, 17, (1.0, 0.94, 0.65), 0.75 * power)
    c.record = True


def sailboat(brush: Brush, x: float, y: float) -> None:
    c, paint, way = brush.canvas, brush.paint, 1 if brush.rng.random() < 0.5 else -1
    hull = brush.lit(0.45, 0.24, 0.12)
    mast = x + 1.0 * way
    c.shape([(mast - 0.8, y - 67), (mast + 0.8, y - 67), (mast + 0.8, y - 8), (mast - 0.8, y - 8)], brush.lit(0.35, 0.22, 0.14))
    main = [(mast - way * 1.5, y - 65), (mast - way * 12, y - 40), (mast - way * 25, y - 14), (mast - way * 1.5, y - 13)]
    jib = [(mast + way * 1.5, y - 61), (mast + way * 15, y - 34), (mast + way * 25, y - 13), (mast + way * 1.5, y - 15)]
    c.shape(main, paint, shade=(0.95, 1.1) if way > 0 else (1.12, 0.85), fall=0.12)
    c.shape(jib, mix(paint, (1, 1, 1), 0.16), shade=(0.9, 1.12) if way > 0 else (1.1, 0.8), fall=0.1)
    for k in (0.35, 0.65):
        a = (mast - way * 1.5, y - 65 + 52 * k)
        b = (mast - way * (1.5 + 23 * k), y - 65 + 51 * k)
        c.shape([a, b, (b[0], b[1] + 0.8), (a[0], a[1] + 0.8)], paint * 0.72)
    c.shape([(x - 29, y - 9), (x + 29, y - 9), (x + (23 if way > 0 else 20), y + 1), (x - (20 if way > 0 else 23), y + 1)], hull, shade=(1.25, 0.8), fall=0.3)
    c.shape([(x - 29, y - 9.5), (x + 29, y - 9.5), (x + 28, y - 7), (x - 28, y - 7)], brush.lit(0.93, 0.90, 0.84))
    c.shape([(mast, y - 68), (mast - way * 7, y - 66), (mast, y - 64)], brush.lit(0.95, 0.95, 0.9))


def house(brush: Brush, x: float, y: float) -> None:
    c, paint, way = brush.canvas, brush.paint, 1 if brush.rng.random() < 0.5 else -1
    shadow(brush, x + 2, y - 1, 34)

    def px(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x + way * a, y + b) for a, b in points]

    roof, trim = brush.lit(0.34, 0.17, 0.14), brush.lit(0.97, 0.95, 0.90)
    if brush.rng.random() < 0.5:
        roof = brush.lit(0.26, 0.28, 0.34)
    c.shape(px([(16, -53), (22, -53), (22, -38), (16, -38)]), brush.lit(0.55, 0.30, 0.24), shade=(1.1, 0.8))
    c.shape(px([(-4, -29), (30, -29), (30, 0), (-4, 0)]), paint * 0.84, fall=0.12)
    c.shape(px([(-30, -29), (-17, -50), (-4, -29), (-4, 0), (-30, 0)]), mix(paint, (1, 1, 1), 0.06), fall=0.10)
    c.shape(px([(-18, -51), (21, -51), (33, -27), (-3, -27)]), roof, fall=0.25)
    c.shape(px([(-18, -53), (-15, -51), (-30, -26), (-33, -27)]), roof * 1.15)
    c.shape(px([(-18, -53), (-14, -51), (0, -27), (-4, -25)]), roof * 0.8)
    lamp, door = brush.lamp(), brush.lit(0.30, 0.17, 0.11)
    c.shape(px([(-21, -14), (-13, -14), (-13, 0), (-21, 0)]), door, fall=0.2)
    c.circle(x + way * -17, y - 33, 3.2, trim)
    c.circle(x + way * -17, y - 33, 2.3, lamp)
    for left in (2, 17):
        c.shape(px([(left - 1, -22), (left + 10, -22), (left + 10, -10), (left - 1, -10)]), trim)
        c.shape(px([(left, -21), (left + 4, -21), (left + 4, -11), (left, -11)]), lamp)
        c.shape(px([(left + 5, -21), (left + 9, -21), (left + 9, -11), (left + 5, -11)]), lamp)
    if brush.light.lamps:
        c.record = False
        for left in (6.5, 21.5):
            c.glow(x + way * left, y - 16, 13, (1.0, 0.75, 0.3), 0.38 * brush.light.lamps)
        c.record = True


def windmill(brush: Brush, x: float, y: float) -> None:
    c, paint = brush.canvas, brush.paint
    shadow(brush, x + 3, y, 20)
    top = y - 44
    c.shape([(x - 9, top), (x + 9, top), (x + 16, y), (x - 16, y)], paint, shade=(1.18, 0.65))
    cap = brush.lit(0.32, 0.20, 0.16)
    c.shape([(x - 11, top - 9), (x + 11, top + 9)], cap, ellipse=True, shade=(1.3, 0.7))
    c.shape([(x - 11, top), (x + 11, top), (x + 11, top + 2.5), (x - 11, top + 2.5)], cap * 0.8)
    c.shape([(x - 4, y), (x - 4, y - 11), (x + 4, y - 11), (x + 4, y)], brush.lit(0.26, 0.15, 0.10))
    for dx, dy in ((-5, 26), (4, 18)):
        c.shape([(x + dx, y - dy), (x + dx + 4.5, y - dy), (x + dx + 4.5, y - dy + 6), (x + dx, y - dy + 6)], brush.lamp())
    spar, cloth = brush.lit(0.30, 0.20, 0.14), brush.lit(0.97, 0.93, 0.83)
    hub, turn = (x, top - 1), float(brush.rng.uniform(0.15, 0.85)) * pi / 2
    for k in range(4):
        ux, uy = cos(turn + k * pi / 2), sin(turn + k * pi / 2)
        vx, vy = -uy, ux

        def at(along: float, across: float) -> tuple[float, float]:
            return hub[0] + ux * along + vx * across, hub[1] + uy * along + vy * across

        c.shape([at(7, 0.5), at(31, 0.5), at(31, 8), at(7, 6.5)], cloth * (1.0 if k % 2 else 0.9))
        for step in (12.5, 18.5, 24.5):
            c.shape([at(step, 0.5), at(step + 0.8, 0.5), at(step + 0.8, 7), at(step, 7)], spar)
        c.shape([at(0, -0.9), at(32, -0.9), at(32, 0.9), at(0, 0.9)], spar)
    c.circle(*hub, 2.6, brush.lit(0.8, 0.65, 0.3))


def tent(brush: Brush, x: float, y: float) -> None:
    c, paint, way = brush.canvas, brush.paint, 1 if brush.rng.random() < 0.5 else -1
    shadow(brush, x, y, 39)

    def px(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x + way * a, y + b) for a, b in points]

    inside = mix(brush.lit(0.16, 0.10, 0.09), (1.0, 0.82, 0.40), brush.light.lamps)
    c.shape(px([(-12, -50), (24, -43), (37, -2), (14, 1)]), paint * 0.70, fall=0.15)
    c.shape(px([(-12, -50), (14, 1), (-36, 1)]), mix(paint, (1, 1, 1), 0.07), fall=0.12)
    c.shape(px([(-12, -38), (1, 1), (-21, 1)]), inside, fall=0.25)
    c.shape(px([(-12, -38), (-21, 1), (-25, 1), (-14, -40)]), mix(paint, (1, 1, 1), 0.35))
    c.shape(px([(-12, -51), (-10, -50.5), (15, 1), (13, 1)]), paint * 0.55)
    c.shape(px([(24, -43), (38, -2), (37, -2), (23, -43)]), paint * 0.5)
    rope = brush.lit(0.85, 0.80, 0.65)
    c.shape(px([(-24, -22), (-41, 2), (-40.3, 2), (-23.4, -21.4)]), rope)
    c.shape(px([(31, -22), (42, 0), (41.3, 0), (30.4, -21.4)]), rope)
    if brush.light.lamps:
        c.record = False
        c.glow(x - way * 9, y - 10, 30, (1.0, 0.75, 0.35), 0.40 * brush.light.lamps)
        c.record = True


def tree(brush: Brush, x: float, y: float) -> None:
    c, paint, rng = brush.canvas, brush.paint, brush.rng
    shadow(brush, x + 2, y, 26)
    bark = brush.lit(0.38, 0.24, 0.15)
    c.shape([(x - 4, y - 34), (x + 4, y - 34), (x + 5, y - 6), (x + 9, y + 1), (x - 9, y + 1), (x - 5, y - 6)], bark, shade=(1.3, 0.6))
    c.shape([(x - 1, y - 24), (x + 2, y - 22), (x + 15, y - 36), (x + 12, y - 38)], bark * 0.85)
    crown = [(0, -50, 20), (-15, -42, 13), (15, -42, 13), (-10, -56, 13), (10, -57, 13), (0, -38, 14)]
    for dx, dy, r in crown:
        c.circle(x + dx + rng.uniform(-1, 1), y + dy + 2, r + 0.8, paint * 0.58)
    for dx, dy, r in crown:
        c.circle(x + dx + rng.uniform(-1, 1), y + dy, r - 0.6, paint, shade=(1.08, 0.72), fall=0.22)
    for _ in range(26):
        angle, reach = rng.uniform(0, 2 * pi), rng.random() ** 0.5
        dx, dy = cos(angle) * reach * 23, sin(angle) * reach * 17
        bright = mix(paint, (1, 1, 1), 0.28) if dx + dy < rng.uniform(-12, 12) else paint * 0.62
        c.circle(x + dx, y - 48 + dy, float(rng.uniform(1.6, 3.0)), bright, opacity=0.55)


def balloon(brush: Brush, x: float, y: float) -> None:
    """y is the basket's foot."""
    c, paint = brush.canvas, brush.paint
    wide, cy, radius = 26.0, y - 47, 26.0
    pale = mix(paint, (1, 1, 1), 0.42) if paint.min() < 0.7 else mix(paint, (0.55, 0.62, 0.75), 0.35)
    angles = np.linspace(0, pi, 25)
    upper = [(x - wide * cos(a), cy - radius * sin(a)) for a in angles]

    def gore(share: float) -> list[tuple[float, float]]:
        side = [(x + share * wide * cos(a), cy - radius * sin(a)) for a in np.linspace(pi / 2, 0, 12)]
        return side + [(x + share * 23, y - 34), (x + share * 15, y - 22), (x + share * 6, y - 14)]

    c.shape(upper + [(x + 23, y - 34), (x + 15, y - 22), (x + 6, y - 14), (x - 6, y - 14), (x - 15, y - 22), (x - 23, y - 34)], paint, shade=(1.12, 0.66))
    for outer, inner, colour in ((0.78, 0.42, pale), (-0.42, -0.78, pale), (0.14, -0.14, pale)):
        edge_a, edge_b = gore(outer), gore(inner)
        bright = 1.06 - 0.26 * (outer + inner) / 2
        c.shape(edge_a + edge_b[::-1], colour * bright)
    for dx in (-5, 5):
        c.shape([(x + dx, y - 14), (x + dx * 0.8, y - 7), (x + dx * 0.8 + 0.7, y - 7), (x + dx + 0.7, y - 14)], brush.lit(0.25, 0.18, 0.12))
    c.shape([(x - 5, y - 8), (x + 5, y - 8), (x + 4.2, y), (x - 4.2, y)], brush.lit(0.50, 0.30, 0.14), shade=(1.25, 0.75))
    c.shape([(x - 5.5, y - 8.5), (x + 5.5, y - 8.5), (x + 5.5, y - 7), (x - 5.5, y - 7)], brush.lit(0.32, 0.18, 0.10))
    if brush.light.lamps:
        c.record = False
        c.glow(x, y - 20, 26, (1.0, 0.80, 0.40), 0.55 * brush.light.lamps)
        c.record = True


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
