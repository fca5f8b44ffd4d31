"""Reads published MAR checkpoints and the autoencoder of their latents."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...chameleon.vqgan import VQGANConfig
from ...mar.config import MARConfig, StackShape, square_shape
from ...mar.kl import AutoencoderKL
from ...mar.network import MAR
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..image_decoders.vqgan import decoder_facts

ANCHORS = ("encoder_pos_embed_learned",)
USUAL = "ema"  # what the official program generates with
VAE_ANCHORS = ("post_quant_conv.weight",)
# What reads images, and what only training used.
VAE_IGNORED = ("encoder.", "quant_conv.", "loss.")
HEAD = "diffloss.net."


@dataclass(frozen=True)
class Size:
    """A published model; depth and heads of encoder and decoder alike."""

    dim: int
    depth: int
    heads: int
    head_depth: int
    head_width: int
    cfg_scale: float  # it is published with

    @property
    def shapes(self) -> tuple[StackShape, int, int]:
        return square_shape(self.dim, self.depth, self.heads), self.head_depth, self.head_width


SIZES = {
    "B": Size(768, 12, 12, 6, 1024, 2.9),
    "L": Size(1024, 16, 16, 8, 1280, 3.0),
    "H": Size(1280, 20, 16, 12, 1536, 3.2),
}


@dataclass
class Checkpoint:
    """One network and the respacing that its file names, if any."""

    model: MAR
    respacing: str | None
    path: Path


def read_mar(path: Path, heads: tuple[int, int] | None) -> Checkpoint:
    """The averaged weights of a checkpoint, mapped from its file.

    heads: of encoder and decoder, by default those that a published model of this width has.
    ExportError: no MAR checkpoint, or its tensors contradict each other.
    """
    content = checkpoint.read_file(path)
    state = checkpoint.unwrap(content, path, ANCHORS, USUAL)
    config = mar_config(state, heads, path)
    with unfilled():
        model = MAR(config)
    checkpoint.load_strictly(model, state, str(path))
    return Checkpoint(model.float(), trained_respacing(content), path)


def mar_config(state: State, heads: tuple[int, int] | None, path: Path) -> MARConfig:
    """Sizes by the tensors; the number of heads is in none of them."""
    where = str(path)
    rows, _ = shape_of(state, "encoder_pos_embed_learned", 3, where)[1:]
    positions = shape_of(state, "diffusion_pos_embed_learned", 3, where)[1]
    widths = [
        shape_of(state, name, 2, where)[0] for name in ("z_proj.weight", "decoder_embed.weight")
    ]
    stacks = []
    for number, (name, width) in enumerate(zip(("encoder", "decoder"), widths, strict=True)):
        count = heads[number] if heads else published_heads(width, path)
        ffn = shape_of(state, f"{name}_blocks.0.mlp.fc1.weight", 2, where)[0]
        stacks.append((width, count_blocks(state, f"{name}_blocks."), count, ffn))
    try:
        return MARConfig(
            positions=positions,
            channels=shape_of(state, "z_proj.weight", 2, where)[1],
            classes=shape_of(state, "class_emb.weight", 2, where)[0],
            buffer=rows - positions,
            encoder=StackShape(*stacks[0]),
            decoder=StackShape(*stacks[1]),
            head_depth=count_blocks(state, f"{HEAD}res_blocks."),
            head_width=shape_of(state, f"{HEAD}input_proj.weight", 2, where)[0],
        )
    except ValueError as error:
        raise ExportError(f"{path}: {error}") from error


def published_heads(width: int, path: Path) -> int:
    for size in SIZES.values():
        if size.dim == width:
            return size.heads
    raise ExportError(
        f"{path}: width {width} is none of a published model; give the number of heads", 2
    )


def trained_respacing(content: Any) -> str | None:
    """Reads the respacing from the command line that training stores in its file."""
    arguments = content.get("args") if isinstance(content, Mapping) else None
    settings = vars(arguments) if isinstance(arguments, argparse.Namespace) else arguments
    found = settings.get("num_sampling_steps") if isinstance(settings, Mapping) else None
    return None if found is None else str(found)


def check_size(config: MARConfig, name: str, path: Path) -> None:
    """ExportError: the checkpoint is not of this published size."""
    stack, depth, width = SIZES[name].shapes
    for what, got, expected in (
        ("encoder", config.encoder, stack),
        ("decoder", config.decoder, stack),
        ("diffusion head", (config.head_depth, config.head_width), (depth, width)),
    ):
        if got != expected:
            raise ExportError(
                f"{path}: {what} is {described(got)}, that of MAR-{name} is {described(expected)}"
            )


def described(shape: StackShape | tuple[int, int]) -> str:
    depth, dim = (shape.depth, shape.dim) if isinstance(shape, StackShape) else shape
    return f"{depth} x {dim}"


def read_kl(path: Path) -> AutoencoderKL:
    """The decoder of kl16.ckpt or one like it. ExportError: it is none."""
    content = checkpoint.unwrap(checkpoint.read_file(path), path, VAE_ANCHORS)
    state = {k: v for k, v in content.items() if not k.startswith(VAE_IGNORED)}
    facts = decoder_facts(state, None, str(path))
    if facts["attn_levels"]:
        raise ExportError(f"{path}: attention at level {facts['attn_levels'][0]}, expected none")
    channels = facts["z_channels"]
    with unfilled():
        config = VQGANConfig(**{**facts, "attn_levels": ()}, embed_dim=channels, n_embed=0)
        model = AutoencoderKL(config, encoder=False)
    checkpoint.load_strictly(model, state, str(path))
    return model.float()
