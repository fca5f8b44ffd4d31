"""Rotations of queries and keys as the operator `attend` takes them.

A table has a row per position, [rows, D / 2, 2] as (cos, sin) in fp32; D is the width of a head.
Entry i of a row turns features 2i and 2i + 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def line_table(rows: int, head_dim: int, base: float) -> Tensor:
    """Every pair turns with the position (Llama, Chameleon)."""
    theta = base ** -(torch.arange(0, head_dim, 2).float() / head_dim)
    angles = torch.outer(torch.arange(rows).float(), theta)
    return torch.stack([angles.cos(), angles.sin()], -1)


def grid_table(grid: int, head_dim: int, base: float, prefix: int, prefix_rotation: str) -> Tensor:
    """Half of the pairs turn with the row, half with the column of a cell (LlamaGen).

    The grid^2 cells follow `prefix` rows, which are "zero", which wipes out queries and keys there,
    or the "identity".
    """
    half = head_dim // 2
    theta = base ** -(torch.arange(0, half, 2).float() / half)
    angles = torch.outer(torch.arange(grid).float(), theta)
    shape = (grid, grid, half // 2)
    cells = torch.cat([angles[:, None].expand(shape), angles[None].expand(shape)], -1)
    image = torch.stack([cells.cos(), cells.sin()], -1).view(grid * grid, half, 2)
    before = torch.zeros(prefix, half, 2)
    if prefix_rotation == "identity":
        before[..., 0] = 1.0
    return torch.cat([before, image])


def axes_table(
    places: Tensor, head_dim: int, turned: int, base: float, sections: Sequence[int]
) -> Tensor:
    """Every pair turns with one axis of a place; features behind the first `turned` ones stay (GLM-Image).

    places: int64 [axes, rows]; sections: numbers of pairs that turn with axis 0, 1, ..., and from 0 again.
    """
    theta = 1.0 / base ** (torch.arange(0, turned, 2).float() / turned)
    axis = torch.arange(len(sections)) % len(places)
    axis = axis.repeat_interleave(torch.tensor(list(sections)))
    angles = places[axis].T.double() * theta.double()  # far places keep their exact angles
    angles = F.pad(angles, (0, (head_dim - turned) // 2))
    return torch.stack([angles.cos(), angles.sin()], -1).float()


def regrid_table(table: Tensor, prefix: int, old: int, new: int) -> Tensor:
    """Replaces the table's old^2 cells after `prefix` rows by new^2 cells; other rows stay."""
    if new == old:
        return table
    cells = table[prefix : prefix + old * old].unflatten(0, (old, old))
    half = table.shape[1] // 2
    # Angles of one step down and of one step to the right: less than half a turn.
    steps = torch.cat([cells[1, 0, :half], cells[0, 1, half:]]).double()
    theta = torch.atan2(steps[:, 1], steps[:, 0])
    cells_at = torch.arange(new).double()
    angles = torch.empty(new, new, 2 * half, dtype=torch.double)
    angles[..., :half] = (cells_at[:, None] * theta[:half])[:, None]
    angles[..., half:] = (cells_at[:, None] * theta[half:])[None]
    grid = torch.stack([angles.cos(), angles.sin()], -1).flatten(0, 1).to(table.dtype)
    return torch.cat([table[:prefix], grid, table[prefix + old * old :]])


def adjacent_pairs(weight: Tensor, heads: int, turned: int = 0) -> Tensor:
    """Rows [heads * D, ...] with rows i and i + D/2 of every head moved to 2i and 2i + 1.

    For checkpoints whose heads turn features i and i + D/2 together. turned: the first features of a head
    that these are, where the others do not turn; 0: all D.
    """
    each = weight.unflatten(0, (heads, -1))
    turned = turned or each.shape[1]
    pairs = each[:, :turned].unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)
    return torch.cat([pairs, each[:, turned:]], 1).view(weight.shape)
