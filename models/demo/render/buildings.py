"""Subjects that are built: lighthouse, house, windmill, castle; x is the middle column, y the foot."""

from __future__ import annotations

from math import cos, pi, sin

from .canvas import mix, mul
from .subjects import Brush, placed, reflect, ring


def _rock(b: Brush, x: float, y: float) -> None:
    rock = b.lit(0.40, 0.38, 0.42)
    b.c.pill(x - 62, x + 62, y + 14, 5, mix(b.light.cloud, b.light.middle, 0.2))
    body = [(-56, 14), (-44, 0), (-26, -8), (26, -8), (42, -2), (56, 14)]
    b.c.poly(placed(body, x, y), rock)
    side = [(6, 14), (16, -8), (26, -8), (42, -2), (56, 14)]
    b.c.poly(placed(side, x, y), mul(rock, (0.74, 0.74, 0.78)))


def lighthouse(b: Brush, x: float, y: float, sea: bool) -> None:
    """Five stripes, gallery, lamp and roof; on a rock if it stands in the sea."""
    c = b.c
    _rock(b, x, y) if sea else b.shadow(x, y, 40)
    stripe = b.lit(0.72, 0.72, 0.73) if b.white else b.lit(0.98, 0.97, 0.94)
    roof = b.lit(0.34, 0.32, 0.40) if b.white else b.dark
    top, foot = y - 116, y - 1

    def half(row: float) -> float:
        return 17 + 13 * (row - top) / (foot - top)

    for i in range(5):
        a, q = top + (foot - top) * i / 5, top + (foot - top) * (i + 1) / 5
        colour = b.paint if i % 2 == 0 else stripe
        shade = b.dark if i % 2 == 0 else mul(stripe, (0.78, 0.80, 0.86))
        c.poly([(x - half(a), a), (x + half(a), a), (x + half(q), q), (x - half(q), q)], colour)
        edge = [(x + half(a) * 0.35, a), (x + half(a), a), (x + half(q), q)]
        c.poly([*edge, (x + half(q) * 0.35, q)], shade)
    dark = b.lit(0.20, 0.22, 0.30)
    door = [(x - 8, foot), *ring(x, foot - 16, pi, 2 * pi, 8, 8, 12), (x + 8, foot)]
    c.poly(door, b.lit(0.30, 0.19, 0.14))
    c.poly(ring(x, y - 74, 0, 2 * pi, 5.5, 7), b.lamp())
    c.rect(x - 24, top - 4, x + 24, top + 4, dark)
    c.rect(x - 13, top - 24, x + 13, top - 4, (1.0, 0.94, 0.62))
    for dx in (-13, -1.2, 10.6):
        c.rect(x + dx, top - 24, x + dx + 2.4, top - 4, dark)
    c.poly([(x - 18, top - 24), (x, top - 42), (x + 18, top - 24)], roof)
    c.record = False
    if b.light.lamps > 0:
        far, row = (200 if x < 128 else -200), top - 14
        beam = [(x, row - 4), (x + far, row - 34), (x + far, row + 22), (x, row + 4)]
        c.veil(beam, (1, 0.96, 0.70), 0.20 * b.light.lamps)
        b.glow(x, row, 34, 0.8)
    if sea:
        reflect(b, x, y + 14, 40)


def house(b: Brush, x: float, y: float) -> None:
    """A gable to one side, two windows on the other."""
    c, w = b.c, b.way
    b.shadow(x, y, 70)
    roof, trim = b.lit(0.34, 0.32, 0.40), b.lit(0.98, 0.96, 0.92)
    c.poly(placed([(22, -124), (38, -124), (38, -90), (22, -90)], x, y, w), b.lit(0.66, 0.36, 0.28))
    c.poly(placed([(-8, -60), (62, -60), (62, 0), (-8, 0)], x, y, w), b.dark)
    front = [(-62, -60), (-35, -104), (-8, -60), (-8, 0), (-62, 0)]
    c.poly(placed(front, x, y, w), b.paint)
    c.poly(placed([(-36, -108), (44, -108), (70, -54), (-4, -54)], x, y, w), roof)
    c.poly(
        placed([(-36, -109), (-28, -109), (-62, -52), (-70, -52)], x, y, w), mul(roof, (1.25,) * 3)
    )
    c.poly(placed([(-36, -109), (-28, -109), (2, -52), (-7, -52)], x, y, w), mul(roof, (0.72,) * 3))
    lamp = b.lamp()
    c.poly(placed([(-45, 0), (-45, -30), (-25, -30), (-25, 0)], x, y, w), b.lit(0.36, 0.21, 0.15))
    c.circle(x - w * 35, y - 68, 8, trim)
    c.circle(x - w * 35, y - 68, 5.5, lamp)
    for left in (4, 34):
        c.poly(
            placed([(left - 2, -44), (left + 22, -44), (left + 22, -18), (left - 2, -18)], x, y, w),
            trim,
        )
        for pane in (left + 1, left + 11):
            c.poly(
                placed([(pane, -41), (pane + 8, -41), (pane + 8, -21), (pane, -21)], x, y, w), lamp
            )


