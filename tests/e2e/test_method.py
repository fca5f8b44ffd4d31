"""Speculative decoding from the command line: methods, their flags, statistics and images."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import DRAFTED, METHODS, RELAXED, Cli, numbers, pixels, texts

TOKENS = 16


@pytest.mark.parametrize("method", METHODS)
def test_methods_generate(generate: Any, tmp_path: Path, method: str) -> None:
    flags = ("-p", "a tree", "--method", method)
    (line,) = generate(*flags, "-o", "a.png")
    assert (line["method"], line["tokens"]) == (method, TOKENS)
    named = {**dict.fromkeys(DRAFTED, "main"), "medusa": "heads", "mlp": "steps"}
    named.update({"flash": "ahead", "flash+sjd": "ahead", "eagle-3": "inner", "refine": "stale"})
    assert line.get("drafter") == named.get(method)
    assert line["target_passes"] == line["cycles"] + 1 <= TOKENS
    assert line["step_compression"] == pytest.approx(TOKENS / line["target_passes"])
    assert line["acceptance_length"] == pytest.approx((TOKENS - 1) / line["cycles"])
    drafted, accepted = line["drafted_by_depth"], line["accepted_by_depth"]
    assert len(drafted) == len(accepted) and drafted[0] > 0
    assert accepted == sorted(accepted, reverse=True) and accepted[0] <= line["cycles"]
    assert all(line["ms"][stage] > 0 for stage in ("draft", "score", "verify", "commit"))
    generate(*flags, "-o", "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_trained_refiner_takes_fewer_passes_than_its_rows_alone(
    cli: Cli, demo_bundle: Path
) -> None:
    """The refiner reads the same features in decoding as in training."""
    words = ("bench", "-p", "a red boat at night", "-b", 4, "--temperature", 1, "--repeats", 1)
    methods = "sjd:tree=chain-5,refine:tree=chain-5"
    report = numbers(cli, *words, "--methods", methods, model=demo_bundle)["methods"]
    windows, refined = (row["step_compression"]["mean"] for row in report[-2:])
    assert refined > windows + 0.2


def test_the_default_is_one_token_per_pass(generate: Any) -> None:
    (line,) = generate("-p", "a")
    assert (line["method"], line["target_passes"]) == ("ar", TOKENS)
    assert line["step_compression"] == 1 and line["drafted_by_depth"] == []
    assert not {"rule", "tree", "drafter", "relax_k"} & set(line)


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
@pytest.mark.parametrize(
    "flags",
    [("eagle",), ("eagle-2",), ("eagle", "--tree", "lantern-26"),
     ("sjd",), ("sjd", "--init", "above", "--tail", "fresh"), ("scd", "--tree", "chain-9"), ("gsd",),
     ("sjd-pac",), ("sjd-pac", "--tree", "fan-3-2-9", "--init", "repeat"), ("eagle+sjd", "--front", 3),
     ("medusa",), ("medusa", "--tree", "chain-2"), ("mlp",), ("refine",), ("refine", "--tree", "chain-9"), ("refine", "--tail", "keep"), ("eagle", "--draft-length", "auto"), ("self",), ("flash",), ("flash+sjd", "--front", 2),
     ("eagle-3",), ("eagle-3", "--tree", "dynamic", "--children", "top"), ("self", "--draft-window", 3, "--tree", "lantern-26"),
     ("lookahead",), ("lookahead", "--tree", "chain-1"), ("eagle-2", "--adapt", "neighbours"),
     ("sjd", "--tree", "chain-9", "--adapt", "neighbours"), ("refine", "--tree", "chain-9", "--adapt", "neighbours"),
     ("refine", "--tail", "keep", "--adapt", "neighbours")],
)  # fmt: skip
def test_lossless_methods_at_temperature_0_generate_the_autoregressive_image(
    generate: Any, tmp_path: Path, dtype: str, flags: tuple[str, ...]
) -> None:
    given = ("-p", "a house", "-p", "b", "--temperature", 0, "--dtype", dtype)
    generate(*given, "-o", "ar-%d.png")
    generate(*given, "--method", *flags, "-o", "fast-%d.png")
    for number in range(2):
        assert pixels(tmp_path / f"ar-{number}.png") == pixels(tmp_path / f"fast-{number}.png")


@pytest.mark.parametrize("method", METHODS)
def test_batch_size_changes_nothing(generate: Any, tmp_path: Path, method: str) -> None:
    for size in (1, 3):
        generate("-p", "a", "-p", "a red boat", "-b", 2, "--method", method, "--batch-size", size,
             "-o", f"{size}/")  # fmt: skip
    for number in range(4):
        name = f"000{number}.png"
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "3" / name).read_bytes()


@pytest.mark.parametrize(
    "method",
    [*METHODS, "sjd-pac --rule official-pac", "eagle-2 --adapt neighbours",
     "refine --tail keep --adapt neighbours"],
)  # fmt: skip
def test_slots_are_refilled(generate: Any, tmp_path: Path, method: str) -> None:
    """More images than slots, with different settings: results stay in order, images stay the same."""
    requests = [
        {"prompt": "a " + "red " * number + "boat", "cfg_scale": 1 + number % 3, "seed": 5 * number,
         "temperature": 0.7 + 0.1 * number, "cfg_interval": 4 if number == 2 else -1}
        for number in range(7)
    ]  # fmt: skip
    (tmp_path / "p.jsonl").write_text("\n".join(map(json.dumps, requests)))
    lines = {
        size: generate("--prompt-file", "p.jsonl", "--method", *method.split(), "--batch-size", size,
                   "-o", f"{size}/", "--trace", f"{size}.jsonl", *flags)
        for size, flags in ((1, ("--no-graph",)), (2, ()), (3, ()))
    }  # fmt: skip
    for number in range(len(requests)):
        name = f"000{number}.png"
        alone, expected = (tmp_path / "1" / name).read_bytes(), lines[1][number]
        for size in (2, 3):
            line = lines[size][number]
            assert (tmp_path / str(size) / name).read_bytes() == alone
            assert line["output"] == f"{size}/{name}" and 1 <= line["batch"] <= size
            assert line["cycles"] == expected["cycles"]
            assert line["accepted_by_depth"] == expected["accepted_by_depth"]
            assert line["ms"]["decode"] > 0 and line["ms"]["prefill"] > 0
    assert all(lines[size][0]["batch"] == size for size in lines)


def test_metadata_names_the_lossy_rule_of_an_image(generate: Any, tmp_path: Path) -> None:
    (line,) = generate("-p", "a", *RELAXED, "-o", "a.png")
    found = texts(tmp_path / "a.png")
    fields = json.loads(found["lamplighter"])
    expected = {
        "method": "lantern++", "rule": "lantern++", "tree": "chain-3", "children": "sampled",
        "residual": "paper", "drafter": "main", "draft_guidance": "combined", "relax_k": 7,
        "lambda": [4.0, 2.5], "target_passes": line["target_passes"],
        "step_compression": line["step_compression"],
        "acceptance_length": line["acceptance_length"],
    }  # fmt: skip
    assert {key: fields[key] for key in expected} == expected
    assert not {"delta", "ms", "batch"} & set(fields)
    assert f"Steps: {line['target_passes']}, Sampler: lantern++, CFG scale: " in found["parameters"]
    assert (
        ", Rule: lantern++, Tree: chain-3, Children: sampled, Relax-k: 7, "
        'Lambda: "4.0, 2.5", Residual: paper, Drafter: main, Draft guidance: combined, Version: '
    ) in found["parameters"]
    generate("-p", "a", "--method", "eagle", "--tree", "chain-2", "-o", "b.png")
    fields = json.loads(texts(tmp_path / "b.png")["lamplighter"])
    assert (fields["rule"], fields["tree"]) == ("exact", "chain-2")
    assert not {"relax_k", "delta", "lambda", "residual"} & set(fields)


@pytest.mark.parametrize(
    "flags",
    [RELAXED, ("--method", "lantern", "--delta", 0.3, "--residual", "optimal"), ("--method", "eagle"),
     ("--method", "eagle", "--rule", "cool", "--delta", 3, "--mu", 0.5, "--nu", 0.2),
     ("--method", "eagle", "--rule", "typical", "--epsilon", 0.2, "--alpha", 0.5),
     ("--method", "eagle", "--lenience", 0.3),
     ("--method", "gsd", "--group-gap", 0.2, "--group-distance", 1.5, "--tree", "chain-3"),
     ("--method", "eagle-2", "--dynamic-depth", 2, "--dynamic-width", 3, "--dynamic-nodes", 7),
     ("--method", "eagle", "--rule", "traversal", "--draft-guidance", "conditional"),
     ("--method", "sjd", "--init", "sample", "--tail", "fresh", "--tree", "chain-3"),
     ("--method", "sjd-pac", "--rule", "official-pac", "--tree", "fan-3-2-5"),
     ("--method", "eagle", "--draft-length", "auto", "--draft-confidence", 0.2),
     ("--method", "self", "--draft-layers", 1, "--draft-window", 3),
     ("--method", "zipar", "--ahead", 3, "--zipar", "official")],
)  # fmt: skip
def test_parameters_of_an_image_generate_it_again(
    generate: Any, tmp_path: Path, flags: tuple[object, ...]
) -> None:
    generate("-p", "a", "-s", 3, *flags, "-o", "a.png")
    generate("--params-from", "a.png", "-o", "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_flags_override_the_parameters_of_an_image(generate: Any) -> None:
    generate("-p", "a", *RELAXED, "-o", "a.png")
    again = ("--params-from", "a.png", "--overwrite")
    (line,) = generate(*again, "--lambda", 3)
    assert (line["lambda"], line["relax_k"], line["tree"]) == ([3.0], 7, "chain-3")
    (line,) = generate(*again, "--tree", "chain-1")
    assert (line["lambda"], line["tree"]) == ([4.0, 2.5], "chain-1")
    (line,) = generate(*again, "--rule", "exact")
    assert (line["rule"], line["tree"]) == ("exact", "chain-3") and "lambda" not in line
    (line,) = generate(*again, "--method", "lantern", "--delta", 0.25)
    assert (line["rule"], line["delta"]) == ("lantern", 0.25)
    assert line["relax_k"] != 7 and "lambda" not in line
    (line,) = generate(*again, "--method", "ar")
    assert line["method"] == "ar" and "tree" not in line
