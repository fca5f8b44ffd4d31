"""Runs every recorded case by its kind and counts cases, not tests.

A case passes when a test of its kind has passed and none has failed. That it can be read says nothing about the
engine, so a case whose other tests are all skipped, or that has none, counts as skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import golden_cases
import pytest
import torch
from golden_cases import Case

outcomes: dict[str, set[str]] = {}  # of the tests of a case's kind; "failed" of any


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Parameter `case`: all cases of the module's KINDS, or all there are.

    A module may have a fixture of that name instead.
    """
    if hasattr(metafunc.module, "case"):
        return
    if "case" in metafunc.fixturenames and "golden" in Path(metafunc.module.__file__).parts:
        kinds = getattr(metafunc.module, "KINDS", None)
        cases = golden_cases.cases_of(*kinds) if kinds else golden_cases.all_cases()
        metafunc.parametrize("case", cases, ids=[case.name for case in cases], scope="module")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    case = getattr(item, "callspec", None) and item.callspec.params.get("case")
    if not isinstance(case, Case) or (report.when != "call" and report.passed):
        return
    seen = outcomes.setdefault(case.name, set())
    if hasattr(item.module, "KINDS") or report.failed:  # type: ignore[attr-defined]
        seen.add(report.outcome)


def pytest_unconfigure(config: pytest.Config) -> None:
    """The last line of the run."""
    if not outcomes or config.option.collectonly:
        return
    failed = sum("failed" in seen for seen in outcomes.values())
    passed = sum("passed" in seen and "failed" not in seen for seen in outcomes.values())
    skipped = len(outcomes) - failed - passed
    print(f"golden: {passed} cases passed, {failed} failed, {skipped} skipped")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)
