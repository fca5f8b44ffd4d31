"""Options of methods: the same meaning as flags, in files and in images, and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.e2e.support import CODES, DRAFTED, METHODS, RELAXED, Cli, Refused, texts

# Every option of a method by its word in `bench --methods`, with values in three runs.
WORDS = {
    "rule": "rule", "tree": "tree", "children": "children", "k": "relax_k", "delta": "delta",
    "lambda": "lambda", "mu": "mu", "nu": "nu", "epsilon": "epsilon", "alpha": "alpha", "gap": "group_gap",
    "distance": "group_distance", "lenience": "lenience", "residual": "residual", "drafter": "drafter",
    "draft-guidance": "draft_guidance", "length": "draft_length",
    "confidence": "draft_confidence", "layers": "draft_layers", "window": "draft_window",
    "init": "init", "tail": "tail", "front": "front",
    "ahead": "ahead", "zipar": "zipar",
    "neighbours": "neighbours", "adapt": "adapt", "depth": "dynamic_depth", "width": "dynamic_width", "nodes": "dynamic_nodes",
    "steps": "steps", "prefill": "prefill_ratio", "gamma": "gamma", "cap": "cap", "last-noise": "last_noise",
}  # fmt: skip
RUNS: list[dict[str, Any]] = [
    {"method": "eagle", "rule": "lantern++", "tree": "chain-3", "children": "top", "relax_k": 7,
     "lambda": [4.0, 2.5], "residual": "optimal", "drafter": "main",
     "draft_guidance": "conditional", "neighbours": "table.npy"},
    {"method": "lantern", "delta": 0.3},
    {"method": "eagle", "rule": "cool", "delta": 3.0, "mu": -0.5, "nu": 0.25},
    {"method": "eagle", "rule": "typical", "epsilon": 0.25, "alpha": 0.5},
    {"method": "eagle", "rule": "lenient", "lenience": 0.25},
    {"method": "eagle-2", "dynamic_depth": 2, "dynamic_width": 3, "dynamic_nodes": 7},
    {"method": "eagle-2", "dynamic_depth": 3, "dynamic_width": 4, "adapt": "neighbours"},
    {"method": "sjd", "tree": "chain-5", "adapt": "neighbours"},
    {"method": "gsd", "group_gap": 0.25, "group_distance": 1.5},
    {"method": "sjd", "init": "above", "tail": "fresh"},
    {"method": "eagle", "draft_length": "auto", "draft_confidence": 0.25, "tree": "chain-4"},
    {"method": "self", "draft_layers": 1, "draft_window": 5},
    {"method": "zipar", "ahead": 3, "zipar": "official"},
    {"method": "zipar+sjd", "ahead": 1, "tree": "chain-2", "init": "above"},
    {"method": "eagle+sjd", "front": 1, "tree": "fan-2-1-3"},
]  # fmt: skip


def test_all_options_are_tested(cli: Cli, refused: Refused, drafter_bundle: Path) -> None:
    help_text = cli("generate", "--help-all").stdout
    groups = re.findall(
        r"^(?:Method|Relaxed rules|Dynamic trees|Continuous tokens)\n((?:  .*\n)+)", help_text, re.M
    )
    flags = re.findall(r"^  --([a-z-]+)", "".join(groups), re.M)
    assert len(groups) == 4
    assert sorted(flags) == sorted(key.replace("_", "-") for key in ("method", *WORDS.values()))
    message = refused(2, "bench", "--methods", "eagle:nosuch=1", model=drafter_bundle)
    assert f"expected {', '.join(WORDS)}\n" in message
    # test_continuous.py tests the options of continuous tokens.
    continuous = {"steps", "prefill_ratio", "gamma", "cap", "last_noise"}
    assert {key for run in RUNS for key in run} == {"method", *WORDS.values()} - continuous
    for method in ("ar", "cspd", *METHODS):
        assert f"\n  {method}  " in help_text  # followed by its meaning


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run["method"])
def test_options_mean_the_same_wherever_they_are_given(
    generate: Any, ran: Cli, drafter_bundle: Path, tmp_path: Path, run: dict[str, Any]
) -> None:
    """Flags, a file and an image give equal images; `bench` needs as many target passes."""
    rows = [[(code + step) % CODES for step in range(1, 10)] for code in range(CODES)]
    numpy.save(tmp_path / "table.npy", numpy.array(rows, dtype=numpy.uint16))
    given = [
        word
        for key, value in run.items()
        for word in ("--" + key.replace("_", "-"),
                     ",".join(map(str, value)) if isinstance(value, list) else value)
    ]  # fmt: skip
    (line,) = generate("-p", "a", "--dtype", "fp32", *given, "-o", "flags.png")
    fields = json.loads(texts(tmp_path / "flags.png")["lamplighter"])
    assert {key: fields[key] for key in run} == run
    (tmp_path / "c.json").write_text(json.dumps({**run, "dtype": "fp32"}))
    generate("-p", "a", "--config", "c.json", "-o", "config.png")
    table = (
        ["--neighbours", "table.npy"] if "neighbours" in run else []
    )  # images cannot choose files
    generate("--params-from", "flags.png", *table, "-o", "params.png")
    expected = (tmp_path / "flags.png").read_bytes()
    for name in ("config.png", "params.png"):
        assert (tmp_path / name).read_bytes() == expected
    words = [
        f"{word}={'/'.join(map(str, run[key])) if isinstance(run[key], list) else run[key]}"
        for word, key in WORDS.items()
        if key in run
    ]
    method = ":".join((run["method"], *words))
    measured = ran("bench", "-p", "a", "--methods", method, "--dtype", "fp32", "--repeats", 1, "--json",
                   model=drafter_bundle)  # fmt: skip
    (sample,) = [s for s in json.loads(measured.stdout)["samples"] if s["method"] == method]
    assert sample["target_passes"] == line["target_passes"]


def test_config_file_gives_the_method(generate: Any, tmp_path: Path) -> None:
    config = {"method": "lantern++", "lambda": [4, 2.5], "relax_k": 7, "tree": "chain-3"}
    (tmp_path / "c.json").write_text(json.dumps(config))
    (line,) = generate("-p", "a", "--config", "c.json", "-o", "a.png")
    generate("-p", "a", *RELAXED, "-o", "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    (line,) = generate("-p", "a", "--config", "c.json", "--relax-k", 9, "-o", "c.png")
    assert line["relax_k"] == 9


def test_tree_files(generate: Any, refused: Refused, drafter_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"paths": [[0], [1], [0, 0]], "about": {"by": "hand"}}')
    (line,) = generate("-p", "a", "--method", "eagle", "--tree", "t.json", "-o", "a.png")
    assert line["tree"] == "t.json"
    # Near the last token a tree may be cut.
    assert 0 < line["drafted_by_depth"][0] <= 2 * line["cycles"]
    assert len(line["drafted_by_depth"]) == 2
    for text in ("", "[]", '{"paths": [[1]]}', '{"paths": [[0, 0]]}', '{"paths": "x"}'):
        (tmp_path / "bad.json").write_text(text)
        words = refused(3, "generate", "-p", "a", "--method", "eagle", "--tree", "bad.json",
                        "-o", "x.png", model=drafter_bundle)  # fmt: skip
        assert "bad.json" in words


def test_verbose_reports_drafts(cli: Cli, ran: Cli, drafter_bundle: Path) -> None:
    result = ran("generate", "-p", "a", *RELAXED, "-v", model=drafter_bundle)
    for words in ("target passes (", "draft ", "acceptance length", "per cycle"):
        assert words in result.stderr
    plain = cli("generate", "-p", "a", *RELAXED, "--overwrite", model=drafter_bundle)
    assert len(plain.stderr.splitlines()) == 1 and "target passes (" in plain.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "magic"), "magic"),
        (("--tree", "chain-4"), "--method"),
        (("--lambda", 3), "--lambda is read by --method lantern++; this run uses --method ar\n"),
        (("--steps", 20), "--steps is read for tokens that are continuous; this run uses --model "),
        (("--steps", 20), "whose tokens are codes; leave it out\n"),
        (("--rule", "lantern"), "--method"),
        (("--method", "eagle", "--rule", "magic"), "magic"),
        (("--method", "eagle", "--tree", "chain-64"), "chain-64"),
        (("--method", "eagle", "--tree", "chain-0"), "chain-0"),
        (("--method", "eagle", "--children", "all"), "--children"),
        (("--method", "eagle", "--delta", 0.1), "--delta"),
        (("--method", "eagle", "--relax-k", 3), "--relax-k"),
        (("--method", "lantern", "--lambda", 2), "--lambda"),
        (("--method", "lantern++", "--delta", 0.1), "--delta"),
        (("--method", "lantern", "--delta", 0.1, "--lambda", 2), "--lambda"),
        (("--method", "eagle", "--lambda", 2), "--lambda is read by --rule lantern++; this run uses --rule exact"),
        (("--method", "sjd", "--init", "unifrom"), "did you mean uniform?"),
        (("--method", "eagel"), "did you mean eagle?"),
        (("--method", "lantern", "--delta", "nan"), "--delta"),
        (("--method", "lantern", "--delta", -0.1), "--delta"),
        (("--method", "lantern", "--delta", 1.1), "--delta"),
        (("--method", "eagle", "--mu", 1), "--mu"),
        (("--method", "lantern++", "--nu", 0.7), "--nu"),
        (("--method", "eagle", "--rule", "cool", "--relax-k", 3), "--relax-k"),
        (("--method", "eagle", "--rule", "cool", "--lambda", 2), "--lambda"),
        (("--method", "eagle", "--epsilon", 0.1), "--epsilon"),
        (("--method", "sjd", "--group-gap", 0.1), "--group-gap"),
        (("--method", "gsd", "--group-gap", 1.1), "--group-gap"),
        (("--method", "lantern", "--alpha", 0.3), "--alpha"),
        (("--method", "eagle", "--rule", "typical", "--epsilon", 1.5), "--epsilon"),
        (("--method", "lantern++", "--lambda", "2,0.5"), "--lambda"),
        (("--method", "lantern++", "--lambda", "x"), "--lambda"),
        (("--method", "lantern", "--relax-k", CODES), "--relax-k"),
        (("--method", "lantern", "--relax-k", -1), "--relax-k"),
        (("--method", "lantern", "--residual", "magic"), "magic"),
        (("--method", "lantern", "--draft-guidance", "none"), "--draft-guidance"),
        (("--method", "lantern", "--drafter", "other"), "main"),
        (("--method", "eagle-2", "--children", "sampled"), "--children"),
        (("--method", "eagle-2", "--dynamic-depth", 40, "--dynamic-width", 10), "dynamic"),
        (("--method", "eagle", "--dynamic-depth", 3), "dynamic"),
        (("--method", "eagle", "--rule", "block", "--tree", "lantern-26"), "block"),
        (("--method", "eagle", "--init", "above"), "--init"),
        (("--method", "ngram", "--tail", "keep"), "--tail"),
        (("--method", "sjd", "--init", "left"), "--init"),
        (("--method", "sjd", "--tree", "lantern-26"), "siblings"),
        (("--method", "sjd", "--tree", "dynamic"), "chains"),
        (("--method", "sjd", "--tree", "fan-2-1-3"), "siblings"),
        (("--method", "sjd", "--front", 2), "--front"),
        (("--method", "eagle+sjd", "--tree", "chain-3", "--front", 4), "--front"),
        (("--method", "eagle+sjd", "--children", "top"), "--children"),
        (("--method", "lookahead", "--tree", "chain-9"), "chain-8"),
        (("--method", "lookahead", "--tree", "lantern-26"), "siblings"),
        (("--method", "sjd-pac", "--tree", "dynamic"), "fixed trees"),
        (("--method", "sjd-pac", "--tree", "fan-3-2-54"), "fan-K-S-N"),
        (("--method", "sjd-pac", "--rule", "traversal"), "siblings"),
        (("--method", "eagle+sjd", "--rule", "official-pac"), "needs method sjd-pac"),
        (("--method", "sjd-pac", "--rule", "official-pac", "--init", "above"), "--init"),
        (("--method", "sjd-pac", "--rule", "block", "--tail", "fresh"), "siblings"),
        (("--method", "sjd", "--drafter", "main"), "--drafter"),
        (("--method", "sjd", "--children", "top"), "--children"),
        (("--method", "sjd", "--rule", "block", "--tail", "keep"), "--tail"),
        (("--method", "scd", "--tail", "fresh"), "--tail"),
        (("--method", "refine", "--rule", "block", "--tail", "keep"), "--tail"),
        (("--method", "refine", "--children", "top", "--tail", "keep"), "--tail"),
        (("--method", "flash", "--draft-length", "auto"), "got 'auto', expected full for method flash"),
        (("--method", "self", "--draft-length", "auto"), "got 'auto', expected full for method self"),
        (("--trace", "x.png"), "x.png twice"),
        (("--preview", "y.png", "--acceptance-map", "y.png"), "y.png twice"),
    ],
)  # fmt: skip
def test_usage(
    refused: Refused, drafter_bundle: Path, arguments: tuple[object, ...], words: str
) -> None:
    given = ("generate", "-p", "a", "-o", "x.png", *arguments)
    assert words in refused(2, *given, model=drafter_bundle)


def test_files_that_are_missing(refused: Refused, drafter_bundle: Path) -> None:
    given = ("generate", "-p", "a", "-o", "x.png", "--method", "lantern")
    assert "none.json" in refused(3, *given, "--tree", "none.json", model=drafter_bundle)
    assert "none.npy" in refused(3, *given, "--neighbours", "none.npy", model=drafter_bundle)


def test_bundle_without_drafter(cli: Cli, refused: Refused) -> None:
    words = refused(4, "generate", "-p", "a", "-o", "x.png", "--method", "eagle")
    assert "drafter" in words and "or use method sjd" in words
    methods = json.loads(cli("inspect", "--json").stdout)["methods"]
    assert methods[0] == "ar" and not set(DRAFTED) & set(methods) and "sjd" in methods


def test_inspect_and_check_know_drafters(cli: Cli, drafter_bundle: Path) -> None:
    report = json.loads(cli("inspect", "--json", model=drafter_bundle).stdout)
    assert {"ar", *DRAFTED} < set(report["methods"])
    text = cli("inspect", model=drafter_bundle).stdout
    assert "drafter main" in text and "2 heads of 16" in text
    assert "main: ok, " in cli("check", model=drafter_bundle).stdout
