"""bench on small random bundles and on synthetic ones."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest
import torch

from tests.e2e.support import Cli, Refused, numbers


def test_methods_side_by_side(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text("a red hill\na blue lake\na tower\n")
    report = numbers(
        cli, "bench", "--methods", "eagle,lantern++:k=5:lambda=3", "--tree", "chain-2",
        "--prompt-file", "captions.txt", "--count", 2, "--repeats", 2, "--export-markdown", "t.md",
        model=drafter_bundle,
    )  # fmt: skip
    names = ["ar", "eagle:tree=chain-2", "lantern++:k=5:lambda=3:tree=chain-2"]
    assert [m["method"] for m in report["methods"]] == names
    # Two captions with two repeats; the first method rotates.
    assert len(report["samples"]) == 12
    assert [s["method"] for s in report["samples"][:6]] == names + names[1:] + names[:1]
    ar, eagle, lossy = report["methods"]
    assert ar["step_compression"]["mean"] == 1 and ar["reached_depth"] == []
    assert all(1 <= m["step_compression"]["mean"] <= 3 for m in (eagle, lossy))
    assert [m["step_compression"]["count"] for m in report["methods"]] == [2, 2, 2]  # captions
    assert len(eagle["reached_depth"]) == 2 and eagle["stage_ms"]["draft"] > 0
    assert eagle["speedup"]["count"] == 2  # captions count, not repeats
    assert eagle["speedup"]["low"] <= eagle["speedup"]["mean"] <= eagle["speedup"]["high"]
    table = (tmp_path / "t.md").read_text()
    assert all(f"| {name} |" in table for name in names) and "| chain-2 |" in table


def test_fields_agree_with_each_other(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "captions.tsv").write_text("id\tcaption\na\ta red hill\nb\ta lake\nc\ta tower\n")
    report = numbers(
        cli, "bench", "--methods", "eagle,lantern++", "--sweep", "tree=chain-2,lambda=2,3/2,k=5",
        "--captions", "captions.tsv", "--offset", 1, "--limit", 2, "--seed", 7, "--warmup", 0,
        "--export-json", "b.json", "--export-csv", "b.csv", "--export-markdown", "b.md",
        model=drafter_bundle,
    )  # fmt: skip
    assert report == json.loads((tmp_path / "b.json").read_text())
    assert (report["format"], report["format_version"]) == ("lamplighter-bench", 1)
    assert (report["images"], report["batch_sizes"], report["warmup"]) == (2, [1], 0)
    assert (report["repeats"], report["count_prompt"]) == (1, True)
    manifest = (drafter_bundle / "manifest.json").read_bytes()
    assert report["checksum"] == hashlib.sha256(manifest).hexdigest()
    # Skipped captions count: the second one has seed 8.
    assert {(s["image"], s["seed"]) for s in report["samples"]} == {(0, 8), (1, 9)}

    methods = report["methods"]
    assert [m["options"].get("lambda") for m in methods] == [None, None, [2.0], [3.0, 2.0]]
    assert [m["lossless"] for m in methods] == [True, True, False, False]
    assert [m["tree"] for m in methods] == [None, "chain-2", "chain-2", "chain-2"]
    for method in methods:
        samples = [s for s in report["samples"] if s["method"] == method["method"]]
        compression = [s["tokens"] / s["target_passes"] for s in samples]
        assert method["step_compression"]["mean"] == pytest.approx(sum(compression) / 2)
        share = method["speedup"]["mean"] / method["step_compression"]["mean"]
        assert method["share_kept"] == pytest.approx(share)
        latency = sum(s["prefill_ms"] + s["decode_ms"] for s in samples) / 2
        assert method["mean_latency_ms"]["mean"] == pytest.approx(latency)
        assert method["latency_ms"]["p50"] <= method["latency_ms"]["p99"]
        assert method["reached_depth"] == pytest.approx([sum(d) for d in method["reached_rank"]])
        assert method["joules_per_image"] is None or method["joules_per_image"] >= 0
        assert method["token_ms"]["min"] <= method["token_ms"]["p50"] <= method["token_ms"]["max"]
        assert {sample["tokens"] for sample in samples} == {16}
    ar, eagle = methods[:2]
    assert ar["speedup"]["mean"] == ar["pass"]["over_step"] == 1 and ar["verdict"] == ""
    assert (ar["pass"]["rows"], eagle["pass"]["rows"]) == (2, 6)  # doubled by guidance
    assert eagle["pass"]["bound"] in ("bytes", "arithmetic") and ar["pass"]["bound"] is None

    words = "bootstrap over 2 batches of 1; fewer than five by Student's t"
    assert words in (tmp_path / "b.md").read_text()
    with (tmp_path / "b.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["method"] for row in rows] == [m["method"] for m in methods]
    for row, method in zip(rows, methods, strict=True):
        assert float(row["speedup.mean"]) == method["speedup"]["mean"]
        assert json.loads(row["reached_depth"]) == method["reached_depth"]


def test_the_machine_is_reported(cli: Cli, tiny_bundle: Path) -> None:
    result = cli("bench", "--repeats", 1, "--threads", 1, "--export-markdown", "b.md", "--json")
    report = json.loads(result.stdout)
    machine = report["environment"]
    assert machine["cpus"] >= 1 and machine["threads"] == report["threads"] == 1
    assert machine["torch"] == torch.__version__.split("+")[0]
    assert machine["gpu"] == "" and machine["load_before"] >= 0 and 0 <= machine["others"] <= 1
    assert report["peak_bytes"] >= report["methods"][0]["peak_bytes"] > 0
    assert f"Torch {machine['torch']}" in result.stderr
    assert ("the machine was busy" in result.stderr) == machine["busy"]
    assert ("the prompt's pass counted") in result.stderr


def test_the_prompt_can_be_excluded(cli: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    measure = ("bench", "--methods", "eagle:tree=chain-3", "--repeats", 1)
    flags = ("--count-prompt", "no", "--export-markdown", "b.md")
    ours, papers = (numbers(cli, *measure, *more, model=drafter_bundle) for more in ((), flags))
    assert papers["count_prompt"] is False
    assert "left out (--count-prompt no)" in (tmp_path / "b.md").read_text()
    for method, other in zip(ours["methods"], papers["methods"], strict=True):
        (sample,) = [s for s in papers["samples"] if s["method"] == other["method"]]
        tokens, passes = sample["tokens"], sample["target_passes"]
        assert method["step_compression"]["mean"] == pytest.approx(tokens / passes)
        assert other["step_compression"]["mean"] == pytest.approx((tokens - 1) / (passes - 1))
        assert other["acceptance_length"] == other["step_compression"]
        share = other["speedup"]["mean"] / other["step_compression"]["mean"]
        assert other["share_kept"] == pytest.approx(share)


def test_batch_sizes_have_rows_of_their_own(cli: Cli, drafter_bundle: Path) -> None:
    report = numbers(
        cli, "bench", "--methods", "eagle:tree=chain-2", "--batch-sizes", "1,2", "-p", "a hill",
        "-b", 3, "--repeats", 2, model=drafter_bundle,
    )  # fmt: skip
    rows = [(m["method"].split(":")[0], m["batch_size"], m["samples"]) for m in report["methods"]]
    # The third image does not fill a batch of two.
    assert rows == [("ar", 1, 6), ("eagle", 1, 6), ("ar", 2, 2), ("eagle", 2, 2)]
    assert [m["pass"]["rows"] for m in report["methods"]] == [2, 6, 4, 12]
    for method in report["methods"]:
        samples = [s for s in report["samples"] if s["batch_size"] == method["batch_size"]]
        assert {s["images"] for s in samples} == {method["batch_size"]}
    # Images do not depend on the batch size.
    reached = {(s["method"], s["image"]): set() for s in report["samples"]}
    for sample in report["samples"]:
        reached[sample["method"], sample["image"]].add(json.dumps(sample["reached"]))
    assert all(len(one) == 1 for one in reached.values())
    # Without captions the default one fills the largest batch.
    alone = numbers(cli, "bench", "--batch-sizes", "1,3", "--repeats", 1, model=drafter_bundle)
    assert alone["images"] == 3


def test_repeats_give_the_same_tokens(cli: Cli, drafter_bundle: Path) -> None:
    report = numbers(cli, "bench", "--methods", "eagle:tree=chain-3", model=drafter_bundle)
    eagle = [s for s in report["samples"] if s["method"] != "ar"]
    assert len(eagle) == 5 and len({json.dumps(s["reached"]) for s in eagle}) == 1
    assert report["methods"][1]["speedup"]["count"] == 5


def test_shapes_made_on_the_fly(cli: Cli, tmp_path: Path) -> None:
    report = numbers(
        cli, "bench", "--synthetic", "llamagen-l-256", "--layers", 1, "--tree", "chain-1",
        "--methods", "eagle,sjd", "--batch-sizes", "1,2", "--repeats", 2, "--dtype", "bf16",
        "--export-markdown", "t.md", "--export-csv", "t.csv", model=None,
    )  # fmt: skip
    assert report["synthetic"] and report["acceptance"] == "scripted"
    names = ["ar", "eagle:tree=chain-1", "sjd:tree=chain-1"]
    rows = [(row["method"], row["batch_size"], row["rows"]) for row in report["methods"]]
    assert rows == [
        (name, size, 2 * size * (1 + (name != "ar"))) for size in (1, 2) for name in names
    ]
    ar, chain, window = report["methods"][:3]
    assert abs(chain["decode_ms"] - 256 / 2 * chain["cycle_ms"]) < 1e-6 * chain["decode_ms"]
    assert window["weight_bytes"] == ar["weight_bytes"] and window["drafter_passes"] == 0
    # One block of 12,845,056 weights and the head in 16 bits; keys and values of two sequences.
    assert ar["weight_bytes"] == report["target_bytes"] == 2 * (12845056 + 16384 * 1024)
    assert ar["cache_bytes"] == 2 * report["context"] * 2 * 1024 * 2
    assert chain["weight_bytes"] == report["target_bytes"] + report["drafter_bytes"]
    rate = report["bandwidth_bytes_per_second"]
    for row in (ar, chain):
        size = row["weight_bytes"] + row["cache_bytes"]
        assert abs(row["floor_ms"] - 1000 * size / rate) < 1e-6 * row["floor_ms"]
    assert report["peak_bytes"] > report["target_bytes"]
    text = (tmp_path / "t.md").read_text()
    assert len((tmp_path / "t.csv").read_text().splitlines()) == 1 + len(rows)
    assert "accepted (scripted)" in text and f"Torch {report['environment']['torch']}" in text


def test_what_cannot_be_measured(refused: Refused, drafter_bundle: Path) -> None:
    for words, text in (
        (("--methods", "eagle:tree=star"), "star"),
        (("--methods", "eagle:k"), "KEY=VALUE"),
        (("--methods", "eagle,eagle"), "twice"),
        (
            ("--methods", "lantern:lambda=2"),
            "lambda is read by rule lantern++; this run uses rule lantern",
        ),
        (("--tree", "nosuch"), "expected chain-1 to chain-63"),
        (("--methods", "eagle:tree=chain-1", "--tree", "chain-2"), "does not set tree"),
        (("--methods", "eagle", "--sweep", "tree=chain-1", "--tree", "chain-2"), "tree twice"),
        (("--methods", "eagle", "--sweep", "lambda=2"), "does not set lambda"),
        (("--sweep", "chain-2"), "KEY=VALUE"),
        (("--batch-sizes", "1,0"), "--batch-sizes"),
        (("--batch-sizes", "2,1,2"), "twice"),
        (("-p", "x", "--batch-sizes", "1,2"), "expected at most 1, the number of images"),
        (("--warmup", -1), "--warmup"),
        (("--count-prompt", "maybe"), "--count-prompt"),
        (("--captions", "x.txt", "-p", "x"), "--captions"),
        (("--select", "first"), "--captions"),
        (("--count", 0), "--count"),
        (("--synthetic", "llamagen-s"), "llamagen-l-256"),
        (
            ("--synthetic", "anole-512", "--methods", "zipar"),
            "expected one that random weights can",
        ),
        (("--synthetic", "anole-512", "--batch-sizes", "0"), "expected 1 or more"),
        (("--accept", 2), "--synthetic"),
        (("--synthetic", "anole-512", "--layers", 33), "expected 1 to 32"),
    ):
        assert text in refused(2, "bench", *words, model=drafter_bundle)


def test_shapes_have_no_images(refused: Refused, drafter_bundle: Path) -> None:
    for flag in (
        "--model", "--prompt", "--prompt-file", "--class", "--seed", "--batch-count", "--count",
        "--width", "--height", "--cfg-scale", "--cfg-interval", "--temperature", "--top-k", "--top-p",
        "--captions", "--warmup", "--count-prompt",
    ):  # fmt: skip
        message = refused(2, "bench", flag, 1, "--synthetic", "anole-512", model=drafter_bundle)
        assert f"{flag} and --synthetic" in message
    for short, flag in (("-px", "--prompt"), ("-W256", "--width"), ("-b2", "--batch-count")):
        message = refused(2, "bench", "--synthetic", "anole-512", short, model=drafter_bundle)
        assert f"{flag} and --synthetic" in message
    # Caches of ten million images fit nowhere; no weights are made.
    synthetic = ("--synthetic", "emu3.5-1168", "--layers", 1, "--batch-sizes", 10_000_000)
    message = refused(6, "bench", *synthetic, model=None)
    assert "random weights and caches of 2 methods need" in message
    message = refused(2, "bench", "--synthetic", "anole-512", "--skip-checksums", model=None)
    assert "--skip-checksums and --synthetic" in message


def test_files_are_not_replaced_unasked(
    cli: Cli, refused: Refused, tiny_bundle: Path, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.write_text("kept")
    missing = tmp_path / "none"  # files are checked before bundles
    for words in (
        ("bench", "--export-json"),
        ("bench", "--export-markdown"),
        ("bench", "--export-csv"),
        ("bench", "--synthetic", "lumina-768", "--export-markdown"),
        ("tune-tree", "-p", "x", "-o"),
    ):
        assert "--overwrite replaces it" in refused(7, *words, "old", model=missing)
    assert old.read_text() == "kept"
    for name in ("new", "./new"):
        words = ("bench", "--export-json", "new", "--export-markdown", name, "--overwrite")
        assert "a name of its own" in refused(2, *words, model=missing)
    measure = ("bench", "--repeats", 1, "--threads", 1, "-q")
    assert (
        cli(*measure, "--export-markdown", "old", "--overwrite", model=tiny_bundle).returncode == 0
    )
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


def test_bench_without_flags_compares(cli: Cli, drafter_bundle: Path) -> None:
    report = numbers(cli, "bench", "--repeats", 1, model=drafter_bundle)
    assert [method["method"] for method in report["methods"]] == ["ar", "eagle", "lantern++", "sjd"]
    assert all(method["samples"] == 4 for method in report["methods"])
