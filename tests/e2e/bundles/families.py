"""What every family's bundle must do with the methods that need no trained drafter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.support import Cli

EXACT: tuple[tuple[object, ...], ...] = (  # draft-model: of a bundle that has its own target as one
    ("sjd", "--tree", "chain-15"),
    ("sjd-pac",),
    ("ngram",),
    ("lookahead",),
    ("self", "--draft-layers", 1),
    ("draft-model", "--tree", "chain-4"),
    ("scd", "--tree", "chain-4", "--init", "above"),
)
BATCHED = [("ar",), EXACT[0], ("gsd", "--tree", "chain-4", "--group-gap", 0.5)]
SIDE_BY_SIDE: tuple[tuple[object, ...], ...] = (  # of rows that end with a code
    ("zipar", "--ahead", 2),
    ("zipar+sjd", "--ahead", 2, "--tree", "chain-2"),
    ("pjd", "--ahead", 2, "--tree", "chain-2"),
)

Pictures = list[dict[str, Any]]
Draw = Callable[..., Pictures]  # called with arguments of generate


def requests(
    sizes: Sequence[tuple[int, int]], captions: Sequence[str], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """Every caption with its scale of guidance, in all sizes."""
    return [
        {"prompt": caption, "width": width, "height": height, "cfg_scale": scale}
        for width, height in sizes
        for caption, scale in zip(captions, scales, strict=True)
    ]


def draw_requests(
    cli: Cli, bundle: Path, folder: Path, lines: Sequence[dict[str, Any]], *arguments: object
) -> Pictures:
    """The pictures' entries of the codes file; `folder` is where the program runs."""
    (folder / "requests.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = cli(
        "generate", "--prompt-file", "requests.jsonl", "-q", "-t", 1, "--skip-checksums",
        "-o", "%d.png", "--overwrite", "--save-codes", "codes.json", *arguments, model=bundle,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return list(json.loads((folder / "codes.json").read_text())["pictures"])


def check_exact_methods(
    draw: Draw, dtype: str, methods: Sequence[tuple[object, ...]] = EXACT
) -> Pictures:
    """They draw the autoregressive codes at temperature 0, which are returned."""
    common = ("--temperature", 0, "--dtype", dtype, "--batch-size", 3)
    expected = draw("--method", "ar", *common)
    for method in methods:
        found = draw("--method", *method, *common)
        for number, (picture, other) in enumerate(zip(found, expected, strict=True)):
            assert picture["codes"] == other["codes"], f"{method}: picture {number}"
    return expected


def check_batches(draw: Draw, method: tuple[object, ...]) -> None:
    """A batch draws what is drawn alone."""
    together = draw("--method", *method, "--batch-size", 6)
    alone = draw("--method", *method, "--batch-size", 1)
    assert [p["codes"] for p in together] == [p["codes"] for p in alone]
