"""The published tokenizer of videos as a network of one image, with equal results for its frame.

In front of the first frame lie two of zeros, and of the frames that doubling makes of it the first one
is kept: a kernel over time is the last of its three slices. The encoder gets copies of the image, as many as
it makes one frame of: a halving is a convolution of the channels of all its frames. Norms over time are scales
and shifts of training; one behind a convolution is part of it. Products are made in fp64.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..cosmos.folding import Conv, chained
from .decoder import halved_frames

State = Mapping[str, Tensor]
NORM_EPS = 1e-5
FRAMES = 3  # of a kernel over time
HALVING_FRAMES, ZEROS = 4, 2  # of a halving's kernel; in front of the first frame
TIME = tuple(
    f"{half}.{part}." for half in ("encoder", "decoder") for part in ("time_res_stack", "time_conv")
)


def conv_of(state: State, name: str) -> Conv:
    """A convolution over time, height and width [O,I,t,k,k] for the first frame."""
    return state[f"{name}.conv.weight"][:, :, -1].double(), state[f"{name}.conv.bias"].double()


def norm_of(state: State, name: str) -> Conv:
    """A 1x1 convolution."""
    weight, bias, mean, variance = (
        state[f"{name}.{part}"].double()
        for part in ("weight", "bias", "running_mean", "running_var")
    )
    scale = weight / torch.sqrt(variance + NORM_EPS)
    return torch.diag(scale)[:, :, None, None], bias - mean * scale


def halving_of(state: State, name: str, before: int, after: int) -> Conv:
    """A halving of the number of frames [O,I,t,k,k] for the channels of all of them. Where one frame stands in
    front, it stands for all."""
    kernel, bias = state[f"{name}.conv.weight"].double(), state[f"{name}.conv.bias"].double()
    outputs, inputs, frames, *sides = kernel.shape
    weight = kernel.new_zeros(after, outputs, before, inputs, *sides)
    for frame in range(after):
        for step in range(frames):
            source = 2 * frame + step - ZEROS
            if source >= 0:
                weight[frame, :, min(source, before - 1)] += kernel[:, :, step]
    return weight.flatten(2, 3).flatten(0, 1), bias.repeat(after)


def block_of(state: State, source: str, name: str) -> dict[str, Conv]:
    """A residual block over time."""
    first, norm = conv_of(state, f"{source}.conv1"), norm_of(state, f"{source}.norm2")
    return {
        f"{name}.norm": norm_of(state, f"{source}.norm1"),
        f"{name}.conv1": chained(first, norm),
        f"{name}.conv2": conv_of(state, f"{source}.conv2"),
    }


def fold(state: State, blocks: int, doublings: int, encoder: bool) -> dict[str, Tensor]:
    """State of models.emu3.decoder.Emu3VQ, by the official names; blocks and doublings: over time."""
    kept = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith((*TIME, "quant_conv.", "post_quant_conv."))
    }
    folded = {"post_quant_conv": conv_of(state, "post_quant_conv")}
    for number in range(blocks):
        folded |= block_of(state, f"decoder.time_res_stack.{number}", f"over_time.{number}")
    for number in range(doublings):
        conv = conv_of(state, f"decoder.time_conv.{number}.conv")
        folded[f"over_time.{blocks + number}.conv"] = conv
    if encoder:
        folded["quant_conv"] = conv_of(state, "quant_conv")
        frames, name = halved_frames(doublings), "encoder_over_time"
        for number, pair in enumerate(zip(frames, frames[1:])):
            conv = halving_of(state, f"encoder.time_conv.{number}.conv", *pair)
            folded[f"{name}.{number}.conv"] = conv
        for number in range(blocks):
            source = f"encoder.time_res_stack.{number}"
            folded |= block_of(state, source, f"{name}.{doublings + number}")
    for name, (weight, bias) in folded.items():
        kept[f"{name}.weight"], kept[f"{name}.bias"] = weight.float(), bias.float()
    return kept
