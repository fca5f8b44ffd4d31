"""Painting primitives: a supersampled canvas, shaded shapes, and tileable noise."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

SIZE = 128
SCALE = 2  # supersampling
SIDE = SIZE * SCALE
NOISE = 512

Colour = tuple[float, float, float] | np.ndarray


def rgb(colour: Colour) -> np.ndarray:
    return np.asarray(colour, np.float32)


def mix(a: Colour, b: Colour, share: float) -> np.ndarray:
    """a where share is 0, b where it is 1."""
    return rgb(a) * np.float32(1 - share) + rgb(b) * np.float32(share)


@lru_cache(maxsize=None)
def noise(kind: str) -> np.ndarray:
    """float32 [512, 512], tileable, in [0, 1]: "cloud" (1/f^1.6), "soil" (1/f) or "grain" (white)."""
    power = {"cloud": 1.7, "soil": 1.0, "grain": 0.3}[kind]
    rng = np.random.default_rng(len(kind) * 1000 + ord(kind[0]))
    y, x = np.meshgrid(np.fft.fftfreq(NOISE), np.fft.fftfreq(NOISE), indexing="ij")
    radius = np.maximum(np.hypot(x, y), 1 / NOISE)
    spectrum = np.fft.fft2(rng.standard_normal((NOISE, NOISE))) / radius**power
    spectrum[0, 0] = 0
    field = np.fft.ifft2(spectrum).real
    ranks = np.clip(0.5 + field / field.std() * 0.22, 0, 1)
    return ranks.astype(np.float32)


def patch(kind: str, rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random crop [rows, columns] of the noise (at most 512 each)."""
    top, left = rng.integers(NOISE, size=2)
    ys = (np.arange(rows) + top) % NOISE
    xs = (np.arange(columns) + left) % NOISE
    return noise(kind)[np.ix_(ys, xs)]


def profile(rng: np.random.Generator, kind: str = "cloud") -> np.ndarray:
    """A random smooth line, float32 [SIDE] in [0, 1]."""
    return patch(kind, rng, 1, SIDE)[0]


class Canvas:
    """A float32 [SIDE, SIDE, 3] picture with shapes given in units of final pixels.

    While `record` is set, everything that shapes cover is added to `mask`.
    """

    def __init__(self) -> None:
        self.pixels = np.zeros((SIDE, SIDE, 3), np.float32)
        self.mask = np.zeros((SIDE, SIDE), bool)
        self.record = False

    def blend(self, alpha: np.ndarray, colour: Colour | np.ndarray, top: int, left: int) -> None:
        """Lays colour ([3] or [h, w, 3]) with opacity alpha [h, w] at row top, column left."""
        y0, x0 = max(top, 0), max(left, 0)
        y1, x1 = min(top + alpha.shape[0], SIDE), min(left + alpha.shape[1], SIDE)
        if y0 >= y1 or x0 >= x1:
            return
        part = np.s_[y0 - top : y1 - top, x0 - left : x1 - left]
        opacity = alpha[part][..., None]
        colour = rgb(colour)
        colour = colour[part] if colour.ndim == 3 else colour
        area = self.pixels[y0:y1, x0:x1]
        area += (colour - area) * opacity
        if self.record:
            self.mask[y0:y1, x0:x1] |= alpha[part] > 0.4

    def shape(
        self,
        points: list[tuple[float, float]],
        colour: Colour,
        shade: tuple[float, float] = (1.0, 1.0),
        fall: float = 0.0,
        ellipse: bool = False,
        blur: float = 0.0,
        opacity: float = 1.0,
    ) -> None:
        """A polygon, or the ellipse in the box of two points.

        shade: brightness at the left and right edge; fall: darkening towards the bottom.
        """
        scaled = [(x * SCALE, y * SCALE) for x, y in points]
        xs, ys = [p[0] for p in scaled], [p[1] for p in scaled]
        margin = int(3 * blur * SCALE) + 2
        left, top = int(min(xs)) - margin, int(min(ys)) - margin
        width, height = int(max(xs)) + margin - left, int(max(ys)) + margin - top
        image = Image.new("L", (width, height))
        local = [(x - left, y - top) for x, y in scaled]
        draw = ImageDraw.Draw(image)
        if ellipse:
            draw.ellipse([local[0], local[1]], fill=255)
        else:
            draw.polygon(local, fill=255)
        if blur:
            image = image.filter(ImageFilter.GaussianBlur(blur * SCALE))
        alpha = np.asarray(image, np.float32) * np.float32(opacity / 255)
        light = np.linspace(shade[0], shade[1], width, dtype=np.float32)[None, :]
        if fall:
            light = light * np.linspace(1, 1 - fall, height, dtype=np.float32)[:, None]
        if shade != (1.0, 1.0) or fall:
            self.blend(alpha, rgb(colour) * light[..., None], top, left)
        else:
            self.blend(alpha, colour, top, left)

    def circle(self, x: float, y: float, radius: float, colour: Colour, **options) -> None:
        self.shape(
            [(x - radius, y - radius), (x + radius, y + radius)], colour, ellipse=True, **options
        )

    def glow(self, x: float, y: float, radius: float, colour: Colour, strength: float) -> None:
        """Adds light that falls off smoothly to nothing at the radius."""
        r = int(radius * SCALE)
        cx, cy = int(x * SCALE), int(y * SCALE)
        y0, y1, x0, x1 = max(cy - r, 0), min(cy + r, SIDE), max(cx - r, 0), min(cx + r, SIDE)
        if y0 >= y1 or x0 >= x1:
            return
        dy = (np.arange(y0, y1, dtype=np.float32) - cy) / r
        dx = (np.arange(x0, x1, dtype=np.float32) - cx) / r
        fall = np.maximum(1 - (dy[:, None] ** 2 + dx[None] ** 2), 0) ** 3 * np.float32(strength)
        area = self.pixels[y0:y1, x0:x1]
        area += fall[..., None] * rgb(colour) * (1.05 - area)

    def finish(self) -> np.ndarray:
        """uint8 [SIZE, SIZE, 3]."""
        small = self.pixels.reshape(SIZE, SCALE, SIZE, SCALE, 3).mean((1, 3))
        return (np.clip(small, 0, 1) * 255 + 0.5).astype(np.uint8)
