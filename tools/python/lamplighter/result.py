"""What comes of generating an image: the image, its codes, and what it cost."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image


@dataclass(frozen=True)
class Statistics:
    """Cost of one image."""

    tokens: int
    """Image tokens committed."""
    target_passes: int
    """Target passes, prefill included."""
    batch: int
    """Largest number of images in its batch."""
    step_compression: float
    """Tokens per target pass."""
    acceptance_length: float
    """Average tokens per cycle, bonus token included."""
    acceptance_lengths: list[int]
    """Tokens of every cycle, bonus token included; the prefill, which commits the first token, does not count."""
    drafted_by_depth: list[int]
    """Drafted tree nodes at depth 1, 2, ..."""
    accepted_by_depth: list[int]
    """How often the accepted path reached depth 1, 2, ..."""
    seconds: dict[str, float]
    """Wall-clock seconds of text, prefill, decode and image; draft, score, verify and commit are parts of decode."""


@dataclass(frozen=True)
class Description:
    """What a model says of an image."""

    text: str
    finish_reason: str
    """stop, or length where it has as many tokens as it may have."""
    prompt_tokens: int
    """Of the image, the question and what stands around them."""
    ids: list[int]
    """Of the text, by the tokenizer."""
    statistics: Statistics
    """Of text tokens in place of image tokens."""


@dataclass(frozen=True, repr=False)
class Result:
    """An image. Notebooks show it."""

    image: Image.Image
    """RGB."""
    codes: NDArray[np.int32]
    """Codebook indices, (rows, columns)."""
    statistics: Statistics
    tokens_per_pass: NDArray[np.int64]
    """For every token, how many tokens the target pass committed that committed it, (rows, columns)."""
    settings: dict[str, Any]
    """Everything that determines the image, as stored in image files: model, seed, method and its options, ..."""
    warnings: list[str]
    """What the model does not know of the prompt, or cut off: a line each."""

    def __repr__(self) -> str:
        width, height = self.image.size
        shown = {name: self.settings.get(name) for name in ("method", "seed", "prompt")}
        words = ", ".join(f"{name}={value!r}" for name, value in shown.items() if value is not None)
        return f"<Result {width}x{height}, S {self.statistics.step_compression:.2f}, {words}>"

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.image.save(file, "PNG")
        return file.getvalue()
