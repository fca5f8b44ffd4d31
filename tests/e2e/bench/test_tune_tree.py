"""tune-tree on small random bundles."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Cli, Refused, numbers


def test_tune_tree_writes_a_tree_that_runs(
    cli: Cli, ran: Cli, tiny_bundle: Path, drafter_bundle: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "tuned"
    shutil.copytree(drafter_bundle, bundle)
    (tmp_path / "tree.json").write_text("an old tree")
    ran(
        "tune-tree", "--bundle", bundle, "-p", "a red hill", "-b", 20, "--method",
        "lantern++:k=39:lambda=1000", "--max-nodes", 3, "--rounds", 3, "-o", "tree.json",
        "--overwrite", "--threads", 1, model=tiny_bundle,  # this one has no drafter: --bundle wins
    )  # fmt: skip
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert 1 <= len(tree["paths"]) <= 3
    about = tree["about"]
    assert about["images"] == 20 and len(about["target_pass_ms_by_rows"]) == 4
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
    cli: Cli, ran: Cli, drafter_bundle: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "tuned"
    shutil.copytree(drafter_bundle, bundle)
    # Without captions it uses its own.
    words = ("tune-tree", "--bundle", bundle, "-b", 5, "--max-nodes", 1, "--rounds", 1)
    first = ran(*words, model=None).stderr
    assert "tree of 1 drafted node, depth 1: " in first and ": 95 %], from " in first
    tree = (bundle / "tree-cpu.json").read_bytes()
    again = cli(*words, model=None)
    assert (
        again.returncode == 7 and "has a tree for cpu, tree-cpu.json; --overwrite" in again.stderr
    )
    assert (bundle / "tree-cpu.json").read_bytes() == tree
    assert cli(*words, "--overwrite", model=None).returncode == 0


def test_tune_tree_finds_a_window(
    ran: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    words = ("tune-tree", "--method", "sjd:init=above", "-p", "a red hill", "--max-nodes", 3)
    result = ran(*words, "-o", "window.json", "--json", model=tiny_bundle)  # it has no drafter
    tree = json.loads(result.stdout)
    assert tree == json.loads((tmp_path / "window.json").read_text())
    length = len(tree["paths"])
    assert tree["paths"] == [[0] * depth for depth in range(1, length + 1)] and length <= 3
    assert ": 95 %], from 1 image\n" in result.stderr
    once = ran(*words, "--rounds", 1, "--json", model=tiny_bundle)
    assert " times as fast as ar, from 1 image\n" in once.stderr, "one sample has no interval"
    windows = tree["about"]["candidates"]
    assert [window["method"] for window in windows[1:]] == [
        f"sjd:init=above:tree=chain-{n}" for n in (1, 2, 3)
    ]
    best = max(windows[1:], key=lambda window: window["speedup"]["mean"])
    assert windows.index(best) == length and best["speedup"] == tree["about"]["speedup"]
    flags = ("--method", "sjd", "--tree", "window.json", "-o", "a.png")
    ran("generate", "-p", "a", *flags, model=tiny_bundle)
    assert "--save-table" in refused(2, *words, "--bundle", tiny_bundle, model=None)
    gsd = ("tune-tree", "--method", "gsd", "--save-table")
    assert "expected a lossless one" in refused(2, *gsd, model=tiny_bundle)


def test_tune_tree_finds_the_window_of_a_refiner(ran: Cli, drafter_bundle: Path) -> None:
    words = ("tune-tree", "--method", "refine", "-p", "a red hill", "--max-nodes", 2, "--json")
    result = ran(*words, model=drafter_bundle)
    tried = [window["method"] for window in json.loads(result.stdout)["about"]["candidates"]]
    assert tried == ["ar", "refine:tree=chain-1", "refine:tree=chain-2"]


def test_tune_tree_finds_a_fan(cli: Cli, ran: Cli, tiny_bundle: Path) -> None:
    words = ("tune-tree", "--method", "sjd-pac", "-p", "a red hill", "--max-nodes", 6, "--json")
    result = ran(*words, "-o", "window.json", model=tiny_bundle)
    tried = [window["method"] for window in json.loads(result.stdout)["about"]["candidates"]]
    assert {"sjd-pac:tree=chain-6", "sjd-pac:tree=fan-2-1-5", "sjd-pac:tree=fan-2-2-2"} < set(tried)
    flags = ("--method", "sjd-pac", "--tree", "window.json", "-o", "a.png")
    assert cli("generate", "-p", "a", *flags, model=tiny_bundle).returncode == 0


def candidates(about: dict[str, Any]) -> list[str]:
    return [one["method"] for one in about["candidates"]]


def check_best(cli: Cli, about: dict[str, Any], bundle: Path) -> None:
    """The best candidate is the fastest, and its flags generate an image."""
    best = max(about["candidates"][1:], key=lambda one: one["speedup"]["mean"])
    assert best["speedup"] == about["speedup"]
    assert best["step_compression"]["mean"] > 1 and best["tokens_per_second"] > 0
    name, *options = best["method"].split(":")
    assert about["best"].split()[:2] == ["--method", name]
    assert set(about["best"].split()) > {part.split("=")[1] for part in options}
    result = cli("generate", "-p", "a", *about["best"].split(), "-o", "best.png", model=bundle)
    assert result.returncode == 0, result.stderr


def test_tune_tree_finds_the_distance_between_rows(cli: Cli, ran: Cli, tiny_bundle: Path) -> None:
    words = ("tune-tree", "--method", "zipar", "-p", "a red hill", "--rounds", 2)
    result = ran(*words, "--json", model=tiny_bundle)
    assert "is more lossy" in result.stderr and "times as fast as ar" in result.stderr
    found = json.loads(result.stdout)
    assert found.keys() == {"about"} and found["about"]["rounds"] == 2
    assert candidates(found["about"]) == ["ar", "zipar:ahead=1", "zipar:ahead=2"]
    check_best(cli, found["about"], tiny_bundle)
    # 2 is half a row, the largest distance, so it is the only candidate.
    table = ran(*words, "--ahead", 2, model=tiny_bundle)
    head, *rows, gap, best = table.stdout.splitlines()
    assert head.split()[:3] == ["candidate", "S", "speed-up"] and gap == ""
    assert [row.split()[0] for row in rows] == ["ar", "zipar:ahead=2"]
    assert all("[" in row for row in rows)
    assert best == "--method zipar --ahead 2"


@pytest.mark.parametrize("method", ["zipar+sjd", "pjd"])
def test_tune_tree_finds_the_windows_of_rows(
    cli: Cli, ran: Cli, tiny_bundle: Path, tmp_path: Path, method: str
) -> None:
    words = ("tune-tree", "--method", method, "-p", "a red hill", "--max-nodes", 2, "--json")
    result = ran(*words, "-o", "window.json", model=tiny_bundle)
    found = json.loads(result.stdout)
    assert candidates(found["about"]) == ["ar"] + [
        name
        for distance in (1, 2)
        for name in (
            f"zipar:ahead={distance}",
            f"{method}:ahead={distance}:tree=chain-1",
            f"{method}:ahead={distance}:tree=chain-2",
        )
    ]
    check_best(cli, found["about"], tiny_bundle)
    # No tree is written when parallel rows without windows are faster.
    window = f"--method {method} --tree chain-" in found["about"]["best"]
    assert ("paths" in found) == (tmp_path / "window.json").exists() == window
    assert ("alone: window.json is not written" in result.stderr) == (not window)
    fixed = json.loads(cli(*words, "--ahead", 3, model=tiny_bundle).stdout)
    assert candidates(fixed["about"])[1:3] == ["zipar:ahead=3", f"{method}:ahead=3:tree=chain-1"]


def test_tune_tree_refuses_options_that_rows_do_not_use(
    refused: Refused, tiny_bundle: Path, drafter_bundle: Path
) -> None:
    for words, message in (
        (("zipar", "--ahead", 3), "--ahead: got 3, expected 1 to 2, half of a row"),
        (("pjd", "--ahead", 0), "--ahead: got 0, expected 1 to 4096"),
        (("sjd", "--ahead", 2), "--ahead: got method sjd, expected a row-parallel method"),
        (("zipar:ahead=2",), "--ahead N is the least"),
        (("zipar", "-o", "tree.json"), "--output: got method zipar, expected a method with a tree"),
        (
            ("zipar", "--max-nodes", 2),
            "--max-nodes: got method zipar, expected a method that drafts",
        ),
        (
            ("pjd", "--max-depth", 2),
            "--max-depth: got method pjd, expected a method with a static tree",
        ),
        (
            ("sjd", "--clock", "processor"),
            "--clock: got method sjd, expected a method with a static tree",
        ),
        (("zipar", "--save-table"), "--save-table: got method zipar, expected a lossless one"),
    ):
        assert message in refused(2, "tune-tree", "-p", "x", "--method", *words, model=tiny_bundle)
    stored = ("tune-tree", "--method", "pjd", "--bundle", drafter_bundle)
    assert "expected --model DIR" in refused(2, *stored, model=None)


@pytest.mark.parametrize(("method", "deepest"), [("medusa", 4), ("mlp", 4), ("flash", 3)])
def test_tune_tree_is_limited_by_the_number_of_heads(
    cli: Cli,
    ran: Cli,
    refused: Refused,
    drafter_bundle: Path,
    tmp_path: Path,
    method: str,
    deepest: int,
) -> None:
    words = ("tune-tree", "--method", method, "-p", "a red hill", "--rounds", 1, "-o", "tree.json")
    assert f"--max-depth: got {deepest + 1}, expected 1..{deepest}: drafter " in refused(
        2, *words, "--max-depth", deepest + 1, model=drafter_bundle
    )
    assert "expected one whose drafter is a layer" in refused(
        2, *words, "--bundle", drafter_bundle, model=None
    )
    more = ("-b", 20, "--max-nodes", deepest + 2, "-t", 1)
    ran(*words, *more, model=drafter_bundle)
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert max(map(len, tree["paths"])) <= deepest
    assert len(tree["about"]["target_pass_ms_by_rows"]) == deepest + 3
    image = ("generate", "-p", "a", "--method", method, "--tree", "tree.json", "-o", "a.png")
    assert cli(*image, model=drafter_bundle).returncode == 0
    assert (
        cli(*words, *more, "--max-depth", deepest, "--json", model=drafter_bundle).returncode == 7
    )


def test_tune_tree_finds_the_tree_of_a_target_that_drafts_itself(
    cli: Cli, ran: Cli, tiny_bundle: Path, tmp_path: Path
) -> None:
    words = ("tune-tree", "--method", "self", "-p", "a red hill", "-b", 20, "--rounds", 1, "-t", 1)
    ran(*words, "--max-nodes", 3, "-o", "tree.json", model=tiny_bundle)  # without a drafter
    tree = json.loads((tmp_path / "tree.json").read_text())
    assert 1 <= len(tree["paths"]) <= 3 and tree["about"]["method"] == "self"
    image = ("generate", "-p", "a", "--method", "self", "--tree", "tree.json", "-o", "a.png")
    assert cli(*image, model=tiny_bundle).returncode == 0


def test_tune_tree_takes_one_bundle(refused: Refused, drafter_bundle: Path) -> None:
    words = ("tune-tree", "-p", "x", "--bundle", "missing")
    # The flag wins over the variable.
    assert "bundle missing" in refused(4, *words, model=drafter_bundle)
    assert "two bundles" in refused(2, *words, "--model", drafter_bundle, model=None)


def test_tune_tree_needs_an_output(refused: Refused, drafter_bundle: Path) -> None:
    assert "--output" in refused(2, "tune-tree", "-p", "x", model=drafter_bundle)
    assert "ar" in refused(
        2, "tune-tree", "-p", "x", "--json", "--method", "ar", model=drafter_bundle
    )
