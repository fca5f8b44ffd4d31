"""Acceptance rules and dynamic trees through verify_tree, expand_dynamic and rerank_dynamic."""

from __future__ import annotations

import golden_engine as engine
from golden_cases import Case

KINDS = (
    "acceptance/official_posterior",
    "acceptance/paper_posterior",
    "acceptance/enumeration",
    "acceptance/dynamic_trees",
    "acceptance/other_verifiers",
)


def test_replay(case: Case) -> None:
    """The same scenarios as on the host, decisions alike."""
    engine.run(engine.BUILD / "golden_acceptance", case.folder, "--operators")
