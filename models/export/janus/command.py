"""Exporter of Janus-Pro: a published folder to a bundle."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from ...bundle import Bundle
from ...janus.target_module import TargetModule
from ..checkpoint import ExportError
from ..common import (
    add_bundle_options,
    add_config_option,
    add_model_options,
    add_tokenizer,
    decoder_entry,
    decoder_part,
    encoder_part,
    make_bundle,
    require_parts,
)
from ..mapped_target import add_target
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
from .weights import read_folder


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
    add_config_option(
        parser,
        '"text_length", "sampling", and for models other than the published ones "sizes" '
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
    config = folder.weights.config
    tokenizer = options.tokenizer or options.model / "tokenizer.json"
    tags = read_tags(tokenizer, config.text_ids)
    prompt = prompt_entry(tags, roles, settings.text_length)
    downsample = folder.vq.config.downsample
    bundle.entries.update(target_entries(config, settings, prompt, downsample))
    add_tokenizer(bundle, tokenizer, settings.text_length)
    codes = folder.vq.config.codebook_size
    bundle.entries["decoder"] = decoder_entry(codes, downsample, "truncate")
    # In fp32, whatever the file has: rows of the codebook are used at unit length.
    vq = folder.vq.float()
    bundle.modules["image_decoder"] = decoder_part(vq, torch.float32)
    bundle.modules.update(encoder_part(vq, downsample, torch.float32))
    add_target(
        bundle,
        options,
        folder.weights,
        scratch,
        lambda positions, read, keep: TargetModule(config, positions, read, keep),
    )
