"""Entries of MAR's manifest, and its modules with what is recorded of them."""

from __future__ import annotations

import argparse
import math
import re
from typing import Any

import torch

from ...bundle import BundleModule
from ...mar.config import MARConfig
from ...mar.diffusion import Schedule
from ...mar.kl import LATENT_SCALE, AutoencoderKL
from ...mar.network import MAR
from ...mar.target_module import TargetModule
from ...recording import Call
from ...vq.image_decoder_module import LatentDecoderModule
from ..checkpoint import ExportError
from ..common import grid_entry, seeded
from .weights import SIZES, Checkpoint

KIND = "continuous"
# Relative to the largest result, a sum over all steps; errors of the first step grow by hundreds.
CHAIN_TOLERANCE = 5e-6


def parse_grid(text: str | None, positions: int) -> tuple[int, int]:
    """Rows and columns of an image of this number of tokens."""
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
    """Images of different numbers of visible tokens, none and many."""
    random, count = seeded(), config.positions
    latents = torch.randn(2, count, config.channels, generator=random)
    visible = torch.rand(2, count, generator=random) < torch.tensor([[0.0], [0.6]])
    return Call("context", [latents, visible, torch.tensor([0, config.classes])])


@torch.inference_mode()
def chain_calls(model: MAR, steps: int) -> list[Call]:
    """Two tokens of an empty image without guidance and with it: other conditions leave the chain's range."""
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
