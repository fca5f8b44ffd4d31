"""Emu3 and Emu3.5 from published folders and captions to pixels: exporter, prompts, logits, compiled loop, decoder."""

from __future__ import annotations

from pathlib import Path

import golden_emu3 as emu3
import golden_engine as engine
import pytest
from golden_cases import Case

KINDS = ("families/emu3_generate", "families/emu35_generate")


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return emu3.export(case, tmp_path_factory.mktemp("emu3"))


def test_check(bundle: Path) -> None:
    engine.run(engine.BUILD / "lamplighter", "check", bundle, "--device", "cpu")


def test_prompts(case: Case, bundle: Path) -> None:
    emu3.check_prompts(case, bundle)


def test_frame(case: Case, bundle: Path) -> None:
    emu3.check_frame(case, bundle)


def test_logits(case: Case, bundle: Path) -> None:
    emu3.check_logits(case, bundle)


@pytest.mark.parametrize("method", emu3.METHODS, ids=lambda method: method[0])
def test_greedy(case: Case, bundle: Path, tmp_path: Path, method: tuple[object, ...]) -> None:
    emu3.check_codes(case, bundle, tmp_path, method)
