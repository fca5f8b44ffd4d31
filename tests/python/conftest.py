"""The package as it was built, and an engine that tests share."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def package(build_dir: Path) -> Any:
    if not list((build_dir / "python" / "lamplighter").glob("_native.*.so")):
        pytest.skip("the Python package is not built: Python.h was not found")
    sys.path.insert(0, str(build_dir / "python"))
    return importlib.import_module("lamplighter")


@pytest.fixture(scope="session")
def engine(package: Any, demo_bundle: Path) -> Any:
    return package.TextToImage(demo_bundle, device="cpu", threads=1)
