"""Where the rows of a sequence stand: time, row and column.

A prompt goes on by one in all three. The codes of an image have the time at which it begins, and rows and
columns from there; what follows begins behind its longer side. Attention depends on distances alone, so the
prompt may begin at any place: bundles let it end in front of a fixed one.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ..transformer.rotary import axes_table
from .config import GlmImageConfig


def places(prompt: int, grids: Sequence[tuple[int, int]], rows: int) -> Tensor:
    """int64 [3, rows] of `prompt` ids, the codes of grids of (rows, columns), and what comes behind them."""
    parts = [torch.arange(prompt).expand(3, -1)]
    start = prompt
    for height, width in grids:
        row = torch.arange(height).repeat_interleave(width)
        column = torch.arange(width).repeat(height)
        parts.append(start + torch.stack([torch.zeros_like(row), row, column]))
        start += max(height, width)
    left = rows - sum(part.shape[1] for part in parts)
    parts.append(start + torch.arange(left).expand(3, -1))
    return torch.cat(parts, 1)


def rotary_table(
    config: GlmImageConfig, prompt: int, grids: Sequence[tuple[int, int]], rows: int
) -> Tensor:
    """Rotations of these places, as transformer.rotary says."""
    where = places(prompt, grids, rows)
    return axes_table(where, config.head_dim, config.turned, config.rope_base, config.sections)
