"""Exporter of Tar's language model: a published folder to a bundle that generates codes."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...simplear.target_module import TargetModule
from ...transformer.layer import Keep, Read
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    add_tokenizer,
    make_bundle,
    require_parts,
)
from ..config_file import Section
from ..mapped_target import add_target
from ..settings import read_settings
from ..simplear.bundle import repetition_note
from ..simplear.tokenizer import read_tokenizer
from ..simplear.weights import read_folder
from .bundle import LICENCE, PUBLISHED, read_names, target_entries

MODEL_TYPES = ("qwen2", "llava_qwen")


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "tar",
        help="Tar's language model, a folder as published",
        description="Writes a bundle from a published folder: weights, config.json, tokenizer. It has no image "
        "decoder: `generate --save-codes` writes the codes for the de-tokenizer.",
    )
    parser.set_defaults(run=run)
    add_model_options(parser, "folder of the language model", tokenizer=None)
    add_config_option(
        parser,
        '"sizes" (some of ["378x378", "182x182", "126x126"]; default: all), "text_length", "sampling"',
    )
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model")
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    """Adds the target and what it reads."""
    settings = read_settings(options.config, PUBLISHED)
    weights = read_folder(options.model, MODEL_TYPES)
    tokenizer = read_tokenizer(options.model, scratch)
    description = Section.read(options.model / "config.json")
    names = read_names(tokenizer, description, weights.config.vocab_size)
    bundle.entries.update(target_entries(weights.config, names, settings))
    add_tokenizer(bundle, tokenizer, settings.text_length)
    if note := repetition_note(options.model):
        bundle.log(note)

    def make(positions: int, read: Read, keep: Keep) -> TargetModule:
        return TargetModule(weights.config, names.codes, positions, read, keep)

    add_target(bundle, options, weights, scratch, make)
