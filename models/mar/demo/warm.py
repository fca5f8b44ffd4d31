"""A start for the image decoder: the demo's decoder of codes, which decodes the same images."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn

from ...demo.export import BUNDLE
from ...vq.blocks import AttnBlock, ResBlock, Upsample
from ..kl import AutoencoderKL

ATTENTION = 6  # the block that the decoder of latents lacks
NEW = 0.3  # of the usual deviation: weights of channels that a code does not have


def copy(module: nn.Module, source: dict[str, Tensor], **names: str) -> None:
    """Parameters of a module's parts; names: what the source calls a part."""
    for part, name in names.items():
        target = module.get_submodule(part)
        for key, value in target.named_parameters():
            value.copy_(source[f"{name}.{key}" if name else key])


def copy_block(block: nn.Module, source: dict[str, Tensor]) -> None:
    if isinstance(block, ResBlock):
        names = {
            "norm1": "first.norm",
            "conv1": "first.conv",
            "norm2": "second.norm",
            "conv2": "second.conv",
        }
        copy(block, source, **names, **({"nin_shortcut": "shortcut"} if block.nin_shortcut else {}))
    elif isinstance(block, AttnBlock):
        copy(block, source, norm="norm", proj_out="out")
        for key in ("weight", "bias"):
            for part, value in zip("qkv", source[key].chunk(3), strict=True):
                getattr(block.get_submodule(part), key).copy_(value)
    elif isinstance(block, Upsample):
        copy(block, source, conv="")
    else:
        raise TypeError(type(block).__name__)


@torch.no_grad()
def start_from_codes(kl: AutoencoderKL) -> None:
    """Writes the weights of a decoder of the same widths. The first channels of its latents are a code's,
    brought from unit length to unit scale."""
    state = torch.jit.load(BUNDLE / "image_decoder.pt").state_dict()
    numbered = [
        (key.split(".", 2)[1:], value.float()) for key, value in state.items() if key[0] == "b"
    ]
    sources = [
        {key: value for (_, key), value in group}
        for number, group in itertools.groupby(numbered, lambda entry: int(entry[0][0]))
        if number != ATTENTION
    ]
    project, first, *middle, last = sources
    for block, source in zip(kl.decoder.blocks(), middle, strict=True):
        copy_block(block, source)
    copy(kl.decoder, last, norm_out="norm", conv_out="conv")
    table, shift = project["weight"][:, :, 0, 0], project["bias"]
    wide = kl.decoder.conv_in.weight.mul_(NEW)
    wide[:, : table.shape[1]] = torch.einsum("omhw,mc->ochw", first["weight"], table)
    wide[:, : table.shape[1]] *= table.shape[1] ** -0.5
    kl.decoder.conv_in.bias.copy_(first["bias"] + first["weight"].sum((2, 3)) @ shift)
    nn.init.eye_(kl.post_quant_conv.weight[:, :, 0, 0])
    nn.init.zeros_(kl.post_quant_conv.bias)
