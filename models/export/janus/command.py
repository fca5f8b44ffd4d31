"""Exporter of Janus-Pro: a published folder to a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from ...bundle import Bundle, BundleModule, Storage
from ...janus.network import weight_shapes
from ...janus.target_module import TargetModule
from ...transformer.layer import Keep, Read
from ..checkpoint import ExportError
from ..common import (
    SPARE_POSITIONS,
    STORAGES,
    add_bundle_options,
    add_model_options,
    decoder_part,
    encoder_part,
    make_bundle,
    require_parts,
)
from ..mapped_target import mapped_target
from ..settings import read_settings
from .bundle import (
    LICENCE,
    PUBLISHED,
    ROLES,
    check_processor,
    prompt_entry,
    read_tags,
    target_entries,
)
from .weights import Weights, read_folder


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "janus",
        help="Janus-Pro, a folder as published by DeepSeek or of transformers",
        description="Writes a bundle from a published folder: weights, config.json, tokenizer.json.",
    )
    parser.set_defaults(run=run)
    add_model_options(
        parser,
        "folder of Janus-Pro-1B, Janus-Pro-7B or one like them, as DeepSeek or transformers lay it out",
    )
    parser.add_argument(
        "--roles",
        default=",".join(ROLES),
        metavar="USER,ASSISTANT",
        help="names in prompts, default: %(default)s; the first Janus has User,Assistant",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help='JSON with "text_length", "sampling", and for models other than the published ones "sizes" '
        '(default: ["384x384"])',
    )
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model")
    roles = parse_roles(options.roles)
    make_bundle(options, files, lambda bundle, scratch: fill(bundle, options, roles, scratch))


def parse_roles(text: str) -> tuple[str, str]:
    user, comma, assistant = text.partition(",")
    if not user or not assistant or "," in assistant:
        raise ExportError(f"--roles: got {text!r}, expected two names such as User,Assistant", 2)
    return user, assistant


def fill(
    bundle: Bundle, options: argparse.Namespace, roles: tuple[str, str], scratch: Path
) -> None:
    settings = read_settings(options.config, PUBLISHED)
    folder = read_folder(options.model)
    check_processor(options.model)
    weights = folder.weights
    tokenizer = options.tokenizer or options.model / "tokenizer.json"
    tags = read_tags(tokenizer, weights.config.text_ids)
    prompt = prompt_entry(tags, roles, settings.text_length)
    downsample = folder.vq.config.downsample
    bundle.entries.update(target_entries(weights.config, settings, prompt, downsample))
    bundle.entries["tokenizer"] = {
        "kind": "bpe",
        "file": tokenizer.name,
        "max_length": settings.text_length,
    }
    bundle.files[tokenizer.name] = tokenizer
    bundle.entries["decoder"] = {
        "codebook_size": folder.vq.config.codebook_size,
        "downsample": downsample,
        "pixels": "truncate",
    }
    # In fp32, whatever the file has: rows of the codebook are used at unit length.
    vq = folder.vq.float()
    bundle.modules["image_decoder"] = decoder_part(vq, torch.float32)
    bundle.modules.update(encoder_part(vq, downsample, torch.float32))
    positions = bundle.entries["cache"]["max_length"] + SPARE_POSITIONS
    storage = STORAGES.get(options.dtype, Storage(weights.dtype))
    bundle.modules["target"] = target_part(weights, positions, storage, scratch)


def target_part(weights: Weights, positions: int, storage: Storage, scratch: Path) -> BundleModule:
    """The target with its weights in files of the folder `scratch`."""

    def make(read: Read, keep: Keep) -> TargetModule:
        return TargetModule(weights.config, positions, read, keep)

    return mapped_target(weights, len(weight_shapes(weights.config)), make, storage, scratch)
