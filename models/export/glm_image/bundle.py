"""Entries of a GLM-Image bundle besides the weights: prompt, grid, sizes, defaults."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from ...glm_image.config import GlmImageConfig
from ..checkpoint import ExportError
from ..common import grid_entry, network_entries, sampling_entry
from ..config_file import Section
from ..settings import Settings
from ..tokenizer_file import added_pieces, all_pieces, check_embedded, read_tags

LICENCE = "MIT"
DOWNSAMPLE = 32  # pixels a side of a code, of the image that the second stage makes
PREVIEW_SIDE = 16  # of a square preview
# What tokenizer_config.json may call otherwise.
TAGS = {"grid_bos_token": "<sop>", "grid_eos_token": "<eop>", "bos_token": "<|dit_token_16384|>"}
TEXT_LENGTH = 1024  # most ids of a prompt's text, unless the positions leave fewer
SHORTEST_TEXT = 16  # a size that leaves fewer does not fit
PUBLISHED = Settings([(1024, 1024)], TEXT_LENGTH)
PUBLISHED_CODES = 16384  # models of other codes say in --config what they were trained on
LEAST_CODES, MOST_CODES = 24 * 36, 64 * 64  # of the published model's images
MOST_SHAPE = 4  # the longer side by the shorter one
# What the authors publish, and the best 50 ids, which transformers takes where a folder says nothing of them.
TEMPERATURE, TOP_P, TOP_K = 0.9, 0.75, 50


def preview_sides(rows: int, columns: int) -> tuple[int, int]:
    """Rows and columns of the smaller image in front of one, by transformers' arithmetic."""
    ratio = rows / columns
    return int(math.sqrt(ratio) * PREVIEW_SIDE), int(math.sqrt(1 / ratio) * PREVIEW_SIDE)


def size_grid(width: int, height: int, codes: int) -> dict[str, Any]:
    """ExportError: there is no image of that size, or the published model was not trained on it."""
    if width % DOWNSAMPLE or height % DOWNSAMPLE:
        raise ExportError(f"size {width}x{height}: expected multiples of {DOWNSAMPLE} pixels", 2)
    entry = grid_entry(width, height, DOWNSAMPLE)
    if codes == PUBLISHED_CODES:
        require_trained(entry)
    rows, columns = preview_sides(entry["rows"], entry["columns"])
    if not rows or not columns:
        raise ExportError(f"size {width}x{height}: is too long for a preview", 2)
    entry["preview"] = {"rows": rows, "columns": columns}
    return entry


def require_trained(grid: dict[str, Any]) -> None:
    """ExportError: the area or the shape is none that the model was trained on."""
    rows, columns = grid["rows"], grid["columns"]
    fits = LEAST_CODES <= rows * columns <= MOST_CODES
    if not fits or max(rows, columns) > MOST_SHAPE * min(rows, columns):
        raise ExportError(
            f"size {grid['width']}x{grid['height']}: has {rows} x {columns} codes, the model was trained "
            f"on {LEAST_CODES} to {MOST_CODES} (768x1152 to 2048x2048 pixels) of shapes up to {MOST_SHAPE}:1",
            2,
        )


def grid_sides(grid: dict[str, Any]) -> list[tuple[int, int]]:
    """Rows and columns of both images of a grid, in the order of generation."""
    preview = grid["preview"]
    return [(preview["rows"], preview["columns"]), (grid["rows"], grid["columns"])]


def prompt_entry(tags: dict[str, str], image_start: int, text_length: int) -> dict[str, Any]:
    """Both sizes stand behind the caption, the large one first, though it is generated last."""
    begin, end = tags["grid_bos_token"], tags["grid_eos_token"]
    sides = ("{rows} {columns}", "{preview_rows} {preview_columns}")
    text = "{prompt}" + "".join(f"{begin}{side}{end}" for side in sides)
    return {
        "kind": "tokens",
        "length": text_length + 1,
        "align": "end",
        "prefix": [],
        "text": text,
        "suffix": [image_start],
        "unconditional": [],
        "negative_text": text,
        "negative_prompt": "",
    }


def sampling_of(folder: Path) -> dict[str, Any]:
    """The folder's defaults for generating, and transformers' where it has none."""
    file = folder / "generation_config.json"
    given = (
        Section.read(file)
        if file.is_file()
        else Section({"temperature": TEMPERATURE, "top_p": TOP_P}, "")
    )
    top_k = given.integer("top_k", TOP_K, least=0)
    return sampling_entry(1.0, top_k) | {
        "temperature": given.number("temperature", 1e6, 1.0),
        "top_p": given.number("top_p", 1.0, 1.0),
    }


def read_names(tokenizer: Path, image_start: int, vocabulary: int) -> dict[str, str]:
    """Texts of the tags. ExportError: one is missing, or the tokenizer belongs to another model."""
    pieces, added = all_pieces(tokenizer), added_pieces(tokenizer)
    check_embedded(tokenizer, pieces, vocabulary)
    tags = read_tags(tokenizer.parent / "tokenizer_config.json", TAGS)
    for tag in tags.values():
        if tag not in added:
            raise ExportError(f"{tokenizer}: no added token {tag}, expected GLM-Image's tokenizer")
    if added[tags["bos_token"]] != image_start:
        raise ExportError(
            f"{tokenizer}: {tags['bos_token']} has id {added[tags['bos_token']]}, expected "
            f"image_start_token_id {image_start}"
        )
    return tags


def target_entries(
    config: GlmImageConfig,
    codes: int,
    prompt: dict[str, Any],
    grid: dict[str, Any],
    sampling: dict[str, Any],
    tokenizer: Path,
) -> dict[str, Any]:
    """Manifest entries of the target."""
    fed = sum(rows * columns for rows, columns in grid_sides(grid))
    return {
        "prompt": prompt,
        **network_entries(config, 0, codes, prompt["length"] + fed),
        "grids": [grid],
        "sampling": sampling,
        "tokenizer": {"kind": "bpe", "file": tokenizer.name, "max_length": prompt["length"] - 1},
    }


def text_room(config: GlmImageConfig, grid: dict[str, Any], wished: int) -> int:
    """Most ids of a text. ExportError: an image and its prompt do not fit the model's positions."""
    sides = grid_sides(grid)
    room = config.max_positions - 1 - sum(max(side) for side in sides)
    if room < (SHORTEST_TEXT if wished == TEXT_LENGTH else wished):
        raise ExportError(
            f"size {grid['width']}x{grid['height']} and its prompt of {wished} ids do not fit the model's "
            f"{config.max_positions} positions",
            2,
        )
    return min(wished, room)
