"""Exporter of GLM-Image's autoregressive stage: a folder of transformers to a bundle that generates codes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...glm_image.places import rotary_table
from ...transformer.codes_target import CodesTarget
from ...transformer.layer import Keep, Read, layer_shape
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    make_bundle,
    require_parts,
)
from ..mapped_target import add_target
from ..settings import read_settings
from .bundle import (
    LICENCE,
    PUBLISHED,
    grid_sides,
    prompt_entry,
    read_names,
    sampling_of,
    size_grid,
    target_entries,
    text_room,
)
from .weights import read_folder

NETWORK = "vision_language_encoder"  # folder of the published repository
TOKENIZERS = ("processor/tokenizer.json", "tokenizer.json", "../processor/tokenizer.json")


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "glm-image",
        help="GLM-Image's autoregressive stage: the published folder, or its vision_language_encoder",
        description="Writes a bundle from the published folder: weights, config.json, tokenizer. It has no image "
        "decoder: `generate --save-codes` writes the codes for the second stage.",
    )
    parser.set_defaults(run=run)
    add_model_options(
        parser,
        f"folder of GLM-Image, or its {NETWORK} (model_type glm_image)",
        "default: processor/tokenizer.json beside the network",
    )
    add_config_option(parser, '"sizes" (one, ["1024x1024"] by default), "text_length", "sampling"')
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model")
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    """Adds the target and what it reads."""
    settings = read_settings(options.config, PUBLISHED)
    if len(settings.sizes) > 1:
        sizes = ", ".join(f"{width}x{height}" for width, height in settings.sizes)
        raise ExportError(
            f"--config: got sizes {sizes}, expected one: rotations depend on it, export a bundle for each",
            2,
        )
    inner = options.model / NETWORK
    where = inner if inner.is_dir() else options.model
    folder = read_folder(where)
    tokenizer = options.tokenizer or find_tokenizer(options.model)
    config = folder.weights.config
    tags = read_names(tokenizer, folder.image_start, config.vocab_size)
    grid = size_grid(*settings.sizes[0], folder.codes)
    text_length = text_room(config, grid, settings.text_length)
    prompt = prompt_entry(tags, folder.image_start, text_length)
    sampling = {**sampling_of(where), **settings.sampling}
    bundle.entries.update(target_entries(config, folder.codes, prompt, grid, sampling, tokenizer))
    bundle.files[tokenizer.name] = tokenizer
    shape = layer_shape(config, qkv_bias=True, branch_norms=True)

    def make(positions: int, read: Read, keep: Keep) -> CodesTarget:
        table = rotary_table(config, prompt["length"], grid_sides(grid), positions)
        return CodesTarget(shape, config, 0, folder.codes, positions, read, keep, table)

    add_target(bundle, options, folder.weights, scratch, make)


def find_tokenizer(folder: Path) -> Path:
    """ExportError: there is none."""
    for name in TOKENIZERS:
        if (folder / name).is_file():
            return folder / name
    raise ExportError(f"{folder}: no tokenizer, expected {' or '.join(TOKENIZERS[:2])}")
