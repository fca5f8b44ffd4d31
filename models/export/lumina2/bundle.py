"""Entries of a Lumina-mGPT 2.0 bundle besides the weights: ids by name, prompt, sizes, guidance."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...chameleon.config import ChameleonConfig
from .. import checkpoint
from ..chameleon.bundle import fed_after_prompt
from ..checkpoint import ExportError
from ..common import grid_entry, network_entries, sampling_entry
from ..config_file import Section
from ..tokenizer_file import all_pieces, check_embedded, check_ids, image_codes

LICENCE = "see Alpha-VLLM/Lumina-mGPT-2.0 and ai-forever/MoVQGAN (code: Apache License 2.0)"
TEXT = (
    "Generate an image of {width}x{height} according to the following prompt:\n"
    "{prompt}<reserved08706>"
)
BEGIN_OF_IMAGE, END_OF_IMAGE, ROW_END = "<racm3:break>", "<eoss>", "<reserved08799>"
SIZE_BASE = 8800  # <reserved08800 + n> stands for 32 n pixels
STEP = 32  # pixels of a size token's unit
CODE = re.compile(r"<MOVQGAN([0-9]{1,9})>")
SIZES = ((768, 768),)
TEXT_LENGTH = 256  # most ids of the text with the caption, unless the positions leave fewer
SHORTEST_TEXT = 64  # a size that leaves fewer does not fit
# The official solver lets the scale decay to 4 over a quarter of the codes, because it counts half of
# an image's rows and columns, and raises smaller scales to 4.
SCHEDULE = {"kind": "decay", "floor": 4.0}
OFFICIAL_SCHEDULE = {**SCHEDULE, "share": 0.25, "raise": True}
SAMPLING = sampling_entry(4.0, 4096)  # the published call's


@dataclass(frozen=True)
class Names:
    """Ids of a tokenizer by name."""

    where: Path
    pieces: dict[str, int]
    bos: int
    first_image_id: int
    codes: int

    def __getitem__(self, name: str) -> int:
        if name not in self.pieces:
            raise ExportError(
                f"{self.where}: no token {name}, expected Lumina-mGPT 2.0's tokenizer"
            )
        return self.pieces[name]


def read_names(model: Path, tokenizer: Path, vocabulary: int) -> Names:
    """Names and ids of a published folder, by the tokenizer and by config.json's vocabulary_map.

    ExportError: a name is missing, or codes do not follow one another.
    """
    config = Section.read(model / "config.json")
    listed = config.section("vocabulary_map").values if "vocabulary_map" in config else {}
    check_ids(model / "config.json", dict(listed))
    pieces = {**listed, **all_pieces(tokenizer)}
    check_embedded(tokenizer, pieces, vocabulary)
    codes = image_codes(tokenizer, pieces, CODE, "<MOVQGAN00000>", "Lumina-mGPT 2.0")
    bos = bos_piece(tokenizer.parent / "tokenizer_config.json", model / "tokenizer_config.json")
    if bos not in pieces:
        raise ExportError(f"{tokenizer}: no token {bos}, which begins prompts")
    return Names(tokenizer, pieces, pieces[bos], *codes)


def bos_piece(*files: Path) -> str:
    """The first token of prompts: Qwen's tokenizers have no bos token, and the solver then takes eos."""
    file = next((file for file in files if file.is_file()), files[0])
    settings = checkpoint.read_json(file)
    for name in ("bos_token", "eos_token"):
        piece = settings.get(name)
        piece = piece.get("content") if isinstance(piece, dict) else piece
        if isinstance(piece, str):
            return piece
    raise ExportError(
        f"{file}: neither bos_token nor eos_token, expected one to begin prompts with"
    )


def size_name(pixels: int) -> str:
    return f"<reserved{SIZE_BASE + pixels // STEP:05d}>"


def size_grid(names: Names, width: int, height: int, downsample: int) -> dict[str, Any]:
    """ExportError: there is no image of that size."""
    if width % STEP or height % STEP:
        raise ExportError(f"size {width}x{height}: expected multiples of {STEP} pixels", 2)
    sizes = [size_name(pixels) for pixels in (height, width)]
    if missing := [name for name in sizes if name not in names.pieces]:
        raise ExportError(f"size {width}x{height}: the tokenizer has no token {missing[0]}", 2)
    entry = grid_entry(width, height, downsample)
    entry["before"] = [names[BEGIN_OF_IMAGE], *(names[name] for name in sizes)]
    entry["row_end"] = [names[ROW_END]]
    entry["after"] = [names[END_OF_IMAGE]]
    return entry


def target_entries(
    config: ChameleonConfig,
    names: Names,
    sizes: Sequence[tuple[int, int]],
    downsample: int,
    wished: int | None,
    schedule: dict[str, Any],
) -> dict[str, Any]:
    """Manifest entries of the target; wished: ids of a text. ExportError: an image does not fit."""
    grids = [size_grid(names, *size, downsample) for size in sizes]
    longest = max(grids, key=fed_after_prompt)
    fed, around = fed_after_prompt(longest), 1 + len(longest["before"])
    room = config.max_positions - around - fed
    text_length = wished or min(TEXT_LENGTH, room)
    if room < (wished or SHORTEST_TEXT):
        raise ExportError(
            f"size {longest['width']}x{longest['height']} takes {fed} positions and its prompt "
            f"{around + (wished or SHORTEST_TEXT)}, the model has {config.max_positions}",
            2,
        )
    length = around + text_length
    return {
        "prompt": {
            "kind": "tokens",
            "length": length,
            "align": "start",
            "prefix": [names.bos],
            "text": TEXT,
            "suffix": [],
            "unconditional": [],
        },
        **network_entries(config, names.first_image_id, names.codes, length + fed),
        "grids": grids,
        "sampling": {**SAMPLING, "schedule": schedule},
        "tokenizer": {"kind": "bpe", "file": names.where.name, "max_length": text_length},
    }
