"""Small bundles of every family."""

from __future__ import annotations

import functools

import pytest

from tests.e2e.bundles.checks import FAMILIES, Twin


@pytest.fixture(scope="session")
def twin(tmp_path_factory: pytest.TempPathFactory) -> Twin:
    """Makes the bundle of a row of FAMILIES, once."""
    make = functools.cache(
        lambda name: FAMILIES[name].bundle(tmp_path_factory.mktemp(name.replace(" ", "-")))
    )
    return make
