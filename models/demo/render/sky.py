"""Light and sky of a demo picture."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.demo.render.paint import NOISE, SCALE, SIDE, Canvas, Colour, noise, rgb


@dataclass(frozen=True)
class Light:
    """How a time of day colours the world."""

    top: Colour
    middle: Colour
    horizon: Colour
    ground: Colour  # factor on ground colours
    subject: Colour  # factor on the subject's colours
    cloud: Colour
    cloud_shade: Colour
    glow: Colour  # sun or moon
    lamps: float  # how bright windows and lamps shine


LIGHTS: dict[str, Light] = {
    "dawn": Light(
        (0.50, 0.66, 0.88), (0.93, 0.78, 0.84), (1.0, 0.87, 0.70), (1.0, 0.93, 0.88),
        (1.0, 0.96, 0.92), (1.0, 0.90, 0.88), (0.88, 0.70, 0.78), (1.0, 0.95, 0.78), 0.0,
    ),
    "day": Light(
        (0.12, 0.42, 0.86), (0.42, 0.69, 0.96), (0.80, 0.92, 0.99), (1.0, 1.0, 1.0),
        (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.78, 0.85, 0.94), (1.0, 0.97, 0.75), 0.0,
    ),
    "dusk": Light(
        (0.23, 0.13, 0.42), (0.78, 0.25, 0.38), (1.0, 0.58, 0.18), (0.84, 0.67, 0.70),
        (0.95, 0.86, 0.84), (0.98, 0.52, 0.36), (0.50, 0.20, 0.42), (1.0, 0.80, 0.36), 0.7,
    ),
    "night": Light(
        (0.015, 0.03, 0.12), (0.04, 0.08, 0.25), (0.10, 0.17, 0.40), (0.46, 0.47, 0.60),
        (0.80, 0.81, 0.88), (0.16, 0.21, 0.40), (0.07, 0.10, 0.24), (0.98, 0.97, 0.86), 1.0,
    ),
    "storm": Light(
        (0.17, 0.19, 0.24), (0.33, 0.37, 0.42), (0.66, 0.70, 0.68), (0.74, 0.76, 0.78),
        (0.90, 0.91, 0.93), (0.46, 0.49, 0.54), (0.14, 0.16, 0.21), (0.92, 0.92, 1.0), 0.8,
    ),
}  # fmt: skip


def sky(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """A vertical gradient from the top colour through the middle to the horizon colour."""
    height = int(horizon * SCALE) + 8
    t = np.linspace(0, 1, height, dtype=np.float32)[:, None]
    low = np.clip(t * 2 - 1, 0, 1) ** 1.2
    column = rgb(light.top) + (rgb(light.middle) - rgb(light.top)) * np.clip(t * 2, 0, 1)
    column += (rgb(light.horizon) - rgb(light.middle)) * low
    column *= np.float32(rng.uniform(0.95, 1.04))
    canvas.pixels[:height] = column[:, None]


def stars(canvas: Canvas, horizon: float, rng: np.random.Generator) -> None:
    count = int(rng.integers(50, 80))
    x = rng.integers(1, SIDE - 2, count)
    y = (rng.random(count) ** 1.3 * (horizon - 8) * SCALE).astype(int)
    bright = (0.35 + 0.6 * rng.random(count)).astype(np.float32)[:, None]
    big = rng.random(count) < 0.35
    for dy, dx in ((0, 0), (0, 1), (1, 0), (1, 1)):
        canvas.pixels[y + dy, x + dx] = np.maximum(canvas.pixels[y + dy, x + dx], bright)
    for dy, dx in ((-1, 0), (-1, 1), (2, 0), (2, 1), (0, -1), (1, -1), (0, 2), (1, 2)):
        star = np.clip(y[big] + dy, 0, SIDE - 1), np.clip(x[big] + dx, 0, SIDE - 1)
        canvas.pixels[star] = np.maximum(canvas.pixels[star], bright[big] * 0.6)


def celestial(
    canvas: Canvas, time: str, light: Light, horizon: float, away: float, rng: np.random.Generator
) -> float:
    """Sun, moon or lightning on the side away from column `away`; returns its column."""
    x = float(rng.uniform(12, 44) if away > 64 else rng.uniform(84, 116))
    if 54 < away < 74 and rng.random() < 0.5:
        x = 128 - x
    if time == "storm":
        if rng.random() < 0.6:
            lightning(canvas, x, horizon, rng)
        return x
    y = {"dawn": horizon - 16, "day": 20.0, "dusk": horizon - 8, "night": 20.0}[time]
    y += float(rng.uniform(-5, 5))
    reach, strength = {
        "dawn": (46, 0.6), "day": (40, 0.55), "dusk": (60, 0.75), "night": (30, 0.35)
    }[time]  # fmt: skip
    radius = {"dawn": 7.0, "day": 8.0, "dusk": 10.0, "night": 8.0}[time]
    canvas.glow(x, y, reach, light.glow, strength)
    canvas.circle(x, y, radius, light.glow)
    if time == "night":
        crescent = rng.random() < 0.4
        for dx, dy, r in ((-2.5, -1.5, 2.0), (2.0, 2.5, 1.5), (2.5, -3.0, 1.2)):
            if not crescent:
                canvas.circle(x + dx, y + dy, r, (0.86, 0.86, 0.78))
        if crescent:
            row = canvas.pixels[int((y + 14) * SCALE), int(x * SCALE)].copy()
            canvas.circle(x + 3.5, y - 2, 7.0, row)
    return x


def lightning(canvas: Canvas, x: float, horizon: float, rng: np.random.Generator) -> None:
    canvas.glow(x, horizon * 0.45, 50, (0.85, 0.88, 1.0), 0.45)
    y, points = 10.0, [(x, 10.0)]
    while y < horizon - 2:
        y += float(rng.uniform(6, 12))
        points.append((points[-1][0] + float(rng.uniform(-7, 7)), min(y, horizon)))
    width = np.linspace(1.3, 0.5, len(points))
    outline = [(px - w, py) for (px, py), w in zip(points, width)]
    outline += [(px + w, py) for (px, py), w in zip(points[::-1], width[::-1])]
    canvas.shape(outline, (0.9, 0.92, 1.0), blur=1.5, opacity=0.8)
    canvas.shape(outline, (1.0, 1.0, 0.95))


def clouds(
    canvas: Canvas, time: str, light: Light, horizon: float, rng: np.random.Generator
) -> None:
    """Flat-lying noise above a threshold, lit from above; a storm covers most of the sky."""
    storm = time == "storm"
    height = int((horizon - 6) * SCALE)
    rows = (np.arange(height) * (1.7 if storm else 2.6)).astype(int)
    y0, x0 = rng.integers(NOISE, size=2)
    field = noise("cloud")[np.ix_((rows + y0) % NOISE, (np.arange(SIDE) + x0) % NOISE)]
    above = noise("cloud")[np.ix_((rows + y0 - 14) % NOISE, (np.arange(SIDE) + x0 - 4) % NOISE)]
    start = 0.38 if storm else float(rng.uniform(0.52, 0.72))
    alpha = np.clip((field - start) * (4 if storm else 5), 0, 1)
    fade = np.linspace(1, 0.15, height, dtype=np.float32)[:, None]
    alpha = alpha * (fade if storm else np.minimum(fade * 1.6, 1)) * np.float32(0.95)
    lit = np.clip(0.5 + (field - above) * 4.0, 0, 1)[..., None]
    colour = rgb(light.cloud_shade) + (rgb(light.cloud) - rgb(light.cloud_shade)) * lit
    canvas.blend(alpha, colour, 0, 0)
