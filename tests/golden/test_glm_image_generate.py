"""GLM-Image from the published folder and captions to codes: exporter, prompts, logits, compiled loop."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_glm_image as glm_image
import pytest
from golden_cases import Case

KINDS = ("families/glm_image_generate",)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return glm_image.export(case, tmp_path_factory.mktemp("glm_image"))


def test_check(bundle: Path) -> None:
    engine.run(engine.BUILD / "lamplighter", "check", bundle, "--device", "cpu")


def test_prompts(case: Case, bundle: Path) -> None:
    glm_image.check_prompts(case, bundle)


def test_grid(case: Case, bundle: Path) -> None:
    glm_image.check_grid(case, bundle)


def test_logits(case: Case, bundle: Path) -> None:
    glm_image.check_logits(case, bundle)


@pytest.mark.parametrize("method", glm_image.METHODS, ids=lambda method: method[0])
def test_greedy(case: Case, bundle: Path, tmp_path: Path, method: tuple[object, ...]) -> None:
    glm_image.check_codes(case, bundle, tmp_path, method)
