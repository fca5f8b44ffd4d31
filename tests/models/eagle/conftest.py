"""Fixtures of EAGLE's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from eagle_files import Files

from models import ops


@pytest.fixture
def files(tmp_path: Path) -> Files:
    ops.load()
    return Files(tmp_path)
