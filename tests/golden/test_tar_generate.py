"""Tar's language model from the published folder and captions to codes: exporter, prompts, logits, compiled loop."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_tar as tar
import pytest
from golden_cases import Case

KINDS = ("families/tar_generate",)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tar.export(case, tmp_path_factory.mktemp("tar"))


def test_check(bundle: Path) -> None:
    engine.run(engine.BUILD / "lamplighter", "check", bundle, "--device", "cpu")


def test_prompts(case: Case, bundle: Path) -> None:
    tar.check_prompts(case, bundle)


def test_logits(case: Case, bundle: Path) -> None:
    tar.check_logits(case, bundle)


@pytest.mark.parametrize("method", tar.METHODS, ids=lambda method: method[0])
def test_greedy(case: Case, bundle: Path, tmp_path: Path, method: tuple[object, ...]) -> None:
    tar.check_codes(case, bundle, tmp_path, method)