def windmill(b: Brush, x: float, y: float) -> None:
    """A tower with four wide sails that stand crosswise; the same when mirrored."""
    c = b.c
    b.shadow(x, y, 44)
    top = y - 92
    c.poly(placed([(-20, -92), (20, -92), (34, 0), (-34, 0)], x, y), b.paint)
    c.poly(placed([(7, -92), (20, -92), (34, 0), (12, 0)], x, y), b.dark)
    cap = b.lit(0.42, 0.26, 0.20)
    c.poly(ring(x, top + 2, pi, 2 * pi, 24, 24), cap)
    c.rect(x - 24, top, x + 24, top + 5, mul(cap, (0.72, 0.70, 0.72)))
    door = [(x - 9, y), *ring(x, y - 18, pi, 2 * pi, 9, 9, 12), (x + 9, y)]
    c.poly(door, b.lit(0.30, 0.18, 0.13))
    c.rect(x - 5, y - 50, x + 5, y - 38, b.lamp())
    frame, cloth = b.lit(0.34, 0.22, 0.16), b.lit(1.0, 0.94, 0.78)
    hub = (x, top - 4)
    for k in range(4):
        ux, uy = cos(pi / 4 + k * pi / 2), sin(pi / 4 + k * pi / 2)

        def at(along: float, across: float) -> tuple[float, float]:
            return hub[0] + ux * along - uy * across, hub[1] + uy * along + ux * across

        def bar(a: float, b_: float, c_: float, d: float) -> list[tuple[float, float]]:
            return [at(a, b_), at(c_, b_), at(c_, d), at(a, d)]

        c.poly(bar(0, -2.2, 20, 2.2), frame)
        c.poly(bar(18, -13, 80, 13), frame)
        for low in (21.5, 41.5, 61.5):
            c.poly(bar(low, -9.5, low + 15.5, -1.6), cloth)
            c.poly(bar(low, 1.6, low + 15.5, 9.5), cloth)
    c.circle(*hub, 7, b.lit(0.95, 0.76, 0.30))


def castle(b: Brush, x: float, y: float) -> None:
    """A wall with a gate between two towers, and a taller one behind."""
    c = b.c
    b.shadow(x, y, 66)
    stone, lamp = b.dark, b.lamp()
    roof = b.lit(0.34, 0.32, 0.40)

    def tower(dx: float, half: float, tall: float, colour: tuple[float, float, float]) -> None:
        shade = mul(colour, (0.80, 0.80, 0.84))
        c.poly(
            placed([(dx - half, -tall), (dx + half, -tall), (dx + half, 0), (dx - half, 0)], x, y),
            colour,
        )
        c.poly(
            placed(
                [
                    (dx + half * 0.3, -tall),
                    (dx + half, -tall),
                    (dx + half, 0),
                    (dx + half * 0.3, 0),
                ],
                x,
                y,
            ),
            shade,
        )
        c.poly(
            placed(
                [(dx - half - 5, -tall), (dx, -tall - half * 2.1), (dx + half + 5, -tall)], x, y
            ),
            roof,
        )
        c.poly(
            placed(
                [(dx, -tall - half * 2.1), (dx + half + 5, -tall), (dx + half * 0.3, -tall)], x, y
            ),
            mul(roof, (0.75,) * 3),
        )
        c.rect(x + dx - 4, y - tall + 14, x + dx + 4, y - tall + 27, lamp)

    tower(0, 17, 96, stone)
    c.rect(x, y - 152, x + 1.8, y - 130, b.lit(0.3, 0.2, 0.15))
    c.poly(placed([(2, -152), (20, -146), (2, -140)], x, y), b.lit(0.95, 0.78, 0.25))
    c.rect(x - 44, y - 48, x + 44, y, b.paint)
    for dx in (-28, -12, 4, 20):
        c.rect(x + dx, y - 56, x + dx + 8, y - 47, b.paint)
    tower(-46, 16, 72, b.paint)
    tower(46, 16, 72, b.paint)
    gate = [(x - 14, y), *ring(x, y - 22, pi, 2 * pi, 14, 14, 14), (x + 14, y)]
    c.poly(gate, b.lit(0.30, 0.19, 0.14))
    for dx in (-6, 4):
        c.rect(x + dx, y - 34, x + dx + 2, y, b.lit(0.18, 0.11, 0.09))
