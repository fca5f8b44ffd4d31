"""Subjects in two flat tones: what floats, grows, drives or camps; x is the middle column, y the foot."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np

from .canvas import SIZE, Canvas, Colour, Points, mix, mul
from .sky import Light

PAINTS: dict[str, Colour] = {
    "red": (0.88, 0.14, 0.14),
    "orange": (1.0, 0.52, 0.08),
    "yellow": (1.0, 0.84, 0.16),
    "green": (0.16, 0.66, 0.30),
    "blue": (0.16, 0.38, 0.88),
    "purple": (0.55, 0.22, 0.76),
    "pink": (1.0, 0.54, 0.72),
    "white": (0.97, 0.97, 0.96),
}


@dataclass(frozen=True)
class Brush:
    """Inputs of all painters: canvas, light, the subject's colour, and which way it looks."""

    c: Canvas
    light: Light
    colour: str
    way: int  # 1 or -1

    @property
    def white(self) -> bool:
        return self.colour == "white"

    @property
    def paint(self) -> Colour:
        return mul(PAINTS[self.colour], self.light.subject)

    @property
    def dark(self) -> Colour:
        return mul(self.paint, (0.76, 0.80, 0.90) if self.white else (0.70, 0.68, 0.72))

    @property
    def pale(self) -> Colour:
        """A third tone: lighter, but for white."""
        return (
            mul(self.paint, (0.88, 0.90, 0.96)) if self.white else mix(self.paint, (1, 1, 1), 0.38)
        )

    def lit(self, r: float, g: float, b: float) -> Colour:
        return mul((r, g, b), self.light.subject)

    def lamp(self) -> Colour:
        """Colour of a window: dark glass by day, warm light otherwise."""
        return mix(self.lit(0.26, 0.36, 0.50), (1.0, 0.86, 0.42), min(1, self.light.lamps * 1.4))

    def shadow(self, x: float, y: float, half: float) -> None:
        record, self.c.record = self.c.record, False
        self.c.veil(ring(x, y, 0, 2 * pi, half, 5), (0.04, 0.06, 0.14), 0.28)
        self.c.record = record

    def glow(self, x: float, y: float, radius: int, strength: float) -> None:
        record, self.c.record = self.c.record, False
        self.c.glow(x, y, radius, (1.0, 0.86, 0.46), strength * self.light.lamps)
        self.c.record = record


def ring(x: float, y: float, start: float, end: float, rx: float, ry: float, n: int = 32) -> Points:
    return [(x + rx * cos(a), y + ry * sin(a)) for a in np.linspace(start, end, n)]


def placed(points: Points, x: float, y: float, way: int = 1) -> Points:
    """Points relative to the foot, turned to the side that the subject looks to."""
    return [(x + way * a, y + b) for a, b in points]


def reflect(b: Brush, x: float, y: float, half: float) -> None:
    """Three strokes of the subject's colour in the water."""
    water = mix(b.light.middle, (0.07, 0.30, 0.5), 0.5)
    for k, (down, share) in enumerate(((6, 1.0), (14, 0.72), (23, 0.46))):
        if y + down < SIZE - 2:
            h, shift = half * share, (5, -5)[k % 2]
            colour = mix(b.paint, water, 0.35 + 0.1 * k)
            b.c.pill(x - h + shift, x + h + shift, y + down, 2.2, colour)


