"""scripts/render_benchmarks.py: BENCHMARKS.md agrees with the measurements, and what makes the script refuse."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runner

PARTS = ("BENCHMARKS.md", "scripts/render_benchmarks.py", "scripts/benchmark_tables.json")
MOST_LINES = 250
MOST_BYTES = 2_000_000


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the page, the script and the measurements."""
    shutil.copytree(ROOT / "scripts" / "results", tmp_path / "scripts" / "results")
    for part in PARTS:
        shutil.copy(ROOT / part, tmp_path / part)
    return tmp_path


def render(run_program: Runner, root: Path, *flags: str) -> tuple[int, str]:
    result = run_program(sys.executable, root / "scripts" / "render_benchmarks.py", *flags)
    return result.returncode, result.stdout + result.stderr


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_tables_are_those_of_the_measurements(run_program: Runner) -> None:
    assert render(run_program, ROOT, "--check") == (0, "")


def test_size() -> None:
    page = (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8").splitlines()
    assert len(page) <= MOST_LINES
    assert [line for line in page if len(line) > 140 and not line.startswith(("|", "["))] == []
    assert sum(f.stat().st_size for f in (ROOT / "scripts" / "results").iterdir()) <= MOST_BYTES


def test_links_and_files_exist() -> None:
    page = (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8")
    heads = re.findall(r"^##+ (.*)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
    assert set(re.findall(r"\]\(#([^)]*)\)", page)) <= anchors
    runs = {path.stem for path in (ROOT / "scripts" / "results").glob("*.json")}
    named = re.findall(r"\((`\w[\w-]*`(?:, `\w[\w-]*`)*)\)", page)
    assert named and {name.strip("`") for names in named for name in names.split(", ")} <= runs


def test_every_run_says_how_it_was_measured() -> None:
    for path in (ROOT / "scripts" / "results").glob("*.json"):
        run = json.loads(path.read_text(encoding="utf-8"))
        assert all(run.get(key) for key in ("title", "machine", "date", "command")), path.name


def test_a_figure_edited_by_hand_is_found(run_program: Runner, copy: Path) -> None:
    replace(copy / "BENCHMARKS.md", "2.47 [2.24, 2.73]", "2.74 [2.24, 2.73]")
    code, words = render(run_program, copy, "--check")
    assert code == 1 and words.startswith("stale: BENCHMARKS.md: cpu;") and words.count("\n") == 1
    assert render(run_program, copy) == (0, "")
    assert (copy / "BENCHMARKS.md").read_text() == (ROOT / "BENCHMARKS.md").read_text()


def test_a_changed_measurement_is_found(run_program: Runner, copy: Path) -> None:
    replace(copy / "scripts" / "results" / "sapphire-rapids-l.json", "5510", "5511")
    code, words = render(run_program, copy, "--check")
    assert code == 1 and "BENCHMARKS.md: cpu;" in words
    assert render(run_program, copy) == (0, "") == render(run_program, copy, "--check")
    assert "| 5511 |" in (copy / "BENCHMARKS.md").read_text()


def test_a_file_of_bench_replaces_a_run(
    run_program: Runner, copy: Path, lamplighter: Path, demo_bundle: Path
) -> None:
    run = copy / "scripts" / "results" / "demo.json"
    methods = "sjd:tree=chain-5,lantern++:lambda=3:k=10:tree=chain-3"
    result = run_program(
        lamplighter, "bench", "-m", demo_bundle, "-t", 1, "-p", "a red sailboat", "-b", 2, "--warmup", 0,
        "--repeats", 1, "--methods", methods, "--export-json", run, "--overwrite",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    exported = json.loads(run.read_text())["methods"][1]
    assert exported["method"] == "sjd:tree=chain-5"
    assert render(run_program, copy) == (0, "") == render(run_program, copy, "--check")
    page = (copy / "BENCHMARKS.md").read_text()
    assert re.search(
        rf"^\| `sjd:tree=chain-5` \| {exported['speedup']['mean']:.2f} \[", page, re.MULTILINE
    )
    code, words = render(run_program, copy, "--show", str(run))
    assert code == 0 and f"| {exported['step_compression']['mean']} |" in words


@pytest.mark.parametrize(
    ("part", "old", "new", "line"),
    [
        ("BENCHMARKS.md", "<!-- end -->", "", "BENCHMARKS.md: a table has no <!-- end -->"),
        ("BENCHMARKS.md", "<!-- table: gpu -->", "<!-- table: cup -->", "table cup: not in"),
        ("BENCHMARKS.md", "<!-- table: gpu -->", "", "on no page: gpu"),
        ("scripts/benchmark_tables.json", "{S:.2f}", "{s:.2f}", 'cpu: S: no row has "s"'),
        ("scripts/benchmark_tables.json", '"l-memory"', '"l-memoir"', "no file scripts/results/l-memoir"),
        ("scripts/benchmark_tables.json", '"isa": "AVX-VNNI"', '"isa": "AVX-VNNY"', "no row of sapphire-rapids-l-avx has isa: AVX-VNNY"),
        ("scripts/benchmark_tables.json", "{S:.2f}", "{S:q}", "cpu: ValueError"),
        ("scripts/results/l.json", '"lossless", "tau"', '"lossless"', "results/l.json: zip()"),
        ("scripts/results/l.json", '"columns"', '"column"', "results/l.json: 'columns'; expected"),
        ("scripts/results/l.json", "{", "", "scripts/results/l.json: Extra data"),
    ],
)  # fmt: skip
def test_faults(run_program: Runner, copy: Path, part: str, old: str, new: str, line: str) -> None:
    replace(copy / part, old, new)
    before = (copy / "BENCHMARKS.md").read_text()
    code, words = render(run_program, copy)
    assert code == 2 and line in words and words.count("\n") == 1
    assert (copy / "BENCHMARKS.md").read_text() == before
