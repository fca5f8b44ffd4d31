"""Tar's de-tokenizer from the published files and codes to pixels: exporter, features, logits, program."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import golden_tar_decoder as tar_decoder
import pytest
from golden_cases import Case

KINDS = ("families/tar_decoder",)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tar_decoder.export(case, tmp_path_factory.mktemp("tar_decoder"))


def test_check(bundle: Path) -> None:
    engine.check(bundle)


def test_features(case: Case, bundle: Path) -> None:
    tar_decoder.check_features(case, bundle)


def test_logits(case: Case, bundle: Path) -> None:
    tar_decoder.check_logits(case, bundle)


def test_pixels(case: Case, bundle: Path) -> None:
    tar_decoder.check_pixels(case, bundle)


@pytest.mark.parametrize("method", engine.METHODS, ids=lambda method: method[0])
def test_greedy(case: Case, bundle: Path, tmp_path: Path, method: tuple[object, ...]) -> None:
    tar_decoder.check_images(case, bundle, tmp_path, method)
