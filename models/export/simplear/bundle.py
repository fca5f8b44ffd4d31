"""Entries of a SimpleAR bundle besides the weights: prompts, ids by the tokenizer, sizes, defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...cosmos.decoder import CosmosConfig
from ...simplear.config import ImageIds, SimpleARConfig
from .. import checkpoint
from ..checkpoint import ExportError
from ..common import fitted_grids, network_entries, sampling_entry
from ..settings import Settings, require_trained
from ..tokenizer_file import all_pieces

LICENCE = "see the model card (code: MIT); NVIDIA Open Model License (Cosmos decoder)"
BEGIN, END = "<|t2i|>", "<|soi|>"  # around the text of a prompt
TEXT = f"{BEGIN}A highly realistic image of {{prompt}}{END}"
NEGATIVE_TEXT = f"{BEGIN}An image of {{prompt}}{END}"
NEGATIVE_PROMPT = (
    "aerial view, overexposed, low quality, deformation, a poor composition, bad hands, bad teeth, "
    "bad eyes, bad limbs, distortion"
)
TEXT_LENGTH = 512  # most ids of a prompt
SIDES = (1024, 768, 512, 256)  # pixels of the stages of training; the first is the default
PUBLISHED = Settings([(side, side) for side in SIDES], TEXT_LENGTH)
CFG_SCALE, TOP_K = 6.0, 64000  # the published script's


def image_ids(file: Path, vocabulary: int, codes: int, full_head: bool = False) -> ImageIds:
    """Codes follow the ids of a tokenizer.json, as many as the vocabulary has; `codes`: of the decoder."""
    where, pieces = str(file), all_pieces(file)
    text = len(pieces)
    for piece, number in pieces.items():
        if number >= text:
            raise ExportError(f"{where}: {piece} has id {number}, expected 0 to {text - 1}")
    for tag in (BEGIN, END):
        if tag not in pieces:
            raise ExportError(f"{where}: no token {tag}, expected a tokenizer of SimpleAR")
    if not text < vocabulary <= text + codes:
        raise ExportError(
            f"{where}: has {text} ids, the model {vocabulary}: expected 1 to {codes} more for codes"
        )
    return ImageIds(text, vocabulary - text, full_head)


def prompt_entry(text_length: int) -> dict[str, Any]:
    """Tags are parts of the texts, in which the tokenizer finds them."""
    return {
        "kind": "tokens",
        "length": text_length,
        "align": "start",
        "prefix": [],
        "text": TEXT,
        "suffix": [],
        "unconditional": [],
        "negative_text": NEGATIVE_TEXT,
        "negative_prompt": NEGATIVE_PROMPT,
    }


def target_entries(config: SimpleARConfig, ids: ImageIds, settings: Settings) -> dict[str, Any]:
    """Manifest entries of the target. ExportError: a size is not trained, or an image does not fit."""
    downsample, text_length = CosmosConfig().downsample, settings.text_length
    if config.vocab_size - ids.text == CosmosConfig().codes:
        require_trained(settings, PUBLISHED)  # models of other codes say what they were trained on
    grids, length = fitted_grids(config.max_positions, settings.sizes, downsample, text_length)
    top_k = TOP_K if ids.count > TOP_K else 0  # else it keeps all
    return {
        "prompt": prompt_entry(text_length),
        **network_entries(config, ids.first, ids.count, length),
        "grids": grids,
        "sampling": {**sampling_entry(CFG_SCALE, top_k), **settings.sampling},
    }


def repetition_note(folder: Path) -> str:
    """Names settings of generation_config.json that the engine lacks; empty where there are none."""
    file = folder / "generation_config.json"
    penalty = checkpoint.read_json(file).get("repetition_penalty", 1.0) if file.is_file() else 1.0
    if penalty in (None, 1.0):
        return ""
    return f"note: {file.name} asks for a repetition penalty of {penalty}, which is not applied"
