"""Exporter of Chameleon, Anole and Lumina-mGPT: official files to a bundle."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...chameleon.config import TokenIds
from ...chameleon.target_module import TargetModule, TextTargetModule
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    make_bundle,
    parse_sizes,
    require_parts,
)
from ..image_decoders.vqgan import vqgan_parts
from ..mapped_target import add_target
from .bundle import (
    DOWNSAMPLE,
    FAMILIES,
    LICENCE,
    PUBLISHED_VOCABULARY,
    TEXT_LENGTH,
    read_settings,
    target_entries,
    text_entry,
    text_room,
    tokenizer_entry,
    usual_tokenizer,
)
from .weights import read_weights

TITLES = {"chameleon": "Chameleon", "anole": "Anole", "lumina-mgpt": "Lumina-mGPT"}


def add_parsers(families: Any) -> None:
    for name, family in FAMILIES.items():
        parser = families.add_parser(
            name,
            help=f"{TITLES[name]}, a Hugging Face folder or Meta's consolidated.pth",
            description="Writes a bundle from official files. Every part is optional.",
        )
        parser.set_defaults(run=run)
        add_arguments(parser, family.framed)


def add_arguments(parser: argparse.ArgumentParser, framed: bool) -> None:
    add_model_options(
        parser,
        "folder with config.json and shards, or with consolidated.pth and params.json",
        "tokenizer.json or text_tokenizer.json, default: the one beside the model",
    )
    parser.add_argument(
        "--vq",
        type=Path,
        metavar="PATH",
        help="vqgan.ckpt, or a Hugging Face folder that holds the image decoder",
    )
    parser.add_argument(
        "--vq-config", type=Path, metavar="FILE", help="default: vqgan.yaml beside vqgan.ckpt"
    )
    if framed:
        parser.add_argument(
            "--sizes",
            metavar="WxH,...",
            help="sizes in pixels, multiples of 32; default: 512x512, 768x768 and 1024x1024 as far "
            "as the model has positions",
        )
    else:
        parser.add_argument(
            "--text",
            action="store_true",
            help="keep the head's rows of text, with which the model describes images",
        )
    add_config_option(parser, "other token ids, sizes, sampling")
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model", "vq")
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))
    if options.model and find_tokenizer(options) is None:
        print("note: no tokenizer.json found, the bundle gets no tokenizer", file=sys.stderr)


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    """Adds the parts that the command line names."""
    settings = read_settings(options.config)
    if getattr(options, "sizes", None):
        settings.sizes = parse_sizes(options.sizes)
    text = getattr(options, "text", False)
    if text:
        require_text(options)
    downsample = DOWNSAMPLE
    if options.vq:
        parts, decoder = vqgan_parts(options.vq, options.vq_config, None)
        bundle.modules.update(parts)
        bundle.entries["decoder"] = decoder
        downsample = decoder["downsample"]
    vocabulary, length = PUBLISHED_VOCABULARY, TEXT_LENGTH
    if options.model:
        weights = read_weights(options.model)
        check_codes(options, bundle, settings.tokens)
        entries = target_entries(FAMILIES[options.family], weights.config, settings, downsample)
        bundle.entries.update(entries)
        if text:
            grid = entries["grids"][0]
            bundle.entries["text"] = text_entry(weights.config, settings, grid)
        vocabulary = weights.config.vocab_size
        length = text_room(entries)
    add_tokenizer(bundle, options, settings.tokens, vocabulary, length)
    if options.model:
        ids, config = settings.tokens, weights.config
        make = TextTargetModule if text else TargetModule
        add_target(
            bundle,
            options,
            weights,
            scratch,
            lambda positions, read, keep: make(config, ids, positions, read, keep),
        )


def require_text(options: argparse.Namespace) -> None:
    """ExportError: texts need more than the command line gives."""
    if not options.model:
        raise ExportError("--text: got no --model, expected one: its head gives texts", 2)
    if find_tokenizer(options) is None:
        raise ExportError(
            "--text: got no tokenizer.json, expected one, which reads and writes texts; give --tokenizer",
            2,
        )


def check_codes(options: argparse.Namespace, bundle: Bundle, ids: TokenIds) -> None:
    codes = bundle.entries.get("decoder", {}).get("codebook_size", ids.codebook_size)
    if codes != ids.codebook_size:
        raise ExportError(
            f"{options.vq}: has {codes} codes, expected the {ids.codebook_size} that the model generates"
        )


def add_tokenizer(
    bundle: Bundle, options: argparse.Namespace, ids: TokenIds, vocabulary: int, length: int
) -> None:
    """Copies the tokenizer; without one the bundle can be checked but takes no prompts."""
    path = find_tokenizer(options)
    if path is None:
        return
    text = "text" in bundle.entries
    bundle.entries["tokenizer"] = tokenizer_entry(path, ids, vocabulary, length, text)
    bundle.files[path.name] = path


def find_tokenizer(options: argparse.Namespace) -> Path | None:
    """The named tokenizer, or the one beside the model."""
    model: Path | None = options.model
    if options.tokenizer or not model:
        named: Path | None = options.tokenizer
        return named
    return usual_tokenizer(model if model.is_dir() else model.parent)
