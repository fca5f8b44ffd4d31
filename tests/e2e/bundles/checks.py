"""Checks for the bundles of all families with the methods that need no trained drafter."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from models.export.drafters.draft_model import attach_model
from tests.e2e import families
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
BATCHED: tuple[tuple[object, ...], ...] = (
    ("ar",),
    EXACT[0],
    ("gsd", "--tree", "chain-4", "--group-gap", 0.5),
)
SIDE_BY_SIDE: tuple[tuple[object, ...], ...] = (  # row-parallel methods need rows without row ends
    ("zipar", "--ahead", 2),
    ("zipar+sjd", "--ahead", 2, "--tree", "chain-2"),
    ("pjd", "--ahead", 2, "--tree", "chain-2"),
)

Images = list[dict[str, Any]]
Generate = Callable[..., Images]  # takes flags of the command generate
Twin = Callable[[str], Path]  # makes the bundle of a row of FAMILIES


def requests(
    sizes: Sequence[tuple[int, int]], captions: Sequence[str], scales: Sequence[float]
) -> list[dict[str, Any]]:
    """Every caption with its guidance scale, in all sizes."""
    return [
        {"prompt": caption, "width": width, "height": height, "cfg_scale": scale}
        for width, height in sizes
        for caption, scale in zip(captions, scales, strict=True)
    ]


@dataclass(frozen=True)
class Family:
    """A small bundle, and what is generated with it: every caption in all sizes."""

    make: Callable[..., Path]
    sizes: tuple[tuple[int, int], ...]
    captions: tuple[str, str, str]
    scales: tuple[int, int, int]  # of guidance, for each caption
    options: tuple[str, ...] = ()  # of the exporter
    negatives: tuple[str | None, ...] = (None, None, None)  # for each caption
    batched: tuple[tuple[object, ...], ...] = BATCHED
    no_rows: str = ""  # why methods of SIDE_BY_SIDE refuse the bundle; empty: they run

    def requests(self) -> list[dict[str, Any]]:
        lines = requests(self.sizes, self.captions, self.scales)
        negatives = itertools.cycle(self.negatives)
        return [
            line | ({} if negative is None else {"negative_prompt": negative})
            for line, negative in zip(lines, negatives, strict=False)
        ]

    def bundle(self, folder: Path) -> Path:
        """The bundle with its own target as draft model."""
        bundle = self.make(folder, [f"{w}x{h}" for w, h in self.sizes], *self.options)
        attach_model(bundle, bundle, "twin")
        return bundle


PHOTO = "  Ein süßer Käfer, 35mm photo\n"
ROW_ENDS = "needs image rows of codes only"
EMU3 = Family(
    families.emu3,
    ((8, 12), (10, 4)),
    ("a red boat", PHOTO, "<|extra_200|> typed {rows}"),
    (3, 2, 1),
    negatives=(None, "fog", ""),
    no_rows=ROW_ENDS,
)
LUMINA2 = Family(  # guidance whose scale falls, rises or stays, and none
    families.lumina2,
    ((64, 96), (64, 32)),
    ("a red boat", PHOTO, "<reserved08799> typed"),
    (9, 2, 1),
    no_rows=ROW_ENDS,
)
SIMPLEAR = Family(
    families.simplear,
    ((64, 64), (80, 48)),
    ("a red boat", PHOTO * 3, "<|soi|> and \u3000e\u0301"),
    (6, 2, 1),
    negatives=(None, "fog", ""),
)
FAMILIES = {
    "emu3": EMU3,
    "emu35": replace(EMU3, make=families.emu35),
    "glm_image": Family(  # 2 x 3 codes behind 13 x 19 of a preview
        families.glm_image,
        ((96, 64),),
        ("a red boat", PHOTO, "<eop> typed {rows}"),
        (1, 2, 1),
        batched=BATCHED[:2],
        no_rows="a preview stands in front of them",
    ),
    "janus": Family(
        families.janus,
        ((128, 128), (80, 48)),
        ("a red boat", PHOTO, "<begin_of_image> and \u3000"),
        (5, 2, 1),
    ),
    "lumina2": LUMINA2,
    "lumina2 official": replace(LUMINA2, options=("--official-schedule",)),
    "simplear": SIMPLEAR,
    "simplear all ids": replace(SIMPLEAR, options=("--full-head",)),
    "tar decoder": Family(  # prompts are lists of 36, 9 or 4 codes
        families.tar_decoder,
        ((8, 8),),
        (" ".join(map(str, range(36))), "3,1,4,1,5,9,2,6,39", "7 7\n0 \t7 "),
        (4, 2, 1),
    ),
}


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


def by_turns(
    methods: tuple[tuple[object, ...], ...], number: int, dtype: str
) -> tuple[tuple[object, ...], ...]:
    """Every second method: neighbours in a list of bundles, or both precisions of one, check them all."""
    return methods[(number + (dtype == "bf16")) % 2 :: 2]


def check_lossless_methods(
    generate: Generate, dtype: str, methods: Sequence[tuple[object, ...]]
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
