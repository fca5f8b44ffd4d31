"""Exporter of SimpleAR: a published folder and Cosmos' decoder to a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...cosmos.decoder import CosmosConfig
from ...simplear.config import ImageIds
from ...simplear.target_module import TargetModule
from ...transformer.layer import Keep, Read
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    add_tokenizer,
    decoder_entry,
    make_bundle,
    require_parts,
)
from ..image_decoders.cosmos import cosmos_parts, load_cosmos
from ..mapped_target import add_target
from ..settings import read_settings
from .bundle import LICENCE, PUBLISHED, image_ids, repetition_note, target_entries
from .tokenizer import read_tokenizer
from .weights import Weights, read_folder


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "simplear",
        help="SimpleAR, a folder as published, with Cosmos' decoder",
        description="Writes a bundle from a published folder (weights, config.json, tokenizer) and "
        "decoder.jit of Cosmos-Tokenizer-DV8x16x16.",
    )
    parser.set_defaults(run=run)
    add_model_options(parser, "folder of the language model", tokenizer=None)
    parser.add_argument("--decoder", type=Path, metavar="FILE", help="decoder.jit of Cosmos")
    parser.add_argument(
        "--encoder",
        type=Path,
        metavar="FILE",
        help="encoder.jit of Cosmos, for images as input; needs --decoder",
    )
    parser.add_argument(
        "--full-head",
        action="store_true",
        help="sample among all ids as the published script does, in which ids of text have a share and "
        "become code 0; by default among the ids of codes alone",
    )
    add_config_option(
        parser,
        '"sizes" (["1024x1024"], some of those that are trained; default: all), '
        '"text_length", "sampling"',
    )
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model", "decoder")
    if options.encoder:
        if not options.decoder:
            raise ExportError("--encoder: give --decoder, too", 2)
        files.append(options.encoder)
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    settings = read_settings(options.config, PUBLISHED)
    ids = ImageIds(0, CosmosConfig().codes)
    if options.model:
        weights = read_folder(options.model)
        tokenizer = read_tokenizer(options.model, scratch)
        vocabulary = weights.config.vocab_size
        ids = image_ids(tokenizer, vocabulary, ids.codes, options.full_head)
        bundle.entries.update(target_entries(weights.config, ids, settings))
        add_tokenizer(bundle, tokenizer, settings.text_length)
        if note := repetition_note(options.model):
            bundle.log(note)
    if options.decoder:
        text = ids.text if ids.all else 0
        model = load_cosmos(options.decoder, ids.codes, text, options.encoder)
        bundle.entries["decoder"] = decoder_entry(ids.count, model.config.downsample, "round")
        bundle.modules.update(cosmos_parts(model))
    if options.model:
        add_network(bundle, options, weights, ids, scratch)


def add_network(
    bundle: Bundle, options: argparse.Namespace, weights: Weights, ids: ImageIds, scratch: Path
) -> None:
    """Adds the target that gives `ids`."""

    def make(positions: int, read: Read, keep: Keep) -> TargetModule:
        return TargetModule(weights.config, ids, positions, read, keep)

    add_target(bundle, options, weights, scratch, make)
