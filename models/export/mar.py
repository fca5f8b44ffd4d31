"""Exporter of MAR: a checkpoint, its autoencoder and perhaps a smaller checkpoint that drafts, to a bundle."""

from __future__ import annotations

import argparse
import math
import re
from pathlib import Path
from typing import Any

import torch

from ..bundle import Bundle, BundleModule
from ..mar.config import MARConfig
from ..mar.diffusion import TRAINED_STEPS, Schedule, schedule
from ..mar.kl import LATENT_SCALE, AutoencoderKL
from ..mar.network import MAR
from ..mar.target_module import TargetModule
from ..recording import Call
from ..vq.image_decoder_module import LatentDecoderModule
from .checkpoint import ExportError
from .common import STORAGES, add_bundle_options, grid_entry, make_bundle, require_parts, seeded
from .drafter import check_name
from .mar_weights import SIZES, Checkpoint, check_size, read_kl, read_mar

LICENCE = "MIT (MAR, code and weights)"
KIND = "continuous"
DTYPES = ("fp32", "bf16", "fp16")
RESPACING = "100"  # the published program's
# Of the largest result, a sum over all steps; what the first step gets wrong grows by hundreds.
CHAIN_TOLERANCE = 5e-6


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
    add("--drafter-heads", metavar="N[,N]", help="default: --heads, or those of a published size")
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


def parse_grid(text: str | None, positions: int) -> tuple[int, int]:
    """Rows and columns of a picture of so many tokens."""
    if text is None:
        side = math.isqrt(positions)
        if side * side != positions:
            raise ExportError(f"{positions} tokens are no square; give --grid ROWSxCOLUMNS", 2)
        return side, side
    match = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text)
    if not match or int(match[1]) * int(match[2]) != positions:
        raise ExportError(
            f"--grid: got {text!r}, expected ROWSxCOLUMNS of {positions} tokens together", 2
        )
    return int(match[1]), int(match[2])


def manifest_entries(
    config: MARConfig, downsample: int, options: argparse.Namespace
) -> dict[str, Any]:
    """All but the steps of the chain."""
    scale = options.cfg_scale or (SIZES[options.size].cfg_scale if options.size else 1.0)
    rows, columns = parse_grid(options.grid, config.positions)
    return {
        "tokens": {"kind": KIND, "channels": config.channels},
        "prompt": {"kind": "class", "length": 1, "align": "end", "classes": config.classes},
        "grids": [grid_entry(columns * downsample, rows * downsample, downsample)],
        "target": {"hidden": config.decoder.dim},
        "sampling": {
            "cfg_scale": scale,
            "temperature": options.temperature,
            "schedule": {"kind": options.cfg_schedule},
        },
        "decoder": {"downsample": downsample, "pixels": "round"},
    }


def check_latents(target: Checkpoint, vae: AutoencoderKL, path: Path) -> None:
    channels, expected = vae.config.z_channels, target.model.config.channels
    if channels != expected:
        raise ExportError(f"{path}: latents of {channels} channels, the model's have {expected}")


def check_drafter(drafter: Checkpoint, target: MARConfig, respacing: str | None) -> None:
    """ExportError: it draws other tokens. respacing: that its file may not contradict."""
    config = drafter.model.config
    for what, got, expected in (
        ("channels of a token", config.channels, target.channels),
        ("tokens of a picture", config.positions, target.positions),
        ("classes", config.classes, target.classes),
        ("denoising steps", drafter.respacing if respacing else None, respacing),
    ):
        if got is not None and got != expected:
            raise ExportError(f"{drafter.path}: {what}: got {got}, the model's are {expected}")


def image_part(vae: AutoencoderKL, dtype: torch.dtype = torch.float32) -> BundleModule:
    module = LatentDecoderModule(vae.post_quant_conv, vae.decoder, LATENT_SCALE).to(dtype)
    latents = torch.randn(1, vae.config.z_channels, 2, 3, generator=seeded())
    return BundleModule(module, dtype, [Call("decode", [latents])])


def network_part(source: Checkpoint, tables: Schedule, dtype: torch.dtype) -> BundleModule:
    """dtype: of the weights, as stored; what is computed of the schedule stays in fp32."""
    calls = [context_call(source.model.config), *chain_calls(source.model, len(tables.steps))]
    module = TargetModule(source.model, tables)
    computed = module.head.times, module.head.tables
    module.to(dtype)
    module.head.times, module.head.tables = computed
    return BundleModule(module, dtype, calls)


def context_call(config: MARConfig) -> Call:
    """Pictures of different numbers of visible tokens, none and many."""
    random, count = seeded(), config.positions
    latents = torch.randn(2, count, config.channels, generator=random)
    visible = torch.rand(2, count, generator=random) < torch.tensor([[0.0], [0.6]])
    return Call("context", [latents, visible, torch.tensor([0, config.classes])])


@torch.inference_mode()
def chain_calls(model: MAR, steps: int) -> list[Call]:
    """Two tokens of an empty picture without guidance and with it: other conditions leave the chain's range."""
    random, config = seeded(), model.config
    empty = torch.zeros(2, config.positions, config.channels)
    classes = torch.tensor([0, config.classes])
    z, unconditional = model.context(empty, empty[..., 0] > 0, classes)[:, :2]
    start = torch.randn(2, config.channels, generator=random)
    noise = torch.randn(2, steps, config.channels, generator=random)
    scale, temperature = torch.tensor([1.5, 3.0]), torch.tensor([1.0, 0.95])
    return [
        Call("denoise", [z, other, scale, start, noise, temperature], tolerance=CHAIN_TOLERANCE)
        for other in (unconditional[:0], unconditional)
    ]
