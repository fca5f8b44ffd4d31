"""Checks for the bundles of all families with the methods that need no trained drafter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.e2e.support import Cli

EXACT: tuple[tuple[object, ...], ...] = (  # draft-model: with the target itself as draft model
    ("sjd", "--tree", "chain-15"),
    ("sjd-pac",),
    ("ngram",),
    ("lookahead",),
    ("self", "--draft-layers", 1),
    ("draft-model", "--tree", "chain-4"),
    ("scd", "--tree", "chain-4", "--init", "above"),
)
BATCHED = [("ar",), EXACT[0], ("gsd", "--tree", "chain-4", "--group-gap", 0.5)]
SIDE_BY_SIDE: tuple[tuple[object, ...], ...] = (  # row-parallel methods need rows without row ends
    ("zipar", "--ahead", 2),
    ("zipar+sjd", "--ahead", 2, "--tree", "chain-2"),
    ("pjd", "--ahead", 2, "--tree", "chain-2"),
)

Images = list[dict[str, Any]]
Generate = Callable[..., Images]  # takes flags of the command generate


def requests(
    sizes: Sequence[tuple[int, int]], captions: Sequence[str], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """Every caption with its guidance scale, in all sizes."""
    return [
        {"prompt": caption, "width": width, "height": height, "cfg_scale": scale}
        for width, height in sizes
        for caption, scale in zip(captions, scales, strict=True)
    ]


def generate_requests(
    cli: Cli, bundle: Path, folder: Path, lines: Sequence[dict[str, Any]], *arguments: object
) -> Images:
    """The images' entries of the codes file; `folder` is where the program runs."""
    (folder / "requests.jsonl").write_text("\n".join(map(json.dumps, lines)))
    modules = json.loads((bundle / "manifest.json").read_text())["modules"]
    images = ("-o", "%d.png") if "image_decoder" in modules else ()
    result = cli(
        "generate", "--prompt-file", "requests.jsonl", "-q", "-t", 1, "--skip-checksums",
        *images, "--overwrite", "--save-codes", "codes.json", *arguments, model=bundle,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return list(json.loads((folder / "codes.json").read_text())["images"])


def tokens_of(image: dict[str, Any]) -> list[int]:
    """The codes of an entry, with a preview's in front."""
    return [*image.get("preview", []), *image["codes"]]


def check_lossless_methods(
    generate: Generate, dtype: str, methods: Sequence[tuple[object, ...]] = EXACT
) -> Images:
    """Checks that the methods generate the autoregressive codes at temperature 0, and returns these."""
    common = ("--temperature", 0, "--dtype", dtype, "--batch-size", 3)
    expected = generate("--method", "ar", *common)
    for method in methods:
        found = generate("--method", *method, *common)
        for number, (image, other) in enumerate(zip(found, expected, strict=True)):
            assert tokens_of(image) == tokens_of(other), f"{method}: image {number}"
    return expected


def check_batches(generate: Generate, method: tuple[object, ...]) -> None:
    """Checks that images of a batch equal images generated alone."""
    together = generate("--method", *method, "--batch-size", 6)
    alone = generate("--method", *method, "--batch-size", 1)
    assert list(map(tokens_of, together)) == list(map(tokens_of, alone))
