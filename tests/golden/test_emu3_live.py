"""Emu3 against transformers itself, with other sizes than the recorded ones; skipped without transformers.

VENV/bin/python -m pytest tests/golden/test_emu3_live.py      # VENV as in record_emu3.py
"""

from __future__ import annotations

from pathlib import Path

import golden_emu3 as emu3
import pytest
from golden_cases import Case

pytest.importorskip("transformers")
record_emu3 = pytest.importorskip("record_emu3")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", sorted(record_emu3.SHAPES))
def test_other_models(tmp_path: Path, shape: str, seed: int) -> None:
    record_emu3.record(tmp_path / "case", record_emu3.SHAPES[shape], seed)
    emu3.check(Case("families/emu3_generate_live", tmp_path / "case"), tmp_path)
