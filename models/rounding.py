"""Weights in 8 or 4 bits: a bundle stores products as integers with scales."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .ops import lamplighter

GROUP = 64  # features of a weight in 4 bits that share a scale


def round_products(module: nn.Module, bits: int) -> None:
    """Rounds in place the weights [out,in] that the module and its parts name as PRODUCTS."""
    for part in module.modules():
        for name in getattr(part, "PRODUCTS", ()):
            weight = getattr(part, name)
            if weight.dtype == torch.float16:
                weight = weight.float()
            setattr(part, name, lamplighter.round_linear(weight, bits))


def numbers(rounded: Tensor) -> Tensor:
    """The weights bfloat16 [out,in] that rounded ones stand for; `in` counts whole groups in 4 bits."""
    if rounded.dtype == torch.int8:
        scales = rounded[:, -4:].clone(memory_format=torch.contiguous_format).view(torch.float32)
        return (rounded[:, :-4] * scales).bfloat16()
    groups = rounded.view(len(rounded), -1, 2 + GROUP // 2)
    scales = groups[..., :2].clone(memory_format=torch.contiguous_format).view(torch.bfloat16)
    low_high = torch.stack([groups[..., 2:] & 15, groups[..., 2:] >> 4], -1)
    order = low_high.view(*groups.shape[:2], GROUP // 8, 4, 2).transpose(-1, -2)
    integers = order.reshape(*groups.shape[:2], GROUP).float() - 8
    return (integers * scales.float()).flatten(1).bfloat16()
