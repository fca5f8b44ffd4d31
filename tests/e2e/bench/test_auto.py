"""generate and batch with the method auto, and its table of measurements."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Cli, Result

GENERATE = ("generate", "-p", "a red hill", "--threads", 1)
LOSSLESS = ("ar", "sjd", "scd", "eagle", "eagle-3", "medusa", "mlp", "flash", "refine")
TABLE = ("bench", "--save-table", "--repeats", 1, "--threads", 1, "--methods")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The program's folder in the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "lamplighter"


def report_of(result: Result) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def table_of(cache: Path) -> Path:
    (path,) = cache.glob("methods-*.json")
    return path


def make_fastest(cache: Path, tree: str) -> None:
    """Edits the table: a test must not depend on which method is fastest."""
    table = json.loads(table_of(cache).read_text())
    for row in table["runs"][0]["methods"]:
        row["speedup"] = 3.0 if row.get("tree") == tree else 1.0
    table_of(cache).write_text(json.dumps(table))


@pytest.mark.parametrize("batch", [1, 4])
def test_without_a_table_the_methods_are_measured_once(
    cli: Cli, ran: Cli, cache: Path, drafter_bundle: Path, batch: int
) -> None:
    words = (*GENERATE, "-b", batch, "--batch-size", batch, "-o", "%d.png", "--method", "auto")
    first = ran(*words, "--json", model=drafter_bundle)
    method = json.loads(first.stdout.splitlines()[0])["method"]
    assert "method auto: measuring the methods for " in first.stderr
    assert "bf16, 1 thread" in first.stderr
    assert f"method auto: {method}" in first.stderr

    table = json.loads(table_of(cache).read_text())
    (run,) = table["runs"]
    rows = {row["method"]: row for row in run["methods"]}
    assert rows["ar"]["speedup"] == 1 and rows["eagle"]["speedup"] > 0
    assert {"ar", "eagle", "medusa", "refine", "sjd", "scd"} <= set(rows)
    costs = {cost["rows"]: cost["ms"] for cost in run["cycle_costs"]}
    assert sorted(costs) == [1, 2, 3, 4, 6, 8] and min(costs.values()) > 0
    best = max(run["methods"], key=lambda row: float(row["speedup"]))
    assert method == (best["method"] if best["speedup"] > 1.03 else "ar")

    again = cli(*words, "--overwrite", model=drafter_bundle)
    assert again.returncode == 0 and "measuring" not in again.stderr
    assert f"method auto: {method}" in again.stderr
    shown = cli("inspect", model=drafter_bundle).stdout
    assert f"batch size {batch}, expected: " in shown and "ms of a cycle by rows: 1:" in shown
    shown_json = json.loads(cli("inspect", "--json", model=drafter_bundle).stdout)["measured"]
    assert shown_json == [{"for": table["for"], "runs": table["runs"]}]


def test_a_bundle_without_a_drafter_and_a_class_are_measured(
    cli: Cli, cache: Path, tiny_bundle: Path, class_bundle: Path
) -> None:
    for bundle, words in ((tiny_bundle, ("-p", "a hill")), (class_bundle, ("--class", 3))):
        run = ("generate", *words, "--threads", 1, "--method", "auto", "--json", "--overwrite")
        assert report_of(cli(*run, model=bundle))["method"] in ("ar", "sjd", "scd")
    assert len(list(cache.glob("methods-*.json"))) == 2


def test_a_measurement_that_cannot_be_kept_is_used(
    cli: Cli, cache: Path, drafter_bundle: Path
) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_text("a file, no folder")
    result = cli(*GENERATE, "--method", "auto", "--json", model=drafter_bundle)
    assert report_of(result)["method"] in LOSSLESS
    assert "note: the measurement is not kept: " in result.stderr


def test_continuous_tokens_are_not_measured(cli: Cli, cache: Path, mar: Path) -> None:
    words = ("generate", "--class", 1, "--threads", 1, "--method", "auto", "--json")
    result = cli(*words, model=mar)
    assert report_of(result)["method"] == "ar"
    assert "were not measured here; bench --save-table" in result.stderr and not cache.exists()


def test_the_fastest_lossless_method_generates(cli: Cli, cache: Path, drafter_bundle: Path) -> None:
    methods = "eagle:tree=chain-1,eagle:tree=chain-3,lantern++:k=5:lambda=3:tree=chain-2"
    saved = cli(*TABLE, methods, model=drafter_bundle)
    assert saved.returncode == 0 and str(table_of(cache)) in saved.stderr
    rows = json.loads(table_of(cache).read_text())["runs"][0]["methods"]
    assert [(r["method"], r.get("tree")) for r in rows] == [
        ("ar", None),
        ("eagle", "chain-1"),
        ("eagle", "chain-3"),  # and no lossy method
    ]
    assert rows[0]["speedup"] == 1 and all(r["speedup"] > 0 for r in rows)

    for tree in ("chain-1", "chain-3"):
        make_fastest(cache, tree)
        result = cli(
            *GENERATE, "--method", "auto", "--json", "-o", f"{tree}.png", model=drafter_bundle
        )
        image = report_of(result)
        assert (image["method"], image["tree"]) == ("eagle", tree)
        assert f"method auto: eagle tree={tree}, 3.00 times" in result.stderr
    # The image's metadata names its method, so a repeat does not need the table.
    shutil.rmtree(cache)
    again = cli(
        "generate", "--params-from", "chain-1.png", "--threads", 1, "--json", "-o", "again.png",
        model=drafter_bundle,
    )  # fmt: skip
    assert report_of(again)["tree"] == "chain-1" and "auto" not in again.stderr


def test_it_holds_for_one_bundle_precision_and_number_of_threads(
    cli: Cli, cache: Path, drafter_bundle: Path, tmp_path: Path
) -> None:
    assert cli(*TABLE, "eagle:tree=chain-3", model=drafter_bundle).returncode == 0
    make_fastest(cache, "chain-3")
    other = tmp_path / "other"
    shutil.copytree(drafter_bundle, other)
    manifest = json.loads((other / "manifest.json").read_text())
    (other / "manifest.json").write_text(json.dumps({**manifest, "name": "another"}))
    for words, bundle, found in (
        (("--threads", 1), drafter_bundle, True),
        (("--threads", 1), other, False),
        (("--threads", 1, "--dtype", "fp32"), drafter_bundle, False),
        (("--threads", 1, "--cache-dtype", "int8"), drafter_bundle, False),
        (("--threads", 2), drafter_bundle, False),
    ):
        result = cli(*GENERATE[:3], "--method", "auto", *words, "--overwrite", model=bundle)
        assert result.returncode == 0 and ("3.00 times" in result.stderr) == found


def test_a_damaged_table_is_reported_and_ignored(
    cli: Cli, cache: Path, drafter_bundle: Path
) -> None:
    assert cli(*TABLE, "eagle:tree=chain-3", model=drafter_bundle).returncode == 0
    table_of(cache).write_text("{")
    result = cli(*GENERATE, "--method", "auto", "--json", model=drafter_bundle)
    assert report_of(result)["method"] in LOSSLESS
    (line,) = [line for line in result.stderr.splitlines() if "ignored" in line]
    assert str(table_of(cache)) in line


def test_a_tuned_tree_is_kept(cli: Cli, ran: Cli, cache: Path, drafter_bundle: Path) -> None:
    ran(
        "tune-tree", "--save-table", "-p", "a red hill", "-b", 20, "--max-nodes", 2, "--rounds", 2,
        "--threads", 1, model=drafter_bundle,
    )  # fmt: skip
    table = json.loads(table_of(cache).read_text())
    tree = Path(table["runs"][0]["methods"][1]["tree"])
    assert tree.parent == cache and json.loads(tree.read_text())["paths"]
    make_fastest(cache, str(tree))
    assert report_of(cli(*GENERATE, "--method", "auto", "--json", model=drafter_bundle))[
        "tree"
    ] == str(tree)


def test_batch_records_the_method(
    cli: Cli, cache: Path, drafter_bundle: Path, tmp_path: Path
) -> None:
    assert cli(*TABLE, "eagle:tree=chain-3", model=drafter_bundle).returncode == 0
    make_fastest(cache, "chain-3")
    (tmp_path / "c.txt").write_text("a red hill\n")
    run = (
        "batch", "--captions", "c.txt", "-o", "out", "--threads", 1, "--batch-size", 1,
        "--method", "auto",
    )  # fmt: skip
    assert cli(*run, model=drafter_bundle).returncode == 0
    configuration = (tmp_path / "out" / "run.json").read_text()
    assert "chain-3" in configuration and "auto" not in configuration


def test_what_is_refused(refused: Any, cache: Path, drafter_bundle: Path) -> None:
    for code, words, text in (
        (2, (*GENERATE, "--method", "auto", "--tree", "chain-2"), "--tree: method auto"),
        (2, ("bench", "--methods", "auto"), "expected ar, eagle"),
        (2, (*TABLE, "ar"), "--save-table"),
        (2, (*TABLE, "lantern++:k=5"), "--save-table"),
        (2, ("tune-tree", "-p", "x", "--save-table", "--method", "lantern"), "lossless"),
        (2, ("bench", "--synthetic", "anole-512", "--save-table"), "--save-table and --synthetic"),
    ):
        assert text in refused(code, *words, model=drafter_bundle)
    for words in ((*TABLE, "eagle"), ("tune-tree", "-p", "x", "--save-table")):
        no_home = {"env": {"HOME": "", "XDG_CACHE_HOME": ""}}
        assert "XDG_CACHE_HOME" in refused(7, *words, model=drafter_bundle, **no_home)
