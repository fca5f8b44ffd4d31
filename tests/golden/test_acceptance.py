"""Draft trees, acceptance rules and neighbour tables: the host reference and the operators."""

from __future__ import annotations

import golden_engine as engine
import pytest
from golden_cases import Case

HOST_ONLY = ("acceptance/trees", "acceptance/neighbors")
KINDS = (
    "acceptance/official_posterior",
    "acceptance/paper_posterior",
    "acceptance/enumeration",
    "acceptance/dynamic_trees",
    "acceptance/other_verifiers",
    *HOST_ONLY,
)


@pytest.mark.parametrize("side", ["host", "operators"])
def test_replay(case: Case, side: str) -> None:
    """Every scenario of the case, judged by tests/tools/golden_acceptance.cpp."""
    if side == "operators" and case.kind in HOST_ONLY:
        return
    options = ["--operators"] if side == "operators" else []
    engine.run(engine.BUILD / "golden_acceptance", case.folder, *options)
