"""tune-tree on small random bundles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.e2e.support import Cli, Refused, numbers


def test_tune_tree_writes_a_tree_that_runs(
    cli: Cli, tiny_bundle: Path, drafter_bundle: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "tuned"
    shutil.copytree(drafter_bundle, bundle)
    (tmp_path / "tree.json").write_text("an old tree")
    result = cli(
        "tune-tree", "--bundle", bundle, "-p", "a red hill", "-b", 20, "--method",
        "lantern++:k=39:lambda=1000", "--max-nodes", 3, "--rounds", 3, "-o", "tree.json",
        "--overwrite", "--threads", 1, model=tiny_bundle,  # which has no drafter: --bundle counts
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert 1 <= len(tree["paths"]) <= 3
    about = tree["about"]
    assert about["pictures"] == 20 and len(about["target_pass_ms_by_rows"]) == 4
    assert all(0 <= sum(row) <= 1 + 1e-9 for row in about["acceptance_by_depth_and_rank"])
    for quantity in ("acceptance_length", "speedup"):
        assert 0 < about[quantity]["low"] <= about[quantity]["mean"] <= about[quantity]["high"]
        assert about[quantity]["count"] == 20
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["trees"] == {"cpu": "tree-cpu.json"}
    assert (bundle / "tree-cpu.json").read_text() == (tmp_path / "tree.json").read_text()
    report = numbers(cli, "bench", "--methods", "eagle", "--repeats", 1, model=bundle)
    assert len(report["methods"][1]["reached_depth"]) == max(map(len, tree["paths"]))


def test_tune_tree_keeps_a_tree_that_was_tuned_before(
    cli: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "tuned"
    shutil.copytree(drafter_bundle, bundle)
    # Without captions it brings its own.
    words = ("tune-tree", "--bundle", bundle, "-b", 5, "--max-nodes", 1, "--rounds", 1)
    first = cli(*words, model=None)
    assert first.returncode == 0, first.stderr
    tree = (bundle / "tree-cpu.json").read_bytes()
    again = cli(*words, model=None)
    assert (
        again.returncode == 7 and "has a tree for cpu, tree-cpu.json; --overwrite" in again.stderr
    )
    assert (bundle / "tree-cpu.json").read_bytes() == tree
    assert cli(*words, "--overwrite", model=None).returncode == 0


def test_tune_tree_finds_a_window(
    cli: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    words = ("tune-tree", "--method", "sjd:init=above", "-p", "a red hill", "--max-nodes", 3)
    result = cli(*words, "-o", "window.json", "--json", model=tiny_bundle)  # it has no drafter
    assert result.returncode == 0, result.stderr
    tree = json.loads(result.stdout)
    assert tree == json.loads((tmp_path / "window.json").read_text())
    length = len(tree["paths"])
    assert tree["paths"] == [[0] * depth for depth in range(1, length + 1)] and length <= 3
    windows = tree["about"]["windows"]
    assert [window["method"] for window in windows[1:]] == [
        f"sjd:init=above:tree=chain-{n}" for n in (1, 2, 3)
    ]
    best = max(windows[1:], key=lambda window: window["speedup"]["mean"])
    assert windows.index(best) == length and best["speedup"] == tree["about"]["speedup"]
    drawn = cli(
        "generate",
        "-p",
        "a",
        "--method",
        "sjd",
        "--tree",
        "window.json",
        "-o",
        "a.png",
        model=tiny_bundle,
    )
    assert drawn.returncode == 0, drawn.stderr
    assert "--save-table" in refused(2, *words, "--bundle", tiny_bundle, model=None)
    gsd = ("tune-tree", "--method", "gsd", "--save-table")
    assert "expected an exact one" in refused(2, *gsd, model=tiny_bundle)


def test_tune_tree_finds_a_fan(cli: Cli, tiny_bundle: Path) -> None:
    words = ("tune-tree", "--method", "sjd-pac", "-p", "a red hill", "--max-nodes", 6, "--json")
    result = cli(*words, "-o", "window.json", model=tiny_bundle)
    assert result.returncode == 0, result.stderr
    tried = [window["method"] for window in json.loads(result.stdout)["about"]["windows"]]
    assert {"sjd-pac:tree=chain-6", "sjd-pac:tree=fan-2-1-5", "sjd-pac:tree=fan-2-2-2"} < set(tried)
    drawn = ("generate", "-p", "a", "--method", "sjd-pac", "--tree", "window.json", "-o", "a.png")
    assert cli(*drawn, model=tiny_bundle).returncode == 0


def test_tune_tree_takes_one_bundle(refused: Refused, drafter_bundle: Path) -> None:
    words = ("tune-tree", "-p", "x", "--bundle", "missing")
    # The flag goes before the variable.
    assert "bundle missing" in refused(4, *words, model=drafter_bundle)
    assert "two bundles" in refused(2, *words, "--model", drafter_bundle, model=None)


def test_tune_tree_needs_a_place_for_the_tree(refused: Refused, drafter_bundle: Path) -> None:
    assert "--output" in refused(2, "tune-tree", "-p", "x", model=drafter_bundle)
    assert "ar" in refused(
        2, "tune-tree", "-p", "x", "--json", "--method", "ar", model=drafter_bundle
    )
