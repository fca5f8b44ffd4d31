"""Fixtures of MAR's tests."""

from __future__ import annotations

import pytest
from mar_files import SHAPE, random_model

from models.mar.network import MAR


@pytest.fixture(scope="module")
def model() -> MAR:
    return random_model(SHAPE)
