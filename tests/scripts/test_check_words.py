"""scripts/check_words.py: words in text and in names, and their exceptions."""

from __future__ import annotations

import sys

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from check_words import check


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("// The judge proposes.", ["judge", "proposes"]),
        ("int loop_law = lawOfCycle(JointLaw);", ["law", "law", "Law"]),
        ("PICTURES = told(so many)", ["PICTURES", "told", "so many"]),
        ("it drew those of such a picture", ["drew", "those of", "such", "picture"]),
    ],
)
def test_banned_words(line: str, found: list[str]) -> None:
    problems = check("src/x.h", f"\n{line}\n")
    assert all(problem.startswith("src/x.h:2: ") for problem in problems)
    assert sorted(problem.split('"')[1] for problem in problems) == sorted(found)


@pytest.mark.parametrize(
    "line",
    [
        "proposals for a rejected token, a flaw in the lawn, withdraw, seamless",
        "No such file; numbers such as 2; images of those captions",
        "from PIL import ImageDraw",
    ],
)
def test_other_words(line: str) -> None:
    assert check("src/x.h", line) == []


def test_rendering_code_draws() -> None:
    assert check("src/image/canvas.h", "void draw_line();") == []
    assert check("src/draft/draft.h", "void draw_line();") != []
