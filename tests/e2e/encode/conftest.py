"""A bundle with an image encoder, and `encode` with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.encode.images import Encode, codes
from tests.e2e.support import Cli


@pytest.fixture
def bundle(family: Callable[[str], Path]) -> Path:
    """Images of 64 x 48 pixels, 3 x 4 codes of 48."""
    return family("chameleon")


@pytest.fixture
def encode(ran: Cli, bundle: Path, tmp_path: Path) -> Encode:
    def run(*words: object, model: Path = bundle) -> list[list[int]]:
        result = ran("encode", *words, "-o", "codes.json", "--overwrite", model=model)
        assert result.stdout == "codes.json\n" and result.stderr == ""
        return codes(tmp_path / "codes.json")

    return run
