"""Draft trees, acceptance rules and neighbour tables on the host reference."""

from __future__ import annotations

import golden_engine as engine
from golden_cases import Case

KINDS = (
    "acceptance/official_posterior",
    "acceptance/paper_posterior",
    "acceptance/enumeration",
    "acceptance/dynamic_trees",
    "acceptance/other_verifiers",
    "acceptance/trees",
    "acceptance/neighbors",
)


def test_replay(case: Case) -> None:
    """Every scenario of the case, verified by tests/golden/programs/golden_acceptance.cpp."""
    engine.run(engine.BUILD / "golden_acceptance", case.folder)
