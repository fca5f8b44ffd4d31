"""What --config of an exporter may say of sizes, texts and sampling."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import checkpoint
from .checkpoint import ExportError
from .common import parse_sizes


@dataclass
class Settings:
    sizes: list[tuple[int, int]]  # pixels
    text_length: int  # most ids of a prompt
    sampling: dict[str, Any] = field(default_factory=dict)


def read_settings(path: Path | None, published: Settings) -> Settings:
    """`published`, with what the file says in its place. ExportError: it says what is not known."""
    value = checkpoint.read_json(path) if path else {}
    known = list(vars(published))
    unknown = sorted(set(value) - set(known))
    if unknown:
        raise ExportError(f"{path}: unknown key {unknown[0]}, expected {', '.join(known)}", 2)
    settings = Settings(**vars(published))
    try:
        if "sizes" in value:
            settings.sizes = parse_sizes(",".join(value["sizes"]))
        settings.text_length = int(value.get("text_length", settings.text_length))
        settings.sampling = dict(value.get("sampling", settings.sampling))
    except (TypeError, ValueError) as error:
        raise ExportError(f"{path}: {error}", 2) from error
    return settings


def require_trained(settings: Settings, published: Settings) -> None:
    """ExportError: a size that the published models were not trained on, which they draw as noise."""
    for width, height in settings.sizes:
        if (width, height) not in published.sizes:
            trained = ", ".join(f"{w}x{h}" for w, h in published.sizes)
            raise ExportError(f"size {width}x{height}: the model was trained on {trained} alone", 2)
