"""Exporter of MAR: a checkpoint, its autoencoder and an optional smaller checkpoint that drafts."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any

from ...bundle import Bundle
from ...mar.config import MARConfig
from ...mar.diffusion import TRAINED_STEPS, Schedule, schedule
from ...mar.kl import AutoencoderKL
from ..checkpoint import ExportError
from ..common import STORAGES, add_bundle_options, make_bundle, require_parts
from ..drafters.attach import check_name
from .bundle import KIND, image_part, manifest_entries, network_part
from .weights import SIZES, Checkpoint, check_size, read_kl, read_mar

LICENCE = "MIT (MAR, code and weights)"
DTYPES = ("fp32", "bf16", "fp16")
RESPACING = "100"  # the official program's


def add_parser(families: Any) -> None:
    parser = families.add_parser(
        "mar",
        help="MAR, checkpoints as published",
        description="Writes a bundle of continuous tokens from checkpoint-last.pth and kl16.ckpt.",
    )
    parser.set_defaults(run=run)
    add = parser.add_argument
    add("--model", type=Path, required=True, metavar="FILE", help="checkpoint-last.pth")
    add("--vae", type=Path, required=True, metavar="FILE", help="kl16.ckpt")
    add("--size", choices=SIZES, help="the published model it is, which it is checked against")
    add("--heads", metavar="N[,N]", help="of encoder and decoder, for a model of no published size")
    add("--grid", metavar="ROWSxCOLUMNS", help="of tokens, default: a square")
    add("--drafter", type=Path, metavar="FILE", help="a smaller checkpoint, for --method cspd")
    add("--drafter-heads", metavar="N[,N]", help="default: --heads, or a published size's")
    add("--drafter-name", default="small", metavar="NAME", help="default: %(default)s")
    add(
        "--respacing",
        metavar="STEPS",
        help=f"denoising steps of the {TRAINED_STEPS}, such as 25, ddim50 or 25@40-960 (from 40 to 960); "
        f"default: what the checkpoint names, or {RESPACING}",
    )
    add("--cfg-schedule", choices=("linear", "constant"), default="linear", help="of the guidance")
    add("--cfg-scale", type=float, help="default guidance; without it the published size's, or 1")
    add("--temperature", type=float, default=1.0, help="default temperature")
    add("--dtype", choices=DTYPES, default="fp32", help="storage; nothing is computed in it")
    add_bundle_options(parser, LICENCE)


def run(options: argparse.Namespace) -> None:
    files = require_parts(options, "model", "vae", "drafter")
    heads, drafter_heads = parse_heads(options, "heads"), parse_heads(options, "drafter_heads")
    check_name(options.drafter_name)
    check_numbers(options)
    tables = schedule_of(options.respacing) if options.respacing else None
    target = read_mar(options.model, heads)
    if options.size:
        check_size(target.model.config, options.size, options.model)
    respacing = options.respacing or target.respacing or RESPACING
    tables = tables or schedule_of(respacing)
    vae = read_kl(options.vae)
    check_latents(target, vae, options.vae)
    entries = manifest_entries(target.model.config, vae.config.downsample, options)
    entries["diffusion"] = {"steps": len(tables.steps), "respacing": respacing}
    drafter = None
    if options.drafter:
        drafter = read_mar(options.drafter, drafter_heads or heads)
        check_drafter(drafter, target.model.config, None if options.respacing else respacing)

    dtype = STORAGES[options.dtype].dtype

    def fill(bundle: Bundle, scratch: Path) -> None:
        bundle.entries.update(entries)
        bundle.modules["target"] = network_part(target, tables, dtype)
        bundle.modules["image_decoder"] = image_part(vae, dtype)
        if drafter:
            part = network_part(drafter, tables, dtype)
            part.entries["kind"] = KIND
            bundle.drafters[options.drafter_name] = part

    make_bundle(options, files, fill)


def parse_heads(options: argparse.Namespace, name: str) -> tuple[int, int] | None:
    text = getattr(options, name)
    if text is None:
        return None
    counts = re.fullmatch(r"([1-9]\d{0,3})(?:,([1-9]\d{0,3}))?", text)
    if not counts:
        flag = name.replace("_", "-")
        raise ExportError(f"--{flag}: got {text!r}, expected one or two numbers such as 12,12", 2)
    return int(counts[1]), int(counts[2] or counts[1])


def check_numbers(options: argparse.Namespace) -> None:
    for name in ("cfg_scale", "temperature"):
        value = getattr(options, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            flag = name.replace("_", "-")
            raise ExportError(f"--{flag}: got {value}, expected a positive number", 2)


def schedule_of(respacing: str) -> Schedule:
    try:
        return schedule(respacing)
    except ValueError as error:
        raise ExportError(str(error), 2) from error


def check_latents(target: Checkpoint, vae: AutoencoderKL, path: Path) -> None:
    channels, expected = vae.config.z_channels, target.model.config.channels
    if channels != expected:
        raise ExportError(f"{path}: latents of {channels} channels, the model's have {expected}")


def check_drafter(drafter: Checkpoint, target: MARConfig, respacing: str | None) -> None:
    """ExportError: it generates other tokens. respacing: the one that its file may not contradict."""
    config = drafter.model.config
    for what, got, expected in (
        ("channels of a token", config.channels, target.channels),
        ("tokens of an image", config.positions, target.positions),
        ("classes", config.classes, target.classes),
        ("denoising steps", drafter.respacing if respacing else None, respacing),
    ):
        if got is not None and got != expected:
            raise ExportError(f"{drafter.path}: {what}: got {got}, the model's are {expected}")
