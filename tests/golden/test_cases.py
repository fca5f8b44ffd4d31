"""Every case is of a known kind and can be read."""

from __future__ import annotations

import golden_cases
from golden_cases import Case


def test_there_are_cases() -> None:
    assert golden_cases.all_cases(), f"no case.json below {golden_cases.root()}"


def test_readable(case: Case) -> None:
    assert case.kind is not None, f"{case.name}: unknown kind of case"
    case.check_files()
