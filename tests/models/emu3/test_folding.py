"""Emu3's halvings of the number of frames, folded for copies of one image, against convolutions over time."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from models.emu3.decoder import halved_frames
from models.emu3.folding import halving_of

WIDTH = 3


@pytest.mark.parametrize("doublings", [0, 1, 2, 3])
def test_halvings(doublings: int) -> None:
    random = torch.Generator().manual_seed(doublings)
    image = torch.randn(1, WIDTH, 5, 4, generator=random, dtype=torch.double)
    frames = image[:, :, None].repeat(1, 1, 2**doublings, 1, 1)
    folded, counts = image, halved_frames(doublings)
    assert len(counts) == doublings + 1 and counts[-1] == 1
    for before, after in zip(counts, counts[1:]):
        weight = torch.randn(WIDTH, WIDTH, 4, 3, 3, generator=random, dtype=torch.double)
        bias = torch.randn(WIDTH, generator=random, dtype=torch.double)
        padded = F.pad(frames, (1, 1, 1, 1, 2, 0))
        frames = F.silu(F.conv3d(padded, weight, bias, (2, 1, 1)))
        state = {"halving.conv.weight": weight, "halving.conv.bias": bias}
        folded = F.silu(F.conv2d(folded, *halving_of(state, "halving", before, after), padding=1))
        assert frames.shape[2] == after
        torch.testing.assert_close(folded, frames.transpose(1, 2).flatten(1, 2))
