"""Exporter of Emu3-Gen and Emu3.5: a folder of transformers, or the official folders, to a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...chameleon.vqgan import VQGAN
from ...emu3.decoder import Emu3VQ
from ...transformer.codes_target import CodesTarget
from ...transformer.layer import layer_shape
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    decoder_entry,
    make_bundle,
    require_parts,
)
from ..mapped_target import add_target
from ..settings import read_settings
from .bundle import Names, levels_note, read_names, target_entries
from .models import EMU3, EMU35, Model
from .tokenizer import find_tokenizer
from .vq import read_tokenizer, vq_parts
from .weights import Folder, read_folder


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "emu3",
        help="Emu3-Gen, a folder of transformers, or the official ones with Emu3-VisionTokenizer; Emu3.5-Image",
        description="Writes a bundle from published folders: weights, config.json, tokenizer.",
    )
    parser.set_defaults(run=run)
    add_model_options(
        parser,
        "folder of transformers (model_type emu3) or of the authors (Emu3-Gen, Emu3.5-Image)",
        "or a folder; default: DIR/tokenizer.json, or made of emu3.tiktoken",
    )
    parser.add_argument(
        "--vq",
        type=Path,
        metavar="DIR",
        help="folder of Emu3-VisionTokenizer or Emu3.5-VisionTokenizer; default: the image tokenizer in "
        "--model, if it has one",
    )
    add_config_option(
        parser,
        '"sizes" (["720x720"] by default, others of its area; of Emu3.5 its eight; for models '
        'other than the published ones any), "text_length", "sampling"',
    )
    add_bundle_options(parser, "")  # the model's, which its files tell


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model", "vq")
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, scratch))


def fill(bundle: Bundle, options: argparse.Namespace, scratch: Path) -> None:
    """Adds the parts that the command line names."""
    folder = read_folder(options.model) if options.model else None
    vq = read_tokenizer(options.vq) if options.vq else folder.vq if folder else None
    model = model_of(folder, vq)
    bundle.licence = bundle.licence or model.licence
    settings = read_settings(options.config, model.published)
    if vq:
        bundle.entries["decoder"] = decoder_entry(
            vq.config.n_embed, vq.config.downsample, "truncate"
        )
        bundle.modules.update(vq_parts(vq))
        if note := levels_note(options.vq or options.model):
            bundle.log(note)
    if not folder:
        return
    config = folder.weights.config
    tokenizer = options.tokenizer or options.model
    if tokenizer.is_dir():
        tokenizer = find_tokenizer(tokenizer, scratch)
    names = read_names(model, tokenizer, folder.vocabulary_map, config.vocab_size)
    check_codes(options, folder, vq, names)
    downsample = vq.config.downsample if vq else model.downsample
    bundle.entries.update(target_entries(model, config, names, settings, downsample))
    bundle.files[tokenizer.name] = tokenizer
    shape = layer_shape(config, head_rms=config.head_norms)
    ids = (names.first_image_id, names.codes)
    add_target(
        bundle,
        options,
        folder.weights,
        scratch,
        lambda positions, read, keep: CodesTarget(shape, config, *ids, positions, read, keep),
    )


def model_of(folder: Folder | None, vq: VQGAN | None) -> Model:
    """Emu3.5 has norms of heads, and an image tokenizer without kernels over time."""
    if folder:
        return EMU35 if folder.weights.config.head_norms else EMU3
    return EMU3 if isinstance(vq, Emu3VQ) else EMU35


def check_codes(
    options: argparse.Namespace, folder: Folder, vq: VQGAN | None, names: Names
) -> None:
    if vq and vq.config.n_embed != names.codes:
        where = options.vq or folder.weights.where
        raise ExportError(
            f"{where}: the image tokenizer has {vq.config.n_embed} codes, the model generates "
            f"{names.codes}"
        )