def sailboat(b: Brush, x: float, y: float) -> None:
    c, w = b.c, b.way
    hull, trim = b.lit(0.50, 0.28, 0.16), b.lit(0.97, 0.94, 0.88)
    c.rect(x - 1.8, y - 138, x + 1.8, y - 16, b.lit(0.38, 0.24, 0.16))
    main = [(-4, -132), (-22, -88), (-38, -54), (-54, -28), (-4, -28)]
    c.poly(placed(main, x, y, w), b.paint)
    c.poly(placed([(-4, -132), (-4, -28), (-22, -28)], x, y, w), b.dark)
    c.poly(placed([(4, -122), (24, -76), (50, -28), (4, -32)], x, y, w), b.pale)
    c.poly(placed([(0, -142), (-20, -135), (0, -128)], x, y, w), b.lit(0.95, 0.78, 0.25))
    c.poly([(x - 62, y - 20), (x + 62, y - 20), (x + 46, y + 2), (x - 46, y + 2)], hull)
    keel = [(x - 54, y - 9), (x + 54, y - 9), (x + 46, y + 2), (x - 46, y + 2)]
    c.poly(keel, mul(hull, (0.76, 0.74, 0.76)))
    c.rect(x - 62, y - 22, x + 62, y - 16, trim)
    c.record = False
    reflect(b, x, y, 46)


def tent(b: Brush, x: float, y: float) -> None:
    c, w = b.c, b.way
    b.shadow(x, y, 76)
    inside = mix(b.lit(0.20, 0.13, 0.12), (1.0, 0.82, 0.42), b.light.lamps)
    c.poly(placed([(-22, -100), (44, -88), (72, -4), (30, 2)], x, y, w), b.dark)
    c.poly(placed([(-22, -100), (30, 2), (-72, 2)], x, y, w), b.paint)
    c.poly(placed([(-22, -76), (2, 2), (-44, 2)], x, y, w), inside)
    c.poly(placed([(-22, -76), (-44, 2), (-56, 2), (-26, -80)], x, y, w), b.pale)
    c.poly(
        placed([(-25, -102), (-18, -102), (34, 2), (26, 2)], x, y, w), mul(b.dark, (0.7, 0.7, 0.73))
    )


def tree(b: Brush, x: float, y: float) -> None:
    c = b.c
    b.shadow(x, y, 50)
    bark = b.lit(0.46, 0.29, 0.18)
    c.poly(placed([(-8, -70), (8, -70), (9, -12), (17, 2), (-17, 2), (-9, -12)], x, y), bark)
    side = [(2, -70), (8, -70), (9, -12), (17, 2), (4, 2)]
    c.poly(placed(side, x, y), mul(bark, (0.74, 0.72, 0.74)))
    crown = [
        (0, -100, 40),
        (-30, -84, 27),
        (30, -84, 27),
        (-20, -112, 27),
        (20, -114, 27),
        (0, -76, 28),
    ]
    for dx, dy, r in crown:
        c.circle(x + dx + 4, y + dy + 4, r, b.dark)
    for dx, dy, r in crown:
        c.circle(x + dx - 3, y + dy - 3, r - 5, b.paint)
    for dx, dy, r in ((-18, -116, 12), (-32, -90, 8), (10, -126, 9)):
        c.circle(x + dx, y + dy, r, b.pale)


def balloon(b: Brush, x: float, y: float) -> None:
    c, middle, half = b.c, y - 96, 54
    other = b.lit(0.55, 0.64, 0.80) if b.white else mix(b.paint, (1, 1, 1), 0.5)

    def meridian(s: float) -> Points:
        side = [(x + s * half * cos(a), middle - half * sin(a)) for a in np.linspace(pi / 2, 0, 14)]
        return [*side, (x + s * 48, y - 70), (x + s * 33, y - 46), (x + s * 15, y - 28)]

    edges = (-1, -0.6, -0.2, 0.2, 0.6, 1)
    shades = (1.0, 1.0, 1.0, 0.93, 0.80)
    for k, (s, t) in enumerate(zip(edges, edges[1:])):
        colour = mul(b.paint if k % 2 == 0 else other, (shades[k],) * 3)
        c.poly(meridian(s) + meridian(t)[::-1], colour)
    rope, basket = b.lit(0.30, 0.20, 0.14), b.lit(0.62, 0.40, 0.20)
    for dx in (-11, 11):
        c.poly(
            placed(
                [(dx * 1.2, -29), (dx * 0.9, -14), (dx * 0.9 + 1.6, -14), (dx * 1.2 + 1.6, -29)],
                x,
                y,
            ),
            rope,
        )
    c.poly(placed([(-12, -16), (12, -16), (10, 0), (-10, 0)], x, y), basket)
    c.poly(placed([(3, -16), (12, -16), (10, 0), (3, 0)], x, y), mul(basket, (0.75, 0.73, 0.75)))
    c.rect(x - 13, y - 18, x + 13, y - 14, b.lit(0.40, 0.24, 0.13))
    if b.light.lamps:
        b.glow(x, y - 36, 40, 0.6)


