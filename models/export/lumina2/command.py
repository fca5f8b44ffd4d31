"""Exporter of Lumina-mGPT 2.0: a published folder and MoVQGAN's checkpoint to a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...chameleon.config import TokenIds
from ...chameleon.target_module import TargetModule
from ..chameleon.weights import read_weights
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_model_options,
    decoder_entry,
    make_bundle,
    parse_sizes,
    require_parts,
)
from ..image_decoders.movqgan import load_movqgan, movqgan_parts
from ..mapped_target import add_target
from .bundle import LICENCE, OFFICIAL_SCHEDULE, SCHEDULE, SIZES, read_names, target_entries

DOWNSAMPLE = 8  # of the published image tokenizer


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "lumina-mgpt-2",
        help="Lumina-mGPT 2.0, a folder as published and movqgan_270M.ckpt",
        description="Writes a bundle from published files. Every part is optional.",
    )
    parser.set_defaults(run=run)
    add_model_options(
        parser, "folder with config.json, weights, tokenizer.json and tokenizer_config.json"
    )
    parser.add_argument("--vq", type=Path, metavar="FILE", help="movqgan_270M.ckpt")
    parser.add_argument(
        "--sizes",
        metavar="WxH,...",
        help="sizes in pixels, multiples of 32; default: "
        + ",".join(f"{width}x{height}" for width, height in SIZES),
    )
    parser.add_argument(
        "--text-length", type=int, metavar="N", help="most ids of a prompt's text, default: 256"
    )
    parser.add_argument(
        "--official-schedule",
        action="store_true",
        help="guidance as in the official program: the scale falls to 4 within the first quarter of the codes, "
        "and scales below 4 become 4",
    )
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model", "vq")
    if options.text_length is not None and options.text_length < 1:
        raise ExportError(f"--text-length: got {options.text_length}, expected 1 or more", 2)
    sizes = parse_sizes(options.sizes) if options.sizes else list(SIZES)
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, sizes, scratch))


def fill(
    bundle: Bundle, options: argparse.Namespace, sizes: list[tuple[int, int]], scratch: Path
) -> None:
    """Adds the parts that the command line names."""
    downsample, codes = DOWNSAMPLE, None
    if options.vq:
        model = load_movqgan(options.vq)
        downsample, codes = model.config.downsample, model.config.n_embed
        bundle.entries["decoder"] = decoder_entry(codes, downsample, "nearest")
        bundle.modules.update(movqgan_parts(model))
    if not options.model:
        return
    if not options.model.is_dir():
        raise ExportError(f"{options.model}: no such folder")
    weights = read_weights(options.model)
    tokenizer = options.tokenizer or options.model / "tokenizer.json"
    names = read_names(options.model, tokenizer, weights.config.vocab_size)
    if codes is not None and codes != names.codes:
        raise ExportError(f"{options.vq}: has {codes} codes, the model generates {names.codes}")
    schedule = OFFICIAL_SCHEDULE if options.official_schedule else SCHEDULE
    bundle.entries.update(
        target_entries(weights.config, names, sizes, downsample, options.text_length, schedule)
    )
    bundle.files[tokenizer.name] = tokenizer
    ids = TokenIds(first_image_id=names.first_image_id, codebook_size=names.codes)
    add_target(
        bundle,
        options,
        weights,
        scratch,
        lambda positions, read, keep: TargetModule(weights.config, ids, positions, read, keep),
    )
