"""--method draft-model: one target drafts for another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.support import Cli, Refused, parsed

DEPTH = 3
Family = Callable[[str], Path]


@pytest.mark.parametrize(
    ("name", "subject"), [("llamagen-t2i", ("-p", "a red boat")), ("llamagen-c2i", ("--class", 3))]
)
def test_a_target_accepts_all_drafts_of_itself(
    cli: Cli, family: Family, name: str, subject: tuple[object, ...]
) -> None:
    bundle = family(name)
    codes = 16
    for more in ((), ("--temperature", 0), ("--cfg-interval", 4)):
        result = cli(
            "generate", *subject, "--json", "--method", "draft-model", "--tree", f"chain-{DEPTH}",
            "--cfg-scale", 3, *more, "-o", "a.png", "--overwrite", model=bundle,
        )  # fmt: skip
        line = parsed(result)
        assert line["drafter"] == "twin" and line["rule"] == "exact"
        passes = 1 + math.ceil((codes - 1) / (DEPTH + 1))
        assert line["target_passes"] == passes, line


def test_the_records_of_the_drafter_are_checked(cli: Cli, ran: Cli, family: Family) -> None:
    result = ran("check", family("llamagen-t2i"))
    assert "twin" in result.stdout
    facts = parsed(cli("inspect", family("llamagen-t2i"), "--json"))
    assert "draft-model" not in json.dumps(facts.get("needs", {}))


def test_without_a_model_the_exporter_is_named(refused: Refused, drafter_bundle: Path) -> None:
    words = refused(
        4, "generate", "-p", "a", "--method", "draft-model", "-o", "a.png", model=drafter_bundle
    )
    assert "has no drafter of kind model" in words
    assert "lamplighter-export draft-model" in words