def mushroom(b: Brush, x: float, y: float) -> None:
    """A toadstool with a dotted cap."""
    c = b.c
    b.shadow(x, y, 46)
    stem = b.lit(0.97, 0.92, 0.82)
    c.poly(placed([(-17, -62), (17, -62), (20, -24), (30, 0), (-30, 0), (-20, -24)], x, y), stem)
    side = [(5, -62), (17, -62), (20, -24), (30, 0), (8, 0)]
    c.poly(placed(side, x, y), mul(stem, (0.80, 0.78, 0.80)))
    c.poly(
        placed([(-30, -56), (30, -56), (20, -42), (-20, -42)], x, y), mul(stem, (0.86, 0.82, 0.78))
    )
    c.poly([*ring(x, y - 56, pi, 2 * pi, 66, 64), *ring(x, y - 56, 0, pi, 66, 9)], b.paint)
    c.poly(
        [
            *ring(x, y - 56, -0.95, 0, 66, 64, 16),
            *ring(x, y - 56, 0, 1.2, 66, 9, 12),
            (x + 40, y - 80),
        ],
        b.dark,
    )
    dots = b.lit(0.60, 0.66, 0.80) if b.white else b.lit(1.0, 0.98, 0.94)
    for dx, dy, rx, ry in ((-36, -76, 11, 9), (-2, -96, 14, 11), (36, -72, 10, 9), (-8, -64, 8, 6)):
        c.ellipse(x + dx, y + dy, rx, ry, dots)


def car(b: Brush, x: float, y: float) -> None:
    """A small car from the side."""
    c, w = b.c, b.way
    b.shadow(x, y, 74)
    body = [
        (-68, -12),
        (-68, -34),
        (-60, -42),
        (-44, -46),
        (-26, -76),
        (22, -76),
        (44, -46),
        (64, -40),
        (70, -30),
        (70, -12),
    ]
    c.poly(placed(body, x, y, w), b.paint)
    c.poly(placed([(-68, -12), (-68, -24), (70, -24), (70, -12)], x, y, w), b.dark)
    glass = mix(b.lit(0.66, 0.84, 0.95), (1.0, 0.86, 0.42), 0.5 * b.light.lamps)
    c.poly(placed([(-36, -48), (-21, -70), (-4, -70), (-4, -48)], x, y, w), glass)
    c.poly(placed([(2, -48), (2, -70), (18, -70), (34, -48)], x, y, w), glass)
    c.poly(placed([(-26, -76), (22, -76), (24, -72), (-28, -72)], x, y, w), b.pale)
    c.poly(placed([(62, -39), (70, -33), (70, -25), (60, -27)], x, y, w), (1.0, 0.93, 0.60))
    c.poly(
        placed([(-68, -35), (-62, -35), (-62, -26), (-68, -26)], x, y, w), b.lit(0.80, 0.10, 0.12)
    )
    c.poly(placed([(4, -40), (14, -40), (14, -37), (4, -37)], x, y, w), b.lit(0.25, 0.26, 0.30))
    for dx in (-40, 40):
        c.circle(x + dx, y - 13, 18, b.lit(0.15, 0.16, 0.20))
        c.circle(x + dx, y - 13, 8, b.lit(0.80, 0.82, 0.86))
    if b.light.lamps:
        b.glow(x + w * 74, y - 32, 32, 0.7)
