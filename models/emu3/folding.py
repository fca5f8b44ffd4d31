"""The published tokenizer of videos as a network of one image, with equal results for its frame.

In front of the first frame lie two of zeros, and of the frames that doubling makes of it the first one
is kept: a kernel over time is the last of its three slices. Norms over time are scales and shifts of
training; one behind a convolution is part of it. Products are made in fp64.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ..cosmos.folding import Conv, chained

State = Mapping[str, Tensor]
NORM_EPS = 1e-5
FRAMES = 3  # of a kernel over time
TIME = ("time_res_stack.", "time_conv.")


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


def fold(state: State, blocks: int, doublings: int) -> dict[str, Tensor]:
    """State of models.emu3.decoder.Emu3VQ, by the authors' names; blocks and doublings: over time."""
    over_time = tuple(f"decoder.{part}" for part in TIME)
    kept = {
        name: tensor
        for name, tensor in state.items()
        if not name.startswith((*over_time, "post_quant_conv."))
    }
    folded = {"post_quant_conv": conv_of(state, "post_quant_conv")}
    for number in range(blocks):
        source, name = f"decoder.time_res_stack.{number}", f"over_time.{number}"
        folded[f"{name}.norm"] = norm_of(state, f"{source}.norm1")
        first, norm = conv_of(state, f"{source}.conv1"), norm_of(state, f"{source}.norm2")
        folded[f"{name}.conv1"] = chained(first, norm)
        folded[f"{name}.conv2"] = conv_of(state, f"{source}.conv2")
    for number in range(doublings):
        conv = conv_of(state, f"decoder.time_conv.{number}.conv")
        folded[f"over_time.{blocks + number}.conv"] = conv
    for name, (weight, bias) in folded.items():
        kept[f"{name}.weight"], kept[f"{name}.bias"] = weight.float(), bias.float()
    return kept
