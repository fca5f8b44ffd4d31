"""The scripts that reproduce tables of papers, on a tiny bundle."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

Result = subprocess.CompletedProcess[str]
ROWS = {"lantern_table2": 8, "lanternpp_table2": 4}


def reproduce(
    lamplighter: Path, table: str, *flags: object, folder: Path, **variables: object
) -> Result:
    settings = {"PROGRAM": lamplighter, "PYTHON": sys.executable, "THREADS": 1, **variables}
    environment = {**os.environ, **{name: str(value) for name, value in settings.items()}}
    script = ROOT / "scripts" / "reproduce" / f"{table}.sh"
    return subprocess.run(
        [str(script), *map(str, flags)], env=environment, cwd=folder, capture_output=True, text=True
    )


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    (tmp_path / "captions.json").write_text(json.dumps(["a cat", "a dog", "a bird"]))
    return tmp_path / "captions.json"


@pytest.fixture
def whole_bundle(drafter_bundle: Path, lamplighter: Path, tmp_path: Path) -> Path:
    """The tiny bundle with a drafter and a table of nearest codes."""
    shutil.copytree(drafter_bundle, tmp_path / "whole")
    command = [str(lamplighter), "neighbours", "-q", "--bundle", str(tmp_path / "whole")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return tmp_path / "whole"


@pytest.mark.parametrize("table", ROWS)
def test_a_table_is_generated_once(
    lamplighter: Path, whole_bundle: Path, captions: Path, tmp_path: Path, table: str
) -> None:
    given = {"BUNDLE": whole_bundle, "CAPTIONS": captions, "LIMIT": 2, "OUT": tmp_path / "out"}
    first = reproduce(lamplighter, table, folder=tmp_path, **given)
    assert first.returncode == 0, first.stderr
    rows = json.loads((tmp_path / "out" / "table.json").read_text())["rows"]
    assert [row["images"] for row in rows] == [2] * ROWS[table]
    assert rows[0]["S"] == 1 and rows[0]["ratio"] == 1
    notes = (tmp_path / "out" / "notes.txt").read_text()
    assert "keeps all of its 40 codes" in notes
    if table == "lantern_table2":
        assert rows[4]["method"] == "AR T=1" and rows[4]["ratio"] == 1
        assert "relax-k 39 instead of 1000" in notes
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").rglob("*.png")}
    assert len(before) == 2 * ROWS[table]
    second = reproduce(lamplighter, table, folder=tmp_path, **given)
    assert second.returncode == 0 and second.stdout == first.stdout
    assert {f: f.stat().st_mtime_ns for f in (tmp_path / "out").rglob("*.png")} == before


def test_a_row_that_the_bundle_cannot_run_gives_the_reason(
    lamplighter: Path, tiny_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    given = ("--bundle", tiny_bundle, "--captions", captions, "--limit", 1)
    result = reproduce(lamplighter, "lanternpp_table2", *given, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    out = tmp_path / "out" / "lanternpp_table2" / tiny_bundle.name
    rows = json.loads((out / "table.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["AR"]
    skipped = [
        line for line in (out / "notes.txt").read_text().splitlines() if "not generated:" in line
    ]
    assert len(skipped) == 3 and all("drafter" in line for line in skipped)


def test_a_folder_of_other_settings_is_refused(
    lamplighter: Path, tiny_bundle: Path, captions: Path, tmp_path: Path
) -> None:
    ar = tmp_path / "out" / "lanternpp_table2" / tiny_bundle.name / "ar"
    ar.parent.mkdir(parents=True)
    command = [lamplighter, "batch", "-q", "-m", tiny_bundle, captions, "--limit", 1, "-o", ar]
    subprocess.run([str(word) for word in command], check=True, capture_output=True)
    given = ("--bundle", tiny_bundle, "--captions", captions)
    result = reproduce(lamplighter, "lanternpp_table2", *given, folder=tmp_path)
    assert result.returncode == 2
    assert "was started with another configuration" in result.stderr


def test_the_demo_has_captions_and_an_estimate(
    lamplighter: Path, demo_bundle: Path, tmp_path: Path
) -> None:
    given = ("--bundle", demo_bundle, "--limit", 2, "--out", tmp_path / "o", "--dry-run")
    result = reproduce(lamplighter, "lanternpp_table2", *given, folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("2 images to generate, about") == ROWS["lanternpp_table2"]
    assert len(json.loads((tmp_path / "o" / "captions.json").read_text())) == 2
    assert not list((tmp_path / "o").rglob("*.png"))


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ((), "--bundle: got None, expected the folder of a bundle"),
        (("--bundle", "{bundle}"), "--captions: missing, expected the paper's captions"),
        (("--bundle", "{bundle}", "--captions", "none.json"), "--captions: none.json: no such file"),
        (("--bundle", "{bundle}", "--limit", "0"), "--limit: got 0"),
    ],
)  # fmt: skip
def test_bad_flags(
    lamplighter: Path, tiny_bundle: Path, tmp_path: Path, flags: tuple[str, ...], line: str
) -> None:
    words = [flag.format(bundle=tiny_bundle) for flag in flags]
    result = reproduce(lamplighter, "lantern_table2", *words, folder=tmp_path)
    assert result.returncode == 2 and line in result.stderr
    assert not list(tmp_path.iterdir())


def test_help_lists_the_settings(lamplighter: Path, tmp_path: Path) -> None:
    result = reproduce(lamplighter, "lanternpp_table2", "--help", folder=tmp_path)
    assert result.returncode == 0
    assert "Guidance 3, temperature 1, top-k 2000" in result.stdout and "BUNDLE=" in result.stdout
