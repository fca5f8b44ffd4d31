"""Entries of a bundle of Emu3 or Emu3.5 besides the weights: ids by name, prompts, sizes, defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...emu3.config import Emu3Config
from .. import checkpoint
from ..chameleon.bundle import fed_after_prompt
from ..checkpoint import ExportError
from ..common import grid_entry, network_entries
from ..settings import Settings
from ..tokenizer_file import added_pieces, all_pieces, check_embedded, image_codes, read_tags
from .models import SHORTEST_TEXT, Model

CODE = re.compile(r"<\|visual token ([0-9]{6})\|>")
ROW_END = "<|extra_200|>"


@dataclass(frozen=True)
class Names:
    """A tokenizer's tags by what they are for, and the ids that images need."""

    where: Path
    tags: dict[str, str]
    ids: dict[str, int]  # of tags
    row_end: int
    first_image_id: int
    codes: int


def read_names(model: Model, tokenizer: Path, listed: Mapping[str, int], vocabulary: int) -> Names:
    """Names and ids by the tokenizer and by config.json's vocabulary_map.

    ExportError: a name is missing, or codes do not follow one another.
    """
    pieces, added = {**listed, **all_pieces(tokenizer)}, added_pieces(tokenizer)
    check_embedded(tokenizer, pieces, vocabulary)
    tags = read_tags(tokenizer.parent / "tokenizer_config.json", model.tags)
    for tag in (*tags.values(), ROW_END):
        if tag not in added:
            raise ExportError(
                f"{tokenizer}: no added token {tag}, expected {model.name}'s tokenizer"
            )
    codes = image_codes(tokenizer, pieces, CODE, "<|visual token 000000|>", model.name)
    ids = {name: added[tag] for name, tag in tags.items()}
    return Names(tokenizer, tags, ids, added[ROW_END], *codes)


def size_grid(
    model: Model, names: Names, width: int, height: int, downsample: int
) -> dict[str, Any]:
    """ExportError: there is no image of that size, or the published model was not trained on it."""
    if width % downsample or height % downsample:
        raise ExportError(f"size {width}x{height}: expected multiples of {downsample} pixels", 2)
    entry = grid_entry(width, height, downsample)
    if names.codes == model.codes:
        model.require_trained(entry)
    entry["row_end"] = [names.row_end]
    entry["after"] = [names.ids[name] for name in model.after]
    return entry


def prompt_entry(model: Model, names: Names, text_length: int) -> dict[str, Any]:
    """Tags are parts of the texts, in which the tokenizer finds them."""
    return {
        "kind": "tokens",
        "length": 1 + text_length,
        "align": "start",
        "prefix": [names.ids["bos_token"]],
        "text": model.text.format(**names.tags),
        "suffix": [],
        "unconditional": [names.ids["bos_token"]],
        "negative_text": model.negative_text.format(**names.tags),
        "negative_prompt": model.negative_prompt,
    }


def target_entries(
    model: Model, config: Emu3Config, names: Names, settings: Settings, downsample: int
) -> dict[str, Any]:
    """Manifest entries of the target. ExportError: a size is not trained, or an image does not fit."""
    grids = [size_grid(model, names, *size, downsample) for size in settings.sizes]
    longest = max(grids, key=fed_after_prompt)
    fed, wished, usual = (
        fed_after_prompt(longest),
        settings.text_length,
        model.published.text_length,
    )
    room = config.max_positions - fed - 1
    if room < (SHORTEST_TEXT if wished == usual else wished):
        raise ExportError(
            f"size {longest['width']}x{longest['height']} takes {fed} positions and its prompt "
            f"{1 + min(wished, usual)}, the model has {config.max_positions}",
            2,
        )
    text_length = min(wished, room)
    return {
        "prompt": prompt_entry(model, names, text_length),
        **network_entries(config, names.first_image_id, names.codes, 1 + text_length + fed),
        "grids": grids,
        "sampling": {**model.sampling, **settings.sampling},
        "tokenizer": {"kind": "bpe", "file": names.where.name, "max_length": text_length},
    }


def levels_note(folder: Path) -> str:
    """Names what the image processor makes of pixels where bundles differ; empty where they do not."""
    for file in (folder / "processor_config.json", folder / "preprocessor_config.json"):
        settings = checkpoint.read_json(file) if file.is_file() else {}
        settings = settings.get("image_processor", settings)
        for name in ("image_mean", "image_std"):
            value = settings.get(name, 0.5) if isinstance(settings, dict) else 0.5
            if value not in (0.5, [0.5] * 3):
                return f"note: {file.name}: {name} is {value}, images of a bundle are made with 0.5"
    return ""
