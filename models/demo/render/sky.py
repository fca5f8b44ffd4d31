"""Light of the times of day, sky, sun and moon, clouds and weather.

Shapes keep to positions that repeat with the grid of token cells: a code then stands for few images.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import cos, pi
from typing import Any

import numpy as np

from .canvas import SIZE, Canvas, Colour, mix, mul


@dataclass(frozen=True)
class Light:
    top: Colour
    middle: Colour
    horizon: Colour
    ground: Colour
    subject: Colour
    cloud: Colour
    cloud_shade: Colour
    glow: Colour
    lamps: float
    ambient: tuple[Colour, float] = ((1.0, 1.0, 1.0), 0.0)  # what all land takes on, and its share

    def on(self, colour: Colour) -> Colour:
        """A colour of the land in this light."""
        return mix(mul(colour, self.ground), *self.ambient)

    @property
    def haze(self) -> Colour:
        return mix(self.horizon, self.middle, 0.45)


def _light(colours: str, *more: Any) -> Light:
    """A light from the numbers of its colours, in the order of Light, and its other fields."""
    numbers = iter(map(float, colours.split()))
    return Light(*zip(numbers, numbers, numbers), *more)


LIGHTS = {
    "dawn": _light(
        "0.5 0.66 0.9  0.97 0.8 0.84  1.0 0.91 0.74  1.0 0.93 0.88 "
        "1.0 0.96 0.93  1.0 0.95 0.93  0.97 0.8 0.82  1.0 0.94 0.66",
        0.0,
    ),
    "day": _light(
        "0.16 0.5 0.9  0.46 0.75 0.97  0.86 0.95 0.99  1.0 1.0 1.0 "
        "1.0 1.0 1.0  1.0 1.0 1.0  0.82 0.91 0.98  1.0 0.9 0.42",
        0.0,
    ),
    "dusk": _light(
        "0.25 0.13 0.42  0.82 0.28 0.42  1.0 0.68 0.3  0.88 0.66 0.68 "
        "0.96 0.86 0.84  0.98 0.58 0.42  0.66 0.26 0.44  1.0 0.86 0.48",
        0.7,
        ((0.45, 0.16, 0.36), 0.12),
    ),
    "night": _light(
        "0.03 0.05 0.18  0.07 0.12 0.34  0.17 0.26 0.52  0.4 0.46 0.66 "
        "0.82 0.83 0.93  0.17 0.23 0.46  0.12 0.17 0.38  0.99 0.96 0.82",
        1.0,
        ((0.07, 0.11, 0.32), 0.38),
    ),
    "storm": _light(
        "0.2 0.23 0.3  0.37 0.42 0.49  0.66 0.72 0.73  0.66 0.71 0.76 "
        "0.88 0.9 0.93  0.44 0.48 0.55  0.3 0.34 0.41  1.0 0.95 0.62",
        0.8,
        ((0.36, 0.42, 0.48), 0.15),
    ),
}
_GREY = {"dawn": 0.66, "day": 0.62, "dusk": 0.42, "night": 0.16, "storm": 0.4}  # of rain clouds
_STARS = tuple(  # two skies of stars, as columns and rows of token cells; the last number is 1 for a big star
    tuple(tuple(map(int, star.split(","))) for star in stars.split())
    for stars in (
        "1,1,1 3,3,0 4,0,0 6,2,1 7,4,0 9,1,0 10,3,1 12,0,0 13,4,1 14,2,0 2,5,0 5,5,0",
        "0,3,0 2,1,0 3,4,1 5,1,1 6,4,0 8,0,0 8,3,1 11,2,0 12,4,0 13,1,1 15,3,0 10,5,0",
    )
)


def light_of(time: str, weather: str) -> Light:
    """Rain and snowfall dull the light of the time of day."""
    light = LIGHTS[time]
    if weather not in ("rain", "snowfall") or time == "storm":
        return light
    grey = (_GREY[time],) * 2 + (_GREY[time] * 1.08,)
    return replace(
        light,
        top=mix(light.top, mul(grey, (0.72, 0.72, 0.78)), 0.75),
        middle=mix(light.middle, grey, 0.45),
        horizon=mix(light.horizon, grey, 0.2),
        cloud=mix(light.cloud, grey, 0.55),
        cloud_shade=mix(light.cloud_shade, mul(grey, (0.8, 0.8, 0.82)), 0.7),
        ground=mul(light.ground, (0.86, 0.89, 0.92)),
        subject=mul(light.subject, (0.95, 0.96, 0.97)),
    )


def sky(c: Canvas, light: Light, horizon: float) -> None:
    c.sky([(0, light.top), (0.55, light.middle), (1, light.horizon)], horizon + 6)


def stars(c: Canvas, rng: np.random.Generator) -> None:
    """One of two skies."""
    for column, row, big in _STARS[int(rng.integers(2))]:
        x, y = column * 16 + 8, row * 16 + 8
        if not big:
            c.circle(x, y, 1.5, (0.88, 0.90, 0.98))
            continue
        r, w = 4.6, 1.2
        points = [(x, y - r), (x + w, y - w), (x + r, y), (x + w, y + w)]
        points += [(x, y + r), (x - w, y + w), (x - r, y), (x - w, y - w)]
        c.poly(points, (0.98, 0.97, 0.86))


def moon(c: Canvas, x: float, y: float, radius: float, crescent: bool, colour: Colour) -> None:
    """A full moon with three seas, or a crescent: a disc less a smaller one moved sideways."""
    if not crescent:
        c.circle(x, y, radius, colour)
        for dx, dy, r in ((-5, -3, 4), (5, 4, 3), (4, -7, 2.2)):
            c.circle(x + dx, y + dy, r, (0.90, 0.86, 0.70))
        return
    outer = [
        (x + radius * cos(a), y + radius * np.sin(a))
        for a in np.linspace(0.915, 2 * pi - 0.915, 40)
    ]
    inner = [
        (x + radius * (0.5 + 0.8 * cos(a)), y + radius * 0.8 * np.sin(a))
        for a in np.linspace(2 * pi - 1.433, 1.433, 40)
    ]
    c.poly(outer + inner, colour)


def celestial(
    c: Canvas, time: str, light: Light, horizon: float, left: bool, rng: np.random.Generator
) -> float:
    """Sun or moon on the left or right; returns its column."""
    x = float(rng.choice([32, 64] if left else [192, 224]))
    y = {"dawn": horizon - 32, "day": 40.0, "dusk": horizon - 24, "night": 40.0}[time]
    radius = {"dawn": 16, "day": 18, "dusk": 24, "night": 17}[time]
    reach, strength = {
        "dawn": (88, 0.75),
        "day": (72, 0.7),
        "dusk": (128, 0.8),
        "night": (64, 0.4),
    }[time]
    c.glow(x, y, reach, mix(light.glow, (1, 1, 1), 0.2), strength)
    if time == "night":
        moon(c, x, y, radius, rng.random() < 0.5, light.glow)
    else:
        c.circle(x, y, radius, light.glow)
    return x


def cloud(c: Canvas, x: float, y: float, size: float, light: Light) -> None:
    """Two stacked capsules with a flat foot."""
    s = size
    c.pill(x - 30 * s, x + 34 * s, y + 5 * s, 7 * s, light.cloud_shade)
    c.pill(x - 36 * s, x + 28 * s, y, 8 * s, light.cloud)
    c.circle(x - 10 * s, y - 7 * s, 12 * s, light.cloud)
    c.circle(x + 8 * s, y - 5 * s, 9 * s, light.cloud)


def clouds(c: Canvas, light: Light, sun: float, many: bool, rng: np.random.Generator) -> None:
    """A few clouds beside the sun, or a sky full of them."""
    if many:
        shift = float(rng.choice([0, 16]))
        for x, y in ((24, 72), (88, 32), (152, 72), (216, 32), (232, 96), (88, 104)):
            if y > 90 or abs(x + shift - sun) >= 44:
                cloud(c, x + shift, y, 0.9, light)
        return
    spots = [(40, 40), (104, 64), (168, 32), (224, 64), (72, 88), (200, 88)]
    for k in rng.choice(len(spots), int(rng.integers(1, 4)), replace=False):
        x, y = spots[int(k)]
        if abs(x - sun) >= 52:
            cloud(c, x, y, 0.9, light)


def bank(c: Canvas, light: Light, rng: np.random.Generator) -> None:
    """Heavy clouds in three rows at the top."""
    rows = ((40, 22, light.cloud, 0), (22, 24, light.cloud_shade, 16), (2, 24, light.top, 0))
    start = int(rng.integers(2)) * 16
    for y, radius, colour, shift in rows:
        c.rect(0, 0, SIZE, y, colour)
        for i in range(-1, 9):
            c.circle(i * 32 + start + shift, y, radius, colour)


def bolt(c: Canvas, x: float, way: int) -> None:
    shape = [(0, 40), (14, 40), (6, 66), (15, 66), (-6, 112), (0, 80), (-9, 80)]
    c.glow(x, 72, 72, (0.86, 0.88, 1.0), 0.5)
    c.poly([(x + way * a, b) for a, b in shape], (1.0, 0.95, 0.60))


def rain(c: Canvas, light: Light, horizon: float) -> None:
    """Slanted streaks on a lattice between clouds and horizon."""
    colour = mix(light.horizon, (0.86, 0.93, 1.0), 0.55)
    for row, y in enumerate(range(72, int(horizon) - 8, 16)):
        for x in range(4 + 16 * (row % 2), SIZE + 8, 32):
            c.poly([(x, y), (x + 2.2, y), (x - 4.0, y + 15), (x - 6.2, y + 15)], colour)


def snowfall(c: Canvas, light: Light, horizon: float) -> None:
    """Flakes on a lattice."""
    colour = mix(light.cloud, (1, 1, 1), 0.8)
    for row, y in enumerate(range(56, int(horizon) - 4, 16)):
        for x in range(8 + 16 * (row % 2), SIZE, 32):
            c.circle(x, y, 2.6, colour)


def rainbow(c: Canvas, light: Light, horizon: float, left: bool) -> None:
    """Five bands from one side of the horizon to the other."""
    x = 112.0 if left else 144.0
    bands = (
        (0.92, 0.26, 0.28),
        (0.98, 0.62, 0.22),
        (0.99, 0.89, 0.36),
        (0.36, 0.76, 0.44),
        (0.30, 0.52, 0.90),
    )
    for k, colour in enumerate(bands):
        c.arc(x, horizon + 8, 128 - 6 * k, 6.4, mix(colour, light.middle, 0.25))


def mist(c: Canvas, light: Light, horizon: float) -> None:
    """Pale bands before the background."""
    pale = mix(light.horizon, light.cloud, 0.5)
    c.haze(horizon - 64, horizon + 40, pale, 0.92)
    for x, y, half in ((40, -32, 56), (208, -24, 64), (112, -8, 72)):
        c.pill(x - half, x + half, horizon + y, 6, mix(pale, (1, 1, 1), 0.25 * light.ground[0]))
