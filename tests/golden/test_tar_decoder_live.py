"""Tar's de-tokenizer against the official code, with other sizes than the recorded ones; skipped without it.

PYTHONPATH=CLONE VENV/bin/python -m pytest tests/golden/test_tar_decoder_live.py    # as in record_tar_decoder.py
"""

from __future__ import annotations

from pathlib import Path

import golden_tar_decoder as tar_decoder
import pytest
from golden_cases import Case

pytest.importorskip("transformers")
pytest.importorskip("tok")
record_tar_decoder = pytest.importorskip("record_tar_decoder")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", sorted(record_tar_decoder.SHAPES))
def test_other_models(tmp_path: Path, shape: str, seed: int) -> None:
    record_tar_decoder.record(tmp_path / "case", record_tar_decoder.SHAPES[shape], seed)
    tar_decoder.check(Case("families/tar_decoder_live", tmp_path / "case"), tmp_path)
