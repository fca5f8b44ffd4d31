"""Background and ground of an image, in even tones."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from .canvas import SIZE, Canvas, Colour, Points, mix, mul
from .sky import Light


def _curve(amplitude: float, waves: float, phase: float, base: float) -> Points:
    """A wave from the left edge to the right one."""
    return [
        (x, base + amplitude * sin(2 * pi * waves * x / SIZE + phase))
        for x in range(0, SIZE + 1, 4)
    ]


def _phase(rng: np.random.Generator) -> float:
    """One of eight, so that few different patches arise."""
    return float(rng.integers(8)) * pi / 4


def _band(c: Canvas, line: Points, top: Colour, bottom: Colour) -> None:
    c.gradient([*line, (SIZE, SIZE), (0, SIZE)], top, bottom)


def _peak(
    c: Canvas, x: float, foot: float, tall: float, way: int, tones: tuple[Colour, Colour, Colour]
) -> None:
    """A mountain of lit rock, shaded rock and snow; way: the shaded side."""
    body, dark, snow = tones
    wide = tall * 0.92

    def at(side: float, down: float) -> tuple[float, float]:
        return x + way * side * wide, foot - tall * (1 - down)

    c.poly([at(-1, 1), at(0, 0), at(1, 1)], body)
    c.poly([at(0, 0), at(1, 1), at(0.22, 1), at(0.02, 0.72), at(0.14, 0.5), at(-0.04, 0.32)], dark)
    line = [at(-0.36, 0.36), at(-0.2, 0.30), at(-0.12, 0.42), at(-0.02, 0.30)]
    c.poly([at(0, 0), *line, at(0.12, 0.46), at(0.20, 0.32), at(0.36, 0.36)], snow)
    shade = mix(snow, dark, 0.42)
    c.poly([at(0, 0), at(-0.02, 0.30), at(0.12, 0.46), at(0.20, 0.32), at(0.36, 0.36)], shade)


def mountains(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Snowy peaks, lit from one side: a far range and a near one."""
    way = 1 if rng.random() < 0.5 else -1
    rock = light.on((0.40, 0.43, 0.58))
    white = mul((1, 1, 1), mix(light.ground, (1, 1, 1), 0.45))
    far = ((16, 92), (112, 100), (208, 88)), 0.5
    near = ((-16, 64), (64, 76), (160, 60), (240, 72)), 0.1
    shift = float(rng.choice([-16, 0, 16]))
    for peaks, share in (far, near):
        tones = (
            mix(rock, light.haze, share),
            mix(mul(rock, (0.66, 0.68, 0.78)), light.haze, share),
            mix(white, light.haze, share * 0.4),
        )
        for x, tall in peaks:
            _peak(c, x + shift, horizon + 4, tall, way, tones)


