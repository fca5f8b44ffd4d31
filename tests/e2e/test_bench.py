"""bench and tune-tree on small random bundles, and bench on shapes made on the fly."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.e2e.support import Cli, Refused


def numbers(cli: Cli, *arguments: object, model: Path | None) -> dict[str, Any]:
    result = cli(*arguments, "--json", "-q", "--threads", 1, model=model)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_methods_side_by_side(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("a red hill\na blue lake\na tower\n")
    report = numbers(
        cli, "bench", "--methods", "eagle,lantern++:k=5:lambda=3", "--tree", "chain-2",
        "--prompt-file", "captions.txt", "--count", 2, "--repeats", 2, "--markdown", "t.md",
        model=drafter_bundle,
    )  # fmt: skip
    names = ["ar", "eagle:tree=chain-2", "lantern++:k=5:lambda=3:tree=chain-2"]
    assert [m["method"] for m in report["methods"]] == names
    # Two captions, twice each, method by method; who comes first changes.
    assert len(report["samples"]) == 12
    assert [s["method"] for s in report["samples"][:6]] == names + names[1:] + names[:1]
    ar, eagle, relaxed = report["methods"]
    assert ar["tokens_per_pass"] == 1 and ar["reached_depth"] == []
    assert all(1 <= m["tokens_per_pass"] <= 3 for m in (eagle, relaxed))
    assert len(eagle["reached_depth"]) == 2 and eagle["stage_ms"]["draft"] > 0
    assert eagle["speedup"]["count"] == 2  # captions, not repeats
    assert eagle["speedup"]["low"] <= eagle["speedup"]["mean"] <= eagle["speedup"]["high"]
    table = (tmp_path / "t.md").read_text()
    assert all(f"| {name} |" in table for name in names) and "| chain-2 |" in table


def test_repeats_give_the_same_tokens(cli: Cli, drafter_bundle: Path) -> None:
    report = numbers(cli, "bench", "--methods", "eagle:tree=chain-3", model=drafter_bundle)
    eagle = [s for s in report["samples"] if s["method"] != "ar"]
    assert len(eagle) == 5 and len({json.dumps(s["reached"]) for s in eagle}) == 1
    assert report["methods"][1]["speedup"]["count"] == 5


def test_shapes_made_on_the_fly(cli: Cli, tmp_path: Path) -> None:
    report = numbers(
        cli, "bench", "--synthetic", "llamagen-l-256", "--layers", 1, "--tree", "chain-1",
        "--repeats", 2, "--dtype", "bf16", "--markdown", "t.md", model=None,
    )  # fmt: skip
    assert report["synthetic"] and report["acceptance"] == "scripted"
    ar, chain = report["methods"]
    # One block of 12,845,056 weights and the head in 16 bits; keys and values of two sequences.
    assert ar["weight_bytes"] == report["target_bytes"] == 2 * (12845056 + 16384 * 1024)
    assert ar["cache_bytes"] == 2 * report["context"] * 2 * 1024 * 2
    assert chain["weight_bytes"] == report["target_bytes"] + report["drafter_bytes"]
    rate = report["bandwidth_bytes_per_second"]
    for row in (ar, chain):
        size = row["weight_bytes"] + row["cache_bytes"]
        assert abs(row["floor_ms"] - 1000 * size / rate) < 1e-6 * row["floor_ms"]
    assert report["peak_bytes"] > report["target_bytes"]
    assert "accepted (scripted)" in (tmp_path / "t.md").read_text()


def test_what_cannot_be_measured(refused: Refused, drafter_bundle: Path) -> None:
    for words, text in (
        (("--methods", "eagle:tree=star"), "star"),
        (("--methods", "eagle:k"), "KEY=VALUE"),
        (("--methods", "eagle,eagle"), "twice"),
        (("--methods", "lantern:lambda=2"), "lambda needs the rule lantern++"),
        (("--tree", "nosuch"), "names no tree"),
        (("--methods", "eagle:tree=chain-1", "--tree", "chain-2"), "names no tree"),
        (("--count", 0), "--count"),
        (("--synthetic", "llamagen-s"), "llamagen-l-256"),
        (("--accept", 2), "--synthetic"),
        (("--synthetic", "anole-512", "--layers", 33), "expected 1 to 32"),
    ):
        assert text in refused(2, "bench", *words, model=drafter_bundle)


def test_shapes_have_no_pictures(refused: Refused, drafter_bundle: Path) -> None:
    for flag in (
        "--model", "--prompt", "--prompt-file", "--class", "--seed", "--batch-count", "--count",
        "--width", "--height", "--cfg-scale", "--cfg-interval", "--temperature", "--top-k", "--top-p",
        "--methods", "--batch-size",
    ):  # fmt: skip
        message = refused(2, "bench", flag, 1, "--synthetic", "anole-512", model=drafter_bundle)
        assert f"{flag} and --synthetic" in message
    for short, flag in (("-px", "--prompt"), ("-W256", "--width"), ("-b2", "--batch-count")):
        message = refused(2, "bench", "--synthetic", "anole-512", short, model=drafter_bundle)
        assert f"{flag} and --synthetic" in message
    message = refused(2, "bench", "--synthetic", "anole-512", "--skip-checksums", model=None)
    assert "--skip-checksums and --synthetic" in message


def test_files_are_not_replaced_unasked(
    cli: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    missing = tmp_path / "none"  # files are looked at before bundles
    for words in (
        ("bench", "--export-json"),
        ("bench", "--markdown"),
        ("bench", "--synthetic", "lumina-768", "--markdown"),
        ("tune-tree", "-p", "x", "-o"),
    ):
        assert "overwrite is off" in refused(7, *words, "old", model=missing)
    assert old.read_text() == "kept"
    for name in ("new", "./new"):
        words = ("bench", "--export-json", "new", "--markdown", name, "--overwrite")
        assert "a name of its own" in refused(2, *words, model=missing)
    measure = ("bench", "--repeats", 1, "--threads", 1, "-q")
    assert cli(*measure, "--markdown", "old", "--overwrite", model=tiny_bundle).returncode == 0
    assert "| ar |" in old.read_text()


def test_results_are_printed_before_files_are_written(cli: Cli) -> None:
    result = cli("bench", "--repeats", 1, "--threads", 1, "-q", "--export-json", "/dev/full")
    assert result.returncode == 7 and "/dev/full" in result.stderr
    assert result.stdout.splitlines()[1].startswith("ar ")


def test_a_partial_bundle_says_what_it_lacks(
    refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    part = tmp_path / "part"
    part.mkdir()
    manifest = json.loads((tiny_bundle / "manifest.json").read_text())
    for key in ("target", "cache", "tokens", "prompt", "grids", "sampling", "golden", "tokenizer"):
        manifest.pop(key, None)
    manifest["modules"] = {"image_decoder": manifest["modules"]["image_decoder"]}
    (part / "manifest.json").write_text(json.dumps(manifest))
    assert "modules.target" in refused(4, "bench", model=part)


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
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["trees"] == {"cpu": "tree-cpu.json"}
    assert (bundle / "tree-cpu.json").read_text() == (tmp_path / "tree.json").read_text()
    report = numbers(cli, "bench", "--methods", "eagle", "--repeats", 1, model=bundle)
    assert len(report["methods"][1]["reached_depth"]) == max(map(len, tree["paths"]))


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
