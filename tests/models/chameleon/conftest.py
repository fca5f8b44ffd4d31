"""Weights of a small Chameleon."""

from __future__ import annotations

import pytest
import torch
from chameleon_files import SHAPE
from torch import Tensor

from models.chameleon.transformer import Chameleon


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    torch.manual_seed(9)
    model = Chameleon(SHAPE)
    model.reset()
    return model.state_dict()
