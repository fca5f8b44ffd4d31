"""Tar's language model against transformers itself, with other sizes than the recorded ones; skipped without it.

VENV/bin/python -m pytest tests/golden/test_tar_live.py      # VENV as in record_tar.py
"""

from __future__ import annotations

from pathlib import Path

import golden_tar as tar
import pytest
from golden_cases import Case

pytest.importorskip("transformers")
record_tar = pytest.importorskip("record_tar")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", sorted(record_tar.SHAPES))
def test_other_models(tmp_path: Path, shape: str, seed: int) -> None:
    record_tar.record(tmp_path / "case", record_tar.SHAPES[shape], seed)
    tar.check(Case("families/tar_generate_live", tmp_path / "case"), tmp_path)
