"""Entries of a Tar bundle besides the weights: ids by name, prompts, sizes, defaults."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...simplear.config import ImageIds, SimpleARConfig
from ..checkpoint import ExportError
from ..common import fitted_grids, network_entries, sampling_entry
from ..config_file import Section
from ..settings import Settings, require_trained
from ..tokenizer_file import added_pieces, all_pieces, check_embedded, image_codes

LICENCE = "see the model card (code: Apache-2.0)"
DOWNSAMPLE = 14  # pixels a side of a code, of the images that TA-Tok reads
CODE, SCALE = re.compile(r"<I([0-9]+)>"), re.compile(r"<S([0-9]+)>")
CHAT = ("<|im_start|>", "<|im_end|>")
IMAGE_START = "<im_start>"
TEXT = (
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
    f"<|im_start|>assistant\n{IMAGE_START}"
)
TEXT_LENGTH = 1024  # most ids of a prompt, the chat's included
SIDES = (27, 13, 9)  # codes a side of the published scales, finest first
PUBLISHED = Settings([(DOWNSAMPLE * side, DOWNSAMPLE * side) for side in SIDES], TEXT_LENGTH)
PUBLISHED_CODES = 65536  # models of other codes say in --config what they were trained on
SAMPLING = sampling_entry(1.0, 1200) | {"top_p": 0.95}  # the published script's
# Keys of config.json that say again what the tokenizer's names do.
FIRST_CODE, FIRST_SCALE = "image_start_token_id", "scale_start_token_id"


@dataclass(frozen=True)
class Names:
    """A tokenizer's ids that images need."""

    codes: ImageIds
    scales: tuple[int, ...]  # an id in front of the codes, by how coarse these are


def read_names(tokenizer: Path, settings: Section, vocabulary: int) -> Names:
    """ExportError: a name is missing, or ids contradict each other or config.json."""
    pieces, added = all_pieces(tokenizer), added_pieces(tokenizer)
    check_embedded(tokenizer, pieces, vocabulary)
    for tag in (*CHAT, IMAGE_START):
        if tag not in added:
            raise ExportError(f"{tokenizer}: no added token {tag}, expected Tar's tokenizer")
    first, count = image_codes(tokenizer, added, CODE, "<I0>", "Tar")
    scale, scales = image_codes(tokenizer, added, SCALE, "<S0>", "Tar")
    settings.fixed({FIRST_CODE: first, FIRST_SCALE: scale})
    return Names(ImageIds(first, count), tuple(range(scale, scale + scales)))


def scaled_grids(grids: list[dict[str, Any]], names: Names) -> list[dict[str, Any]]:
    """The grids, each with the id of its scale in front: the finest one's side over 1, 2, ...

    ExportError: a side is none of these.
    """
    finest = max(grid["rows"] for grid in grids)
    if names.codes.count == PUBLISHED_CODES:
        finest = SIDES[0]
    scales = {
        finest // (number + 1): scale for number, scale in reversed([*enumerate(names.scales)])
    }
    for grid in grids:
        side = grid["rows"]
        if side != grid["columns"] or side not in scales:
            raise ExportError(
                f"size {grid['width']}x{grid['height']}: has {side} x {grid['columns']} codes, expected squares "
                f"of {', '.join(map(str, sorted(scales, reverse=True)))} a side",
                2,
            )
        grid["before"] = [scales[side]]
    return grids


def prompt_entry(text_length: int) -> dict[str, Any]:
    """Tags are parts of the text, in which the tokenizer finds them; a grid's scale stands behind it."""
    return {
        "kind": "tokens",
        "length": 1 + text_length,
        "align": "start",
        "prefix": [],
        "text": TEXT,
        "suffix": [],
        "unconditional": [],
        "negative_text": TEXT,
        "negative_prompt": "",
    }


def target_entries(config: SimpleARConfig, names: Names, settings: Settings) -> dict[str, Any]:
    """Manifest entries of the target. ExportError: a size is not trained, or an image does not fit."""
    if names.codes.count == PUBLISHED_CODES:
        require_trained(settings, PUBLISHED)
    prompt = prompt_entry(settings.text_length)
    grids, length = fitted_grids(config.max_positions, settings.sizes, DOWNSAMPLE, prompt["length"])
    return {
        "prompt": prompt,
        **network_entries(config, names.codes.first, names.codes.count, length),
        "grids": scaled_grids(grids, names),
        "sampling": {**SAMPLING, **settings.sampling},
    }
