"""The seven subjects. A painter gets the brush, the centre column x and the row y of its foot."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from models.demo.render.brush import Brush, shadow
from models.demo.render.buildings import house, lighthouse, windmill
from models.demo.render.paint import mix

__all__ = ["balloon", "house", "lighthouse", "sailboat", "tent", "tree", "windmill"]


def sailboat(brush: Brush, x: float, y: float) -> None:
    c, paint, way = brush.canvas, brush.paint, 1 if brush.rng.random() < 0.5 else -1
    hull = brush.lit(0.45, 0.24, 0.12)
    mast = x + 1.0 * way
    c.shape(
        [(mast - 0.8, y - 67), (mast + 0.8, y - 67), (mast + 0.8, y - 8), (mast - 0.8, y - 8)],
        brush.lit(0.35, 0.22, 0.14),
    )
    main = [
        (mast - way * 1.5, y - 65),
        (mast - way * 12, y - 40),
        (mast - way * 25, y - 14),
        (mast - way * 1.5, y - 13),
    ]
    jib = [
        (mast + way * 1.5, y - 61),
        (mast + way * 15, y - 34),
        (mast + way * 25, y - 13),
        (mast + way * 1.5, y - 15),
    ]
    c.shape(main, paint, shade=(0.95, 1.1) if way > 0 else (1.12, 0.85), fall=0.12)
    c.shape(
        jib, mix(paint, (1, 1, 1), 0.16), shade=(0.9, 1.12) if way > 0 else (1.1, 0.8), fall=0.1
    )
    for k in (0.35, 0.65):
        a = (mast - way * 1.5, y - 65 + 52 * k)
        b = (mast - way * (1.5 + 23 * k), y - 65 + 51 * k)
        c.shape([a, b, (b[0], b[1] + 0.8), (a[0], a[1] + 0.8)], paint * 0.72)
    c.shape(
        [
            (x - 29, y - 9),
            (x + 29, y - 9),
            (x + (23 if way > 0 else 20), y + 1),
            (x - (20 if way > 0 else 23), y + 1),
        ],
        hull,
        shade=(1.25, 0.8),
        fall=0.3,
    )
    c.shape(
        [(x - 29, y - 9.5), (x + 29, y - 9.5), (x + 28, y - 7), (x - 28, y - 7)],
        brush.lit(0.93, 0.90, 0.84),
    )
    c.shape([(mast, y - 68), (mast - way * 7, y - 66), (mast, y - 64)], brush.lit(0.95, 0.95, 0.9))


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
    c.shape(
        [
            (x - 4, y - 34),
            (x + 4, y - 34),
            (x + 5, y - 6),
            (x + 9, y + 1),
            (x - 9, y + 1),
            (x - 5, y - 6),
        ],
        bark,
        shade=(1.3, 0.6),
    )
    c.shape([(x - 1, y - 24), (x + 2, y - 22), (x + 15, y - 36), (x + 12, y - 38)], bark * 0.85)
    crown = [
        (0, -50, 20),
        (-15, -42, 13),
        (15, -42, 13),
        (-10, -56, 13),
        (10, -57, 13),
        (0, -38, 14),
    ]
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
    pale = (
        mix(paint, (1, 1, 1), 0.42) if paint.min() < 0.7 else mix(paint, (0.55, 0.62, 0.75), 0.35)
    )
    angles = np.linspace(0, pi, 25)
    upper = [(x - wide * cos(a), cy - radius * sin(a)) for a in angles]

    def gore(share: float) -> list[tuple[float, float]]:
        side = [
            (x + share * wide * cos(a), cy - radius * sin(a)) for a in np.linspace(pi / 2, 0, 12)
        ]
        return side + [(x + share * 23, y - 34), (x + share * 15, y - 22), (x + share * 6, y - 14)]

    c.shape(
        upper
        + [
            (x + 23, y - 34),
            (x + 15, y - 22),
            (x + 6, y - 14),
            (x - 6, y - 14),
            (x - 15, y - 22),
            (x - 23, y - 34),
        ],
        paint,
        shade=(1.12, 0.66),
    )
    for outer, inner, colour in ((0.78, 0.42, pale), (-0.42, -0.78, pale), (0.14, -0.14, pale)):
        edge_a, edge_b = gore(outer), gore(inner)
        bright = 1.06 - 0.26 * (outer + inner) / 2
        c.shape(edge_a + edge_b[::-1], colour * bright)
    for dx in (-5, 5):
        c.shape(
            [
                (x + dx, y - 14),
                (x + dx * 0.8, y - 7),
                (x + dx * 0.8 + 0.7, y - 7),
                (x + dx + 0.7, y - 14),
            ],
            brush.lit(0.25, 0.18, 0.12),
        )
    c.shape(
        [(x - 5, y - 8), (x + 5, y - 8), (x + 4.2, y), (x - 4.2, y)],
        brush.lit(0.50, 0.30, 0.14),
        shade=(1.25, 0.75),
    )
    c.shape(
        [(x - 5.5, y - 8.5), (x + 5.5, y - 8.5), (x + 5.5, y - 7), (x - 5.5, y - 7)],
        brush.lit(0.32, 0.18, 0.10),
    )
    if brush.light.lamps:
        c.record = False
        c.glow(x, y - 20, 26, (1.0, 0.80, 0.40), 0.55 * brush.light.lamps)
        c.record = True
