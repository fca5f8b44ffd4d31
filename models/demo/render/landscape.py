"""Background and ground of a demo picture."""

from __future__ import annotations

import numpy as np

from models.demo.render.paint import (
    NOISE,
    SCALE,
    SIDE,
    SIZE,
    Canvas,
    Colour,
    mix,
    noise,
    patch,
    profile,
    rgb,
)
from models.demo.render.sky import Light


def _ridge(
    canvas: Canvas, heights: np.ndarray, horizon: float
) -> tuple[np.ndarray, np.ndarray, int]:
    """Opacity and height above the ridge line's foot of the region under `heights` (pixels)."""
    base = int(horizon * SCALE) + 6
    top = int(base - 6 - heights.max() * SCALE) - 2
    rows = np.arange(top, base, dtype=np.float32)[:, None]
    line = np.float32(horizon * SCALE) - heights[None].astype(np.float32) * SCALE
    alpha = np.clip(rows - line + 0.5, 0, 1)
    return alpha, rows - line, top


def mountains(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Peaks with snow, lit from one side, in two layers."""
    x = np.arange(SIDE, dtype=np.float32) / SCALE
    lit_from = 1 if rng.random() < 0.5 else -1
    for haze, tall, count in ((0.42, 44.0, 4), (0.14, 30.0, 5)):
        centres = (np.arange(count) + rng.uniform(0.1, 0.9, count)) * SIZE / count
        tops = tall * rng.uniform(0.6, 1.0, count)
        cones = tops[:, None] - np.abs(x[None] - centres[:, None]) * rng.uniform(
            0.8, 1.2, (count, 1)
        )
        owner = cones.argmax(0)
        heights = np.maximum(cones.max(0), 4) + (profile(rng) - 0.5) * 14
        heights = np.maximum(heights, 2)
        alpha, depth, top = _ridge(canvas, heights, horizon)
        grain = patch("cloud", rng, *alpha.shape)
        offset = (x - centres[owner])[None] + (grain - 0.5) * (8 + 0.5 * np.maximum(depth, 0))
        facing = (0.72 + 0.28 * lit_from * np.clip(offset * 0.5, -1, 1) + 0.25 * (grain - 0.5))[
            ..., None
        ]
        rock = rgb((0.50, 0.45, 0.47)) * rgb(light.ground)
        snow_depth = (tops[owner] * 0.42)[None] * SCALE - (tops[owner] - heights)[None] * SCALE
        snowy = np.clip((snow_depth - depth + (grain - 0.5) * 45) * 0.25, 0, 1)[..., None]
        white = rgb((0.97, 0.98, 1.0)) * (rgb(light.ground) * 0.9 + 0.1)
        colour = rock * facing + (white * (0.35 + 0.65 * facing) - rock * facing) * snowy
        colour = colour + (mix(light.horizon, light.middle, 0.4) - colour) * np.float32(haze)
        canvas.blend(alpha, colour, top, 0)


def hills(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Three rounded green layers, the farther the hazier."""
    tone = rng.uniform(0.9, 1.1)
    for haze, low, high in ((0.5, 8, 24), (0.3, 4, 17), (0.12, 1, 10)):
        x = np.linspace(0, 2 * np.pi, SIDE)
        wave = np.sin(x * rng.uniform(0.7, 1.5) + rng.uniform(0, 6.3)) * 0.35
        wave += np.sin(x * rng.uniform(1.8, 2.8) + rng.uniform(0, 6.3)) * 0.15 + 0.5
        heights = low + (high - low) * np.clip(wave, 0, 1)
        alpha, depth, top = _ridge(canvas, heights, horizon)
        grain = patch("soil", rng, *alpha.shape)
        shade = np.clip(1.12 - depth * 0.007 + (grain - 0.5) * 0.5, 0.5, 1.3)[..., None]
        colour = rgb((0.33, 0.58, 0.26)) * rgb(light.ground) * shade * np.float32(tone)
        colour = colour + (mix(light.horizon, light.middle, 0.5) - colour) * np.float32(haze)
        canvas.blend(alpha, colour, top, 0)


def forest(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Two rows of conifers."""
    for haze, count, tall in ((0.38, 26, 17.0), (0.10, 20, 22.0)):
        green = mix(rgb((0.10, 0.30, 0.17)) * rgb(light.ground), light.horizon, haze * 0.8)
        canvas.shape(
            [
                (0, horizon - tall * 0.32),
                (SIZE, horizon - tall * 0.32),
                (SIZE, horizon + 2),
                (0, horizon + 2),
            ],
            green * 0.85,
        )
        for i in range(count):
            x = (i + rng.uniform(0.1, 0.9)) * SIZE / count
            height = tall * rng.uniform(0.7, 1.15)
            tone = green * np.float32(rng.uniform(0.8, 1.2))
            points_left, points_right = [], []
            for tier in range(3):
                y = horizon - height * (1 - tier * 0.3)
                wide = height * (0.10 + 0.075 * tier)
                points_left += [(x - wide * 0.35, y), (x - wide, y + height * 0.34)]
                points_right += [(x + wide * 0.35, y), (x + wide, y + height * 0.34)]
            points_left[0] = points_right[0] = (x, horizon - height)
            canvas.shape(points_left + points_right[::-1], tone, shade=(1.25, 0.75))


BACKDROPS = {"mountains": mountains, "hills": hills, "forest": forest}


def _perspective(
    kind: str, horizon: float, rng: np.random.Generator, stretch: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Noise laid on the ground plane, [rows, SIDE], and the nearness of the rows, [rows, 1] in 0..1."""
    first = int(horizon * SCALE)
    rows = np.arange(first, SIDE)
    near = ((rows - first + 4) / (SIDE - first + 4)).astype(np.float32)[:, None]
    across = (np.arange(SIDE) - SIDE / 2)[None] / (0.35 + 0.65 * near) * 0.8
    along = 130 * stretch / (near + 0.25)
    y0, x0 = rng.integers(NOISE, size=2)
    return noise(kind)[(along + y0).astype(int) % NOISE, (across + x0).astype(int) % NOISE], near


def _lay(canvas: Canvas, colour: np.ndarray, light: Light, haze: np.ndarray) -> None:
    """Writes ground colours [rows, SIDE, 3] under the horizon; haze [rows, 1] mixes in the sky."""
    colour = colour * rgb(light.ground)
    colour += (rgb(light.horizon) * 0.9 - colour) * haze[..., None]
    canvas.pixels[SIDE - len(colour) :] = colour


def meadow(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    field, near = _perspective("soil", horizon, rng)
    blades = patch("grain", rng, len(field), SIDE)
    shade = 0.80 + 0.5 * (field - 0.5) + 0.30 * (blades - 0.5) * near + 0.25 * near
    colour = rgb((0.32, 0.66, 0.20)) * shade[..., None]
    colour[..., 0] += 0.16 * (1 - near)
    _lay(canvas, colour, light, 0.18 * (1 - near) ** 3)
    flowers(canvas, light, horizon, rng, ((1.0, 0.95, 0.9), (1.0, 0.85, 0.2), (0.95, 0.4, 0.5)))


def flowers(
    canvas: Canvas,
    light: Light,
    horizon: float,
    rng: np.random.Generator,
    colours: tuple[Colour, ...],
) -> None:
    """Dots that grow towards the viewer."""
    for _ in range(int(rng.integers(25, 45))):
        near = float(rng.random() ** 0.7)
        y = horizon + 4 + near * (SIZE - horizon - 5)
        colour = rgb(colours[int(rng.integers(len(colours)))]) * rgb(light.ground)
        canvas.circle(float(rng.uniform(0, SIZE)), y, 0.45 + 0.75 * near, colour)


def autumn(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    field, near = _perspective("soil", horizon, rng)
    blades = patch("grain", rng, len(field), SIDE)
    shade = 0.82 + 0.55 * (field - 0.5) + 0.3 * (blades - 0.5) * near + 0.2 * near
    warm = np.clip((field - 0.42) * 3, 0, 1)[..., None]
    colour = (rgb((0.72, 0.34, 0.12)) * (1 - warm) + rgb((0.88, 0.56, 0.16)) * warm) * shade[
        ..., None
    ]
    _lay(canvas, colour, light, 0.18 * (1 - near) ** 3)
    flowers(canvas, light, horizon, rng, ((0.8, 0.22, 0.1), (0.95, 0.7, 0.2), (0.6, 0.2, 0.1)))


def desert(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    field, near = _perspective("cloud", horizon, rng, 1.4)
    ripple = np.sin((near * 60 / (near + 0.4) * 3 + field * 26))
    shade = 0.92 + 0.42 * (field - 0.5) + 0.055 * ripple * near + 0.08 * near
    colour = rgb((0.95, 0.77, 0.46)) * shade[..., None]
    _lay(canvas, colour, light, 0.2 * (1 - near) ** 3)


def snow(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    field, near = _perspective("cloud", horizon, rng, 1.2)
    sparkle = patch("grain", rng, len(field), SIDE)
    shade = 1.0 + 0.32 * (field - 0.5) + 0.05 * (sparkle - 0.5) + 0.03 * near
    colour = rgb((0.90, 0.95, 1.0)) * shade[..., None]
    colour[..., 0] -= 0.16 * np.clip(0.5 - field, 0, 1)
    _lay(canvas, colour, light, 0.16 * (1 - near) ** 3)


def lavender(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Rows of lavender that run to a vanishing point."""
    field, near = _perspective("soil", horizon, rng)
    vanish = rng.uniform(0.3, 0.7) * SIDE
    across = (np.arange(SIDE) - vanish)[None] / (near + 0.12)
    row = 0.5 + 0.5 * np.sin(across / 13 + (field - 0.5) * 1.2)
    bloom = np.clip(row * 1.7 - 0.25, 0, 1)[..., None]
    bloom = bloom * near[..., None] ** 0.4 + 0.8 * (1 - near[..., None] ** 0.4)
    blades = patch("grain", rng, len(field), SIDE)
    shade = 0.85 + 0.4 * (field - 0.5) + 0.45 * (blades - 0.5) * near + 0.15 * near
    colour = (rgb((0.25, 0.36, 0.17)) * (1 - bloom) + rgb((0.60, 0.36, 0.84)) * bloom) * shade[
        ..., None
    ]
    _lay(canvas, colour, light, 0.2 * (1 - near) ** 3)


def sea(canvas: Canvas, light: Light, horizon: float, rng: np.random.Generator) -> None:
    """Waves that mirror the sky."""
    field, near = _perspective("soil", horizon, rng, 3.0)
    rows = len(field)
    swell = patch("cloud", rng, rows, SIDE)
    phase = 55 * near / (near + 0.35) * 2.2
    wave = np.sin(phase * 2.4 + (field - 0.5) * 5 + (swell - 0.5) * 9)
    deep = rgb((0.06, 0.34, 0.55)) * rgb(light.ground)
    mirrored = (
        mix(light.horizon, light.middle, 0.5) * (1 - near[..., None])
        + rgb(light.middle) * near[..., None]
    )
    colour = deep + (mirrored - deep) * np.float32(0.42)
    colour = colour * (1 + (0.13 * wave + 0.25 * (field - 0.5))[..., None])
    foam = np.clip((wave * 0.6 + (field - 0.5) * 2.4 - 0.72) * 3, 0, 1) * (0.1 + 0.35 * near)
    colour = colour + (mix(light.cloud, light.middle, 0.25) - colour) * foam[..., None]
    canvas.pixels[SIDE - rows :] = colour


GROUND_PAINTERS = {
    "meadow": meadow,
    "sea": sea,
    "desert": desert,
    "snow": snow,
    "autumn": autumn,
    "lavender": lavender,
}


def glitter(
    canvas: Canvas, light: Light, horizon: float, x: float, rng: np.random.Generator
) -> None:
    """The path of light that sun and moon lay on the water under column x."""
    first = int(horizon * SCALE)
    rows = SIDE - first
    near = np.linspace(0, 1, rows, dtype=np.float32)[:, None]
    across = np.abs(np.arange(SIDE) - x * SCALE)[None] / (6 + 22 * near)
    lines = np.sin(
        np.arange(rows)[:, None] / (1.1 + 1.6 * near) + (patch("cloud", rng, rows, SIDE) - 0.5) * 14
    )
    alpha = np.clip(1 - across, 0, 1) * np.clip(lines + 0.25, 0, 1) * 0.85
    canvas.blend(alpha.astype(np.float32), light.glow, first, 0)
