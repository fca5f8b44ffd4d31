"""Reads --config of an exporter: sizes, texts and sampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .checkpoint import ExportError
from .common import parse_sizes
from .config_file import Section

MOST_TEXT = 1 << 16  # ids of a prompt
MOST_FACTOR = 1e6  # as in src/bundle/manifest/generation.cpp
SCHEDULES = ("constant", "linear", "decay")


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
        read_sampling(given) if "sampling" in given else dict(published.sampling),
    )


def read_sampling(given: Section) -> dict[str, Any]:
    """The manifest's entries of a key `sampling`; null stands for the family's own value."""
    if "sampling" not in given:
        return {}
    return checked_sampling(given.section("sampling"))


def checked_sampling(given: Section) -> dict[str, Any]:
    """ExportError: a value is none that the engine takes."""
    given.known(["cfg_scale", "temperature", "top_k", "top_p", "order", "schedule"])
    for name in ("cfg_scale", "temperature"):
        check_number(given, name, 0, MOST_FACTOR)
    given.integer("top_k", 0, least=0)
    check_number(given, "top_p", 0, 1, above=True)
    check_choice(given, "order", ("ar", "eagle"))
    if "schedule" in given:
        check_schedule(given.section("schedule"))
    return {name: value for name, value in given.values.items() if value is not None}


def check_schedule(given: Section) -> None:
    if "kind" not in given:
        raise given.error("kind", f"one of {', '.join(SCHEDULES)}")
    check_choice(given, "kind", SCHEDULES)
    if given.values["kind"] != "decay":
        given.known(["kind"])
        return
    given.known(["kind", "floor", "share", "raise"])
    if "floor" not in given:
        raise given.error("floor", f"a number from 1 to {MOST_FACTOR:g}")
    check_number(given, "floor", 1, MOST_FACTOR)
    check_number(given, "share", 0, MOST_FACTOR, above=True)
    given.flag("raise", False)


def check_choice(given: Section, name: str, choices: tuple[str, ...]) -> None:
    if name in given and given.values[name] not in choices:
        raise given.error(name, f"one of {', '.join(choices)}")


def check_number(given: Section, name: str, least: float, most: float, above: bool = False) -> None:
    """above: `least` itself is none."""
    value = given.values.get(name)
    if value is None:
        return
    fits = type(value) in (int, float) and least <= value <= most
    if not fits or (above and value == least):
        bounds = f"above {least:g}, at most {most:g}" if above else f"from {least:g} to {most:g}"
        raise given.error(name, f"a number {bounds}")


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
