"""Entries of a Janus-Pro bundle besides the weights: prompt, ids by name, sizes, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...janus.config import JanusConfig
from .. import checkpoint
from ..checkpoint import ExportError
from ..common import fitted_grids, network_entries, sampling_entry
from ..settings import Settings, require_trained
from ..tokenizer_file import all_pieces, check_embedded

LICENCE = "DeepSeek License Agreement (model), with its restrictions of use"
ROLES = ("<|User|>", "<|Assistant|>")  # Janus-Pro's; the first Janus has User, Assistant
BOS = "<｜begin▁of▁sentence｜>"
PAD = "<｜▁pad▁｜>"
BEGIN_OF_IMAGE = "<begin_of_image>"
TEXT_LENGTH = 256  # most ids of a caption with its roles
TRAINED_SIZE = 384  # pixels a side
PUBLISHED_CODES = 16384  # models of other codes say in --config what they were trained on
PUBLISHED = Settings([(TRAINED_SIZE, TRAINED_SIZE)], TEXT_LENGTH)
SAMPLING = sampling_entry(5.0, 0)  # the published script's


def read_tags(tokenizer: Path, text_ids: int) -> dict[str, int]:
    """Ids of the tags that prompts need, by their names: they differ between the published models."""
    pieces = all_pieces(tokenizer)
    check_embedded(tokenizer, pieces, text_ids)
    for tag in (BOS, PAD, BEGIN_OF_IMAGE):
        if tag not in pieces:
            raise ExportError(f"{tokenizer}: no token {tag}, expected a tokenizer of Janus-Pro")
    return {tag: pieces[tag] for tag in (BOS, PAD, BEGIN_OF_IMAGE)}


def check_processor(folder: Path) -> None:
    """The template of prompts is that of sft_format deepseek."""
    file = folder / "processor_config.json"
    settings: Mapping[str, Any] = checkpoint.read_json(file) if file.is_file() else {}
    template = settings.get("sft_format", "deepseek")
    if template != "deepseek":
        raise ExportError(f"{file}: sft_format is {template}, expected deepseek")


def prompt_entry(
    tags: Mapping[str, int], roles: tuple[str, str], text_length: int
) -> dict[str, Any]:
    """Begin of sentence, both roles around the caption, begin of image.

    The unconditional rows have as many ids: all but the first and the last one are padding, which
    the model sees as it sees any other id.
    """
    user, assistant = roles
    return {
        "kind": "tokens",
        "length": text_length + 2,
        "align": "start",
        "prefix": [tags[BOS]],
        "text": f"{user}: {{prompt}}\n\n{assistant}:",
        "empty_text": f"{user}:{assistant}:",
        "strip": True,
        "suffix": [tags[BEGIN_OF_IMAGE]],
        "unconditional": [tags[BOS]],
        "unconditional_pad": tags[PAD],
    }


def target_entries(
    config: JanusConfig, settings: Settings, prompt: Mapping[str, Any], downsample: int
) -> dict[str, Any]:
    """Manifest entries of the target. ExportError: a size is not trained, or an image does not fit."""
    if config.codes == PUBLISHED_CODES:
        require_trained(settings, PUBLISHED)
    grids, length = fitted_grids(config.max_positions, settings.sizes, downsample, prompt["length"])
    entries = network_entries(config, config.text_ids, config.codes, length)
    entries["target"]["head_layers"] = 2
    return {
        "prompt": dict(prompt),
        **entries,
        "grids": grids,
        "sampling": {**SAMPLING, **settings.sampling},
    }