def hills(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Three rounded green layers, the farther the hazier."""
    green = light.on((0.34, 0.62, 0.32))
    for share, low, amplitude, waves in ((0.62, 38, 10, 1), (0.36, 22, 10, 1.5), (0.10, 8, 6, 2)):
        line = _curve(amplitude, waves, _phase(rng), horizon - low)
        shape = [*line, (SIZE, horizon + 6), (0, horizon + 6)]
        c.gradient(shape, mix(green, light.haze, share), mix(green, light.haze, share + 0.10))


def _conifer(c: Canvas, x: float, foot: float, tall: float, colour: Colour) -> None:
    for top, low, wide in ((0, 0.48, 0.62), (0.26, 0.76, 0.82), (0.52, 1.0, 1.0)):
        half = tall * 0.30 * wide
        y = foot - tall * (1 - low)
        c.poly([(x, foot - tall * (1 - top)), (x + half, y), (x - half, y)], colour)


def forest(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Two rows of conifers, a tree every token cell."""
    dark = light.on((0.10, 0.36, 0.26))
    for share, tall, shift in ((0.48, 46, 0), (0.08, 34, 8)):
        colour = mix(dark, light.haze, share)
        c.rect(0, horizon - tall * 0.3, SIZE, horizon + 6, colour)
        start = int(rng.integers(3))
        for i in range(17):
            size = (1.0, 0.8, 1.15)[(i * i + start) % 3]
            _conifer(c, i * 16 + shift, horizon + 4, tall * size, colour)


BACKDROPS = {"mountains": mountains, "hills": hills, "forest": forest}


def _bands(
    c: Canvas, light: Light, horizon: float, rng: np.random.Generator, colours: list[Colour]
) -> None:
    """Three waves of ground, the nearest last."""
    for colour, amplitude, down in zip(colours, (0, 6, 8), (0, 24, 56)):
        top = light.on(colour)
        line = _curve(amplitude, 1, _phase(rng) if down else 0, horizon + down)
        _band(c, line, top, mul(top, (0.90, 0.92, 0.94)))


_GROUPS = (  # where flowers and leaves lie: columns and rows of token cells below the horizon
    ((1, 2), (3, 4), (5, 3), (8, 5), (10, 2), (12, 4), (14, 3), (2, 5)),
    ((0, 4), (2, 3), (4, 5), (6, 2), (9, 4), (11, 5), (13, 2), (15, 4)),
)


def _spots(rng: np.random.Generator, horizon: float) -> Points:
    """The middles of the cells of one of two groups."""
    row = int(horizon // 16)
    cells = _GROUPS[int(rng.integers(2))]
    return [(x * 16 + 8, (row + y) * 16 + 8) for x, y in cells]


def meadow(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Grass with daisies and poppies."""
    _bands(c, light, horizon, rng, [(0.62, 0.82, 0.36), (0.46, 0.74, 0.30), (0.33, 0.63, 0.26)])
    petals = ((1.0, 0.97, 0.92), (0.96, 0.36, 0.40))
    hearts = ((0.95, 0.65, 0.15), (0.45, 0.15, 0.12))
    for k, (x, y) in enumerate(_spots(rng, horizon)):
        size = 2.0 if y < horizon + 60 else 2.6
        for dx, dy in ((-1, 0), (1, 0), (0, -1), (0, 1)):
            c.circle(x + dx * size, y + dy * size, size * 0.95, mul(petals[k % 2], light.subject))
        c.circle(x, y, size * 0.7, mul(hearts[k % 2], light.subject))


def autumn(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Orange ground with fallen leaves."""
    _bands(c, light, horizon, rng, [(0.93, 0.70, 0.32), (0.86, 0.52, 0.20), (0.72, 0.36, 0.16)])
    leaves = ((0.80, 0.20, 0.12), (1.0, 0.84, 0.34))
    for k, (x, y) in enumerate(_spots(rng, horizon)):
        s = 3.0 if y < horizon + 60 else 4.0
        shape = [(-1.5, 0.7), (-0.3, -0.9), (1.5, -0.7), (0.3, 0.9)]
        c.poly([(x + a * s, y + b * s) for a, b in shape], light.on(leaves[k % 2]))


def tulips(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Fresh grass and three rows of tulips in bands of one colour each."""
    _bands(c, light, horizon, rng, [(0.72, 0.88, 0.44), (0.62, 0.84, 0.38), (0.52, 0.78, 0.32)])
    first = int(rng.integers(3))
    petals = ((0.96, 0.30, 0.36), (1.0, 0.80, 0.24), (0.98, 0.58, 0.74))
    row = int(horizon // 16)
    for k, (down, s) in enumerate(((2, 0.8), (4, 1.0), (6, 1.2))):
        colour = mul(petals[(first + k) % 3], light.subject)
        stem = light.on((0.20, 0.48, 0.20))
        y = (row + down) * 16 + 8
        for x in range(8, SIZE, 16):
            c.rect(x - 0.8 * s, y, x + 0.8 * s, y + 8 * s, stem)
            cup = [
                (-4, -5),
                (-1.6, -2.6),
                (0, -5.4),
                (1.6, -2.6),
                (4, -5),
                (3.4, 0.6),
                (0, 2.6),
                (-3.4, 0.6),
            ]
            c.poly([(x + a * s, y + b * s) for a, b in cup], colour)


def desert(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Dunes with a lit and a shaded side."""
    tones: tuple[tuple[Colour, Colour], ...] = (
        ((1.0, 0.91, 0.68), (0.92, 0.74, 0.48)),
        ((0.98, 0.82, 0.52), (0.86, 0.61, 0.34)),
        ((0.95, 0.72, 0.40), (0.78, 0.50, 0.25)),
    )
    for (pale, dark), down, amp, wide in zip(tones, (0, 34, 72), (10, 16, 20), (72, 96, 128)):
        way = 1 if rng.random() < 0.5 else -1
        peak = float(rng.choice([64, 128, 192]))
        base, sunk = horizon + down, amp if down else 0

        def ridge(x: float) -> float:
            bend = cos(max(-pi, min(pi, (x - peak) / wide * pi)))
            return base - amp * (0.5 + 0.5 * bend) + sunk

        line = [(float(x), ridge(x)) for x in range(0, SIZE + 1, 4)]
        _band(c, line, light.on(pale), light.on(mix(pale, dark, 0.25)))
        steps = np.linspace(0, 1, 24)
        crest = [(peak + way * wide * t, ridge(peak + way * wide * t)) for t in steps]
        a, m, b = crest[-1], (peak + way * wide * 0.35, base + amp * 1.1 + sunk), crest[0]
        back = [
            (
                (1 - t) ** 2 * a[0] + 2 * t * (1 - t) * m[0] + t * t * b[0],
                (1 - t) ** 2 * a[1] + 2 * t * (1 - t) * m[1] + t * t * b[1],
            )
            for t in steps
        ]
        c.poly(crest + back, light.on(dark))


def snow(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    _bands(c, light, horizon, rng, [(0.78, 0.87, 0.97), (0.88, 0.93, 1.0), (0.98, 0.99, 1.0)])


def lavender(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Rows that meet above the horizon."""
    c.rect(0, horizon, SIZE, SIZE, light.on((0.46, 0.60, 0.30)))
    vanish, far = float(rng.choice([96, 128, 160])), 10 / (SIZE - horizon + 10)
    for k in range(-11, 12):
        for low, high, colour in ((-17, 17, (0.48, 0.31, 0.74)), (-17, 3, (0.66, 0.46, 0.88))):
            left, right = k * 52 + low, k * 52 + high
            top = [(vanish + left * far, horizon), (vanish + right * far, horizon)]
            c.poly([*top, (vanish + right, SIZE), (vanish + left, SIZE)], light.on(colour))
    c.rect(0, horizon, SIZE, horizon + 3, light.on((0.58, 0.42, 0.80)))


def sea(c: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Three rows of waves, two token cells wide each."""
    deep, near_sky = light.on((0.07, 0.38, 0.60)), mix(light.horizon, light.middle, 0.6)
    c.rect(0, horizon, SIZE, SIZE, mix(deep, near_sky, 0.50))
    for down, share, amplitude in ((16, 0.40, 3.5), (40, 0.26, 5.0), (72, 0.12, 6.5)):
        start = float(rng.integers(2)) * 16
        y, colour = horizon + down, mix(deep, near_sky, share)
        line = [
            (float(x), y - amplitude * abs(sin(pi * (x + start) / 32)))
            for x in range(0, SIZE + 1, 2)
        ]
        foam = mix(colour, mix(light.cloud, near_sky, 0.2), 0.62)
        c.poly([*[(x, v - 2.8) for x, v in line], (SIZE, SIZE), (0, SIZE)], foam)
        _band(c, line, colour, mix(deep, near_sky, max(0, share - 0.10)))


GROUND_PAINTERS = {
    "meadow": meadow,
    "sea": sea,
    "desert": desert,
    "snow": snow,
    "autumn": autumn,
    "lavender": lavender,
    "tulips": tulips,
}


def glitter(c: Canvas, light: Light, horizon: float, x: float) -> None:
    """Reflection of the sun or moon on the water."""
    colour = mix(light.glow, light.middle, 0.12)
    for k, (down, half) in enumerate(((5, 8), (12, 14), (22, 10), (32, 18), (46, 12), (60, 20))):
        shift = (4, -4)[k % 2]
        c.pill(x - half + shift, x + half + shift, horizon + down, 1.6 + k * 0.2, colour)
