"""Families from published folders and captions to codes or pixels: exporter, prompts, logits, compiled loop, decoder.

Recorded cases, and models of other sizes where what recorded them is installed:

VENV/bin/python -m pytest tests/golden/test_families.py -k other      # VENV as in record_*.py
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import golden_codes as codes
import golden_emu3 as emu3
import golden_engine as engine
import golden_janus as janus
import pytest
from golden_cases import Case

MODULES = {
    "families/emu3_generate": emu3,
    "families/emu35_generate": emu3,
    "families/glm_image_generate": codes,
    "families/janus_converted_generate": janus,
    "families/tar_generate": codes,
}
KINDS = tuple(MODULES)


@pytest.fixture(scope="module")
def family(case: Case) -> ModuleType:
    return MODULES[str(case.kind)]


@pytest.fixture(scope="module")
def bundle(case: Case, family: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return family.export(case, tmp_path_factory.mktemp("family"))


def test_check(case: Case, bundle: Path) -> None:
    engine.check(bundle)


def test_prompts(case: Case, family: ModuleType, bundle: Path) -> None:
    family.check_prompts(case, bundle)


def test_grids(case: Case, family: ModuleType, bundle: Path) -> None:
    family.check_grids(case, bundle)


def test_logits(case: Case, family: ModuleType, bundle: Path) -> None:
    family.check_logits(case, bundle)


@pytest.mark.parametrize("method", engine.METHODS, ids=lambda method: method[0])
def test_greedy(
    case: Case, family: ModuleType, bundle: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    family.check_codes(case, bundle, tmp_path, method)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["emu3", "emu35", "glm_image", "janus_converted", "tar"])
def test_other_models(tmp_path: Path, name: str, seed: int) -> None:
    """Recorded by the official program here and now."""
    pytest.importorskip("transformers")
    recorder = pytest.importorskip(f"record_{name}", exc_type=ImportError)
    family = MODULES[f"families/{name}_generate"]
    for shape in sorted(recorder.SHAPES):
        folder = tmp_path / shape
        recorder.record(folder / "case", recorder.SHAPES[shape], seed)
        case = Case(f"families/{name}_generate_live", folder / "case")
        bundle = family.export(case, folder)
        family.check_prompts(case, bundle)
        family.check_grids(case, bundle)
        family.check_logits(case, bundle)
        for method in engine.METHODS:
            family.check_codes(case, bundle, folder, method)
