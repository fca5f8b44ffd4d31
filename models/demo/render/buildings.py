"""Painters of lighthouse, house and windmill; see subjects.py."""

from __future__ import annotations

from math import cos, pi, sin

from models.demo.render.brush import Brush, shadow
from models.demo.render.paint import mix


def lighthouse(brush: Brush, x: float, y: float, at_sea: bool) -> None:
    c, paint = brush.canvas, brush.paint
    if at_sea:
        rock = brush.lit(0.36, 0.33, 0.32)
        left, right = float(brush.rng.uniform(24, 30)), float(brush.rng.uniform(24, 30))
        c.shape(
            [(x - left - 3, y), (x + right + 3, y + 8)],
            brush.lit(0.9, 0.95, 1.0),
            ellipse=True,
            opacity=0.5,
        )
        c.shape(
            [
                (x - left, y + 6),
                (x - 21, y),
                (x - 14, y - 4),
                (x + 14, y - 4),
                (x + 20, y - 1),
                (x + right, y + 6),
            ],
            rock,
            shade=(1.3, 0.6),
        )
        c.shape(
            [(x - 12, y + 6), (x - 7, y), (x + 4, y - 2), (x + 8, y + 6)],
            rock * 1.15,
            shade=(1.2, 0.8),
        )
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
        c.shape(
            [(x - half(a), a), (x + half(a), a), (x + half(b), b), (x - half(b), b)],
            paint if i % 2 == 0 else band,
            shade=(1.18, 0.62),
        )
    door, dark = brush.lit(0.25, 0.16, 0.12), brush.lit(0.16, 0.17, 0.22)
    c.shape([(x - 3.5, foot), (x - 3.5, foot - 8), (x + 3.5, foot - 8), (x + 3.5, foot)], door)
    c.shape([(x - 2, y - 34), (x + 2, y - 34), (x + 2, y - 29), (x - 2, y - 29)], brush.lamp())
    c.shape(
        [(x - 11.5, top - 1), (x + 11.5, top - 1), (x + 10, top + 2.5), (x - 10, top + 2.5)], dark
    )
    shine = mix((1.0, 0.95, 0.6), (1.0, 0.98, 0.8), 0.5)
    c.shape([(x - 6, top - 10), (x + 6, top - 10), (x + 6, top - 1), (x - 6, top - 1)], shine)
    for dx in (-6, 0, 5.2):
        c.shape(
            [
                (x + dx - 0.4, top - 10),
                (x + dx + 0.5, top - 10),
                (x + dx + 0.5, top - 1),
                (x + dx - 0.4, top - 1),
            ],
            dark,
        )
    c.shape(
        [(x - 8, top - 10), (x, top - 17), (x + 8, top - 10)],
        mix(paint, dark, 0.55),
        shade=(1.3, 0.7),
    )
    if brush.light.lamps > 0:
        beam(brush, x, top - 5.5)


def beam(brush: Brush, x: float, y: float) -> None:
    c, power = brush.canvas, brush.light.lamps
    c.record = False
    far = 80.0 if x < 64 else -80.0
    for spread, opacity in ((15, 0.10), (9, 0.15)):
        c.shape(
            [(x, y - 1.5), (x + far, y - spread), (x + far, y + spread * 0.3), (x, y + 1.5)],
            (1.0, 0.96, 0.7),
            blur=1.0,
            opacity=opacity * power,
        )
    c.glow(x, y, 17, (1.0, 0.94, 0.65), 0.75 * power)
    c.record = True


def house(brush: Brush, x: float, y: float) -> None:
    c, paint, way = brush.canvas, brush.paint, 1 if brush.rng.random() < 0.5 else -1
    shadow(brush, x + 2, y - 1, 34)

    def px(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(x + way * a, y + b) for a, b in points]

    roof, trim = brush.lit(0.34, 0.17, 0.14), brush.lit(0.97, 0.95, 0.90)
    if brush.rng.random() < 0.5:
        roof = brush.lit(0.26, 0.28, 0.34)
    c.shape(
        px([(16, -53), (22, -53), (22, -38), (16, -38)]),
        brush.lit(0.55, 0.30, 0.24),
        shade=(1.1, 0.8),
    )
    c.shape(px([(-4, -29), (30, -29), (30, 0), (-4, 0)]), paint * 0.84, fall=0.12)
    c.shape(
        px([(-30, -29), (-17, -50), (-4, -29), (-4, 0), (-30, 0)]),
        mix(paint, (1, 1, 1), 0.06),
        fall=0.10,
    )
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
        c.shape(
            [
                (x + dx, y - dy),
                (x + dx + 4.5, y - dy),
                (x + dx + 4.5, y - dy + 6),
                (x + dx, y - dy + 6),
            ],
            brush.lamp(),
        )
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
