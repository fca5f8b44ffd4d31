"""Every case is of a known kind, or lies where others may be, and can be read."""

from __future__ import annotations

import golden_cases
import pytest
from golden_cases import Case


def test_there_are_cases() -> None:
    assert golden_cases.all_cases(), f"no case.json below {golden_cases.root()}"


def test_readable(case: Case) -> None:
    if case.kind is None and case.group:
        pytest.skip(f"{case.name}: no test of this kind")
    assert case.kind is not None, f"{case.name}: unknown kind of case"
    case.check_files()
