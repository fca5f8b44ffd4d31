"""A drafter with fewer key/value heads than heads: a recorded case with some of its heads, run anew.

The plain program that records it repeats the published one's record first.
"""

from __future__ import annotations

import pytest
import torch
from golden_cases import FOLDER, Case
from plain_drafter import Recording, grouped_case
from test_lantern_drafter_chameleon import (  # noqa: F401  the tests and their fixtures
    bundle,
    drafting,
    test_dynamic_trees,
    test_stable_and_tree_passes,
    test_static_tree,
)

NAME = "lantern_drafter_anole"
KEPT = [0, 2]  # leave no two scores so close that rounding could decide which is larger


@pytest.fixture(scope="module")
def reference() -> Case:
    return Case(NAME, FOLDER / "chameleon" / NAME)


@pytest.fixture(scope="module")
def case(reference: Case, tmp_path_factory: pytest.TempPathFactory) -> Case:
    return grouped_case(reference, KEPT, tmp_path_factory.mktemp("grouped"))


def test_plain_program(reference: Case) -> None:
    """It says what the official code said."""
    allowed = reference.info["tolerance"]
    for name, got in Recording(reference).tensors.items():
        expected = reference.tensors[name]
        if name.endswith("retrieve_indices"):  # their order is the official code's own
            assert {*map(tuple, got.tolist())} == {*map(tuple, expected.tolist())}, name
        elif not got.is_floating_point():
            assert torch.equal(got, expected), name
        elif name.endswith("conditional_probs"):
            torch.testing.assert_close(got, expected, rtol=0, atol=1e-3)
        else:
            if name.endswith("call0.pass0.hidden_out"):  # rows of the padding are anything
                rows = reference.tensors["padding_mask"].bool()
                got, expected = got[rows], expected[rows]
            scores = "score" in name or "logprob" in name
            atol = allowed["logprob_abs" if scores else "hidden_abs"]
            assert torch.equal(got.isinf(), expected.isinf() | (expected < -1e30)), name
            finite = got.isfinite()
            torch.testing.assert_close(got[finite], expected[finite], rtol=0, atol=atol)


def test_case_differs_from_the_reference(case: Case, reference: Case) -> None:
    """Fewer heads give other results, and no decision is a close one."""
    assert case.info["dims"]["kv_heads"] < case.info["dims"]["heads"]
    name = "sampling.call0.pass0.hidden_out"
    assert (case.tensors[name][0] - reference.tensors[name][0]).abs().max() > 0.01
    assert case.info["self_check"]["smallest_gap_in_any_top_k_decision"] > 5e-5
