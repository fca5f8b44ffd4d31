"""Emu3.5 against the authors' program, with other sizes than the recorded ones; skipped without it.

PYTHONPATH=EMU VENV/bin/python -m pytest tests/golden/test_emu35_live.py      # as in record_emu35.py
"""

from __future__ import annotations

from pathlib import Path

import golden_emu3 as emu3
import pytest
from golden_cases import Case

pytest.importorskip("transformers")
record_emu35 = pytest.importorskip("record_emu35")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", sorted(record_emu35.SHAPES))
def test_other_models(tmp_path: Path, shape: str, seed: int) -> None:
    record_emu35.record(tmp_path / "case", record_emu35.SHAPES[shape], seed)
    emu3.check(Case("families/emu35_generate_live", tmp_path / "case"), tmp_path)
