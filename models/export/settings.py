"""Reads --config of an exporter: sizes, texts and sampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .checkpoint import ExportError
from .common import parse_sizes
from .config_file import Section

MOST_TEXT = 1 << 16  # ids of a prompt


@dataclass
class Settings:
    sizes: list[tuple[int, int]]  # pixels
    text_length: int  # most ids of a prompt
    sampling: dict[str, Any] = field(default_factory=dict)


def read_settings(path: Path | None, published: Settings) -> Settings:
    """`published`, replaced by what the file gives. ExportError: the file has an unknown key."""
    if path is None:
        return Settings(**vars(published))
    given = Section.read(path, 2)
    given.known(list(vars(published)))
    return Settings(
        read_sizes(given) or published.sizes,
        given.integer("text_length", published.text_length, most=MOST_TEXT),
        dict(given.section("sampling").values if "sampling" in given else published.sampling),
    )


def read_sizes(given: Section) -> list[tuple[int, int]] | None:
    """Sizes in pixels of a key `sizes`, if there is one."""
    if "sizes" not in given:
        return None
    texts = given.values["sizes"]
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise given.error("sizes", 'a list such as ["768x768"]')
    return parse_sizes(",".join(texts), f"{given.where}: {given.prefix}sizes")


def require_trained(settings: Settings, published: Settings) -> None:
    """ExportError: a size that the published models were not trained on, which they generate as noise."""
    for width, height in settings.sizes:
        if (width, height) not in published.sizes:
            trained = ", ".join(f"{w}x{h}" for w, h in published.sizes)
            raise ExportError(f"size {width}x{height}: the model was trained on {trained} alone", 2)
