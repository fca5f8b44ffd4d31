"""Flat shapes on a supersampled image; coordinates are pixels of the finished image."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw

SIZE, SCALE = 256, 3
SIDE = SIZE * SCALE
CELLS = 16  # token cells per side
MASK = SIZE // 2  # side of the mask in which the subjects are recorded

Colour = tuple[float, float, float]
Points = list[tuple[float, float]]


def mix(a: Colour, b: Colour, share: float) -> Colour:
    return tuple(x + (y - x) * share for x, y in zip(a, b))  # type: ignore[return-value]


def mul(a: Colour, b: Colour) -> Colour:
    return tuple(x * y for x, y in zip(a, b))  # type: ignore[return-value]


def rgb8(colour: Colour) -> tuple[int, int, int]:
    return tuple(int(min(max(v, 0.0), 1.0) * 255 + 0.5) for v in colour)  # type: ignore[return-value]


def _strip(colours: np.ndarray) -> Image.Image:
    """An image one column wide of colours [N, 3] in 0..1."""
    return Image.fromarray((np.clip(colours, 0, 1) * 255 + 0.5).astype(np.uint8)[:, None])


@lru_cache(maxsize=512)
def _glow(radius: int, strength: float) -> Image.Image:
    y, x = np.mgrid[-1:1:128j, -1:1:128j]
    fall = np.clip(1 - np.hypot(x, y), 0, 1) ** 1.6
    mask = Image.fromarray((fall * 255 * strength + 0.5).astype(np.uint8))
    return mask.resize((2 * radius * SCALE, 2 * radius * SCALE), Image.BILINEAR)


class Canvas:
    """An image, and while `record` is set a mask of what is painted."""

    def __init__(self) -> None:
        self.image = Image.new("RGB", (SIDE, SIDE))
        self.draw = ImageDraw.Draw(self.image)
        self.mask = Image.new("L", (MASK, MASK))
        self.mask_draw = ImageDraw.Draw(self.mask)
        self.record = False

    def poly(self, points: Points, colour: Colour) -> None:
        self.draw.polygon([(x * SCALE, y * SCALE) for x, y in points], fill=rgb8(colour))
        if self.record:
            self.mask_draw.polygon([(x / 2, y / 2) for x, y in points], fill=255)

    def rect(self, x0: float, y0: float, x1: float, y1: float, colour: Colour) -> None:
        self.poly([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], colour)

    def ellipse(self, x: float, y: float, rx: float, ry: float, colour: Colour) -> None:
        box = [(x - rx) * SCALE, (y - ry) * SCALE, (x + rx) * SCALE, (y + ry) * SCALE]
        self.draw.ellipse(box, fill=rgb8(colour))
        if self.record:
            self.mask_draw.ellipse([v / 2 / SCALE for v in box], fill=255)

    def circle(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self.ellipse(x, y, radius, radius, colour)

    def arc(self, x: float, y: float, radius: float, width: float, colour: Colour) -> None:
        """The upper half of a ring."""
        box = [
            (x - radius) * SCALE,
            (y - radius) * SCALE,
            (x + radius) * SCALE,
            (y + radius) * SCALE,
        ]
        self.draw.arc(box, 180, 360, fill=rgb8(colour), width=int(width * SCALE))

    def pill(self, x0: float, x1: float, y: float, radius: float, colour: Colour) -> None:
        """A horizontal capsule."""
        box = [x0 * SCALE, (y - radius) * SCALE, x1 * SCALE, (y + radius) * SCALE]
        self.draw.rounded_rectangle(box, radius=radius * SCALE, fill=rgb8(colour))

    def gradient(self, points: Points, top: Colour, bottom: Colour) -> None:
        """A polygon whose colour runs from top to bottom over its height."""
        xs, ys = [p[0] * SCALE for p in points], [p[1] * SCALE for p in points]
        x0, x1 = max(int(min(xs)), 0), min(int(max(xs)) + 1, SIDE)
        y0, y1 = max(int(min(ys)), 0), min(int(max(ys)) + 1, SIDE)
        if x0 >= x1 or y0 >= y1:
            return
        mask = Image.new("L", (x1 - x0, y1 - y0))
        ImageDraw.Draw(mask).polygon([(x - x0, y - y0) for x, y in zip(xs, ys)], fill=255)
        share = np.linspace(0, 1, y1 - y0, dtype=np.float32)[:, None]
        colours = np.asarray(top, np.float32) * (1 - share) + np.asarray(bottom, np.float32) * share
        strip = _strip(colours).resize((x1 - x0, y1 - y0), Image.NEAREST)
        self.image.paste(strip, (x0, y0), mask)

    def sky(self, stops: list[tuple[float, Colour]], height: float) -> None:
        """A vertical gradient through colours at shares of the height."""
        t = np.linspace(0, 1, int(height * SCALE), dtype=np.float32)
        at = [share for share, _ in stops]
        colours = np.stack([np.interp(t, at, [c[i] for _, c in stops]) for i in range(3)], 1)
        self.image.paste(_strip(colours).resize((SIDE, len(t)), Image.NEAREST), (0, 0))

    def glow(self, x: float, y: float, radius: int, colour: Colour, strength: float) -> None:
        corner = (int((x - radius) * SCALE), int((y - radius) * SCALE))
        self.image.paste(rgb8(colour), corner, _glow(radius, strength))

    def veil(self, points: Points, colour: Colour, opacity: float) -> None:
        """A polygon of even opacity."""
        xs, ys = [p[0] * SCALE for p in points], [p[1] * SCALE for p in points]
        x0, x1 = max(int(min(xs)), 0), min(int(max(xs)) + 1, SIDE)
        y0, y1 = max(int(min(ys)), 0), min(int(max(ys)) + 1, SIDE)
        if x0 >= x1 or y0 >= y1:
            return
        mask = Image.new("L", (x1 - x0, y1 - y0))
        shape = [(x - x0, y - y0) for x, y in zip(xs, ys)]
        ImageDraw.Draw(mask).polygon(shape, fill=int(opacity * 255))
        self.image.paste(rgb8(colour), (x0, y0), mask)

    def haze(self, top: float, bottom: float, colour: Colour, opacity: float) -> None:
        """A horizontal veil that is densest in its middle."""
        rows = np.sin(np.linspace(0, np.pi, int((bottom - top) * SCALE))) * 255 * opacity
        mask = Image.fromarray(rows.astype(np.uint8)[:, None]).resize(
            (SIDE, len(rows)), Image.NEAREST
        )
        self.image.paste(rgb8(colour), (0, int(top * SCALE)), mask)

    def finish(self) -> np.ndarray:
        """uint8 [SIZE, SIZE, 3]."""
        return np.asarray(self.image.reduce(SCALE))

    def covered(self) -> np.ndarray:
        """fp [CELLS, CELLS]: the share of every token cell that was recorded."""
        n = MASK // CELLS
        return (np.asarray(self.mask) > 0).reshape(CELLS, n, CELLS, n).mean((1, 3))
