"""bench --compare."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.support import Cli, Refused, parsed


def test_runs_are_compared(cli: Cli, ran: Cli, drafter_bundle: Path, tmp_path: Path) -> None:
    captions = ("-p", "a red hill", "-p", "a blue lake", "-p", "a tower")
    for name, method in (("a.json", "eagle:tree=chain-2"), ("b.json", "eagle:tree=chain-3")):
        words = ("bench", *captions, "--threads", 1, "-q", "--export-json", name)
        assert cli(*words, "--methods", method, model=drafter_bundle).returncode == 0
    result = ran("bench", "--compare", "a.json", "b.json", model=None)
    assert "only in a.json: eagle:tree=chain-2" in result.stdout
    assert "only in b.json: eagle:tree=chain-3" in result.stdout
    comparison = parsed(cli("bench", "--compare", "a.json", "a.json", "--json", model=None))
    assert [m["method"] for m in comparison["methods"]] == ["ar", "eagle:tree=chain-2"]
    for method in comparison["methods"]:
        for quantity in ("step_compression", "speedup", "token_ms"):
            change = method[quantity]
            assert change["ratio"]["mean"] == 1 and not change["beyond_noise"]
            assert change["before"]["count"] == 3 and change["paired"]
    assert comparison["only_before"] == comparison["only_after"] == []
    assert comparison["differences"] == []

    changed = json.loads((tmp_path / "a.json").read_text())
    changed["dtype"] = "fp32"
    for sample in changed["samples"]:
        if sample["method"] != "ar":
            sample["decode_ms"] *= 2
    (tmp_path / "slow.json").write_text(json.dumps(changed))
    slow = parsed(cli("bench", "--compare", "a.json", "slow.json", "--json", model=None))
    assert slow["methods"][1]["token_ms"]["beyond_noise"]
    assert abs(slow["methods"][1]["token_ms"]["ratio"]["mean"] - 2) < 1e-9
    assert not slow["methods"][0]["token_ms"]["beyond_noise"]
    assert [d["key"] for d in slow["differences"]] == ["dtype"]
    table = cli("bench", "--compare", "a.json", "slow.json", model=None).stdout
    assert "differs: dtype: bf16 -> fp32" in table and "higher" in table


def test_what_cannot_be_compared(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "foreign.json").write_text('{"methods": []}')
    (tmp_path / "torn.json").write_text('{"format": "lamplighter-bench"')
    for code, words, text in (
        (3, ("foreign.json", "foreign.json"), "foreign.json: is not a file of bench"),
        (3, ("torn.json", "foreign.json"), "torn.json"),
        (3, ("none.json", "foreign.json"), "none.json"),
        (2, ("foreign.json",), "--compare"),
        (2, ("torn.json", "foreign.json", "--repeats", 2), "--repeats and --compare"),
    ):
        assert text in refused(code, "bench", "--compare", *words, model=None)
