"""GLM-Image against transformers itself, with other sizes than the recorded ones; skipped without transformers.

VENV/bin/python -m pytest tests/golden/test_glm_image_live.py      # VENV as in record_glm_image.py
"""

from __future__ import annotations

from pathlib import Path

import golden_glm_image as glm_image
import pytest
from golden_cases import Case

pytest.importorskip("transformers")
record_glm_image = pytest.importorskip("record_glm_image")


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("shape", sorted(record_glm_image.SHAPES))
def test_other_models(tmp_path: Path, shape: str, seed: int) -> None:
    record_glm_image.record(tmp_path / "case", record_glm_image.SHAPES[shape], seed)
    case = Case("families/glm_image_generate_live", tmp_path / "case")
    bundle = glm_image.export(case, tmp_path)
    glm_image.check_prompts(case, bundle)
    glm_image.check_grid(case, bundle)
    glm_image.check_logits(case, bundle)
    for method in glm_image.METHODS:
        glm_image.check_codes(case, bundle, tmp_path, method)
