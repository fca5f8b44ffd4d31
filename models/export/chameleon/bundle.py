"""Entries of a Chameleon bundle besides the weights: prompts, grids, defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ...chameleon.config import ChameleonConfig, TokenIds
from ..checkpoint import ExportError
from ..common import grid_entry, network_entries, sampling_entry
from ..config_file import MOST, Section
from ..settings import MOST_TEXT, read_sampling, read_sizes
from ..tokenizer_file import added_pieces, bpe_pieces

DOWNSAMPLE = 16  # of the published image tokenizer
SIZE_STEP = 2  # codes per step of Lumina-mGPT's size tokens
PUBLISHED_VOCABULARY = 65536
# Ids that stand for one thing each. size_base is not among them: no size is 0.
MARKS = ("bos", "end_of_image", "begin_of_image", "separator", "end_of_text", "row_end")
TEXT_LENGTH = 256  # most ids of one text, unless the positions leave fewer
SHORTEST_TEXT = 64  # a size that leaves fewer does not fit
# The first sentence is the notice that copies have to carry.
LICENCE = (
    "Chameleon is licensed under the Chameleon Research License, Copyright (c) Meta Platforms, Inc. "
    "All Rights Reserved. Noncommercial research uses only."
)


@dataclass(frozen=True)
class Family:
    """One member: its prompt, sizes and usual sampling."""

    name: str
    text: str
    sizes: tuple[tuple[int, int], ...]
    cfg_scale: float
    framed: bool  # the image opens with its size and every row ends with a token

    @property
    def sampling(self) -> dict[str, Any]:
        return sampling_entry(self.cfg_scale, 2000)


# Guidance 3 and the 2000 best ids are LANTERN's settings for Anole (Jang et al. 2024); Anole is
# Chameleon with its image ids switched on again. Lumina-mGPT's own example takes guidance 4.
FAMILIES = {
    "chameleon": Family("chameleon", "{prompt}", ((512, 512),), 3.0, False),
    "anole": Family("anole", "{prompt}", ((512, 512),), 3.0, False),
    "lumina-mgpt": Family(
        "lumina-mgpt",
        "Generate an image of {width}x{height} according to the following prompt:\n"
        "{prompt}<reserved08706>",
        ((512, 512), (768, 768), (1024, 1024)),
        4.0,
        True,
    ),
}


@dataclass
class Settings:
    """Settings that --config may change; the defaults are the published models'."""

    tokens: TokenIds = field(default_factory=TokenIds)
    sizes: list[tuple[int, int]] | None = None  # width, height in pixels
    sampling: dict[str, Any] = field(default_factory=dict)
    text_length: int | None = None
    max_positions: int | None = None


def read_settings(path: Path | None) -> Settings:
    if path is None:
        return Settings()
    given = Section.read(path, 2)
    settings = Settings(sizes=read_sizes(given))
    given.known([entry.name for entry in fields(settings)])
    if "tokens" in given:
        tokens = given.section("tokens")
        tokens.known([entry.name for entry in fields(settings.tokens)])
        names = [name for name in tokens.values if name in tokens]
        least = {"codebook_size": 1}
        settings.tokens = TokenIds(
            **{name: tokens.integer(name, least=least.get(name, 0)) for name in names}
        )
        require_distinct(tokens, settings.tokens)
    settings.sampling = read_sampling(given)
    for name, most in (("text_length", MOST_TEXT), ("max_positions", MOST["max_positions"])):
        if name in given:
            setattr(settings, name, given.integer(name, most=most))
    return settings


def require_distinct(given: Section, ids: TokenIds) -> None:
    """ExportError: an id has two meanings."""
    known = {code: "a code of images" for code in ids.codes()}
    for name in MARKS:
        value = getattr(ids, name)
        if value in known:
            raise given.error(name, f"an id of its own, but {value} is {known[value]}")
        known[value] = f"{given.prefix}{name}"


def family_grid(
    family: Family, ids: TokenIds, width: int, height: int, downsample: int
) -> dict[str, Any]:
    """ExportError: the family has no image of that size."""
    step = downsample * (SIZE_STEP if family.framed else 1)
    if width % step or height % step:
        raise ExportError(f"size {width}x{height}: expected multiples of {step} pixels", 2)
    entry = grid_entry(width, height, downsample)
    entry["before"] = [ids.begin_of_image]
    if family.framed:
        entry["before"] += [ids.size_base + height // step, ids.size_base + width // step]
        entry["row_end"] = [ids.row_end]
        entry["after"] = [ids.end_of_image, ids.separator]
    return entry


def fed_after_prompt(grid: dict[str, Any]) -> int:
    """Codes and row ends of an image."""
    return int(grid["rows"] * grid["columns"] + (grid["rows"] - 1) * len(grid["row_end"]))


def fitting_grids(
    family: Family, config: ChameleonConfig, settings: Settings, downsample: int, room: int
) -> list[dict[str, Any]]:
    """Grids of the wished sizes, or of the usual ones for which there are positions.

    room: positions for the prompt. ExportError: a wished size does not fit.
    """
    positions = settings.max_positions or config.max_positions
    wished = settings.sizes or family.sizes
    grids = [family_grid(family, settings.tokens, *size, downsample) for size in wished]
    fitting = [grid for grid in grids if room + fed_after_prompt(grid) <= positions]
    refused = [grid for grid in grids if grid not in fitting]
    if refused and (settings.sizes or not fitting):
        grid = refused[0]
        raise ExportError(
            f"size {grid['width']}x{grid['height']} takes {fed_after_prompt(grid)} positions and "
            f"its prompt {room}, the model has {positions}",
            2,
        )
    return fitting


def check_ids(family: Family, config: ChameleonConfig, entries: dict[str, Any]) -> None:
    """Every id of the manifest must have an embedding."""
    prompt, tokens = entries["prompt"], entries["tokens"]
    used = [*prompt["prefix"], *prompt["suffix"], *prompt["unconditional"]]
    used.append(tokens["first_image_id"] + tokens["codebook_size"] - 1)
    for grid in entries["grids"]:
        used += [*grid["before"], *grid["row_end"], *grid["after"]]
    if max(used) >= config.vocab_size:
        raise ExportError(
            f"{family.name} uses id {max(used)}, the model has ids 0 to {config.vocab_size - 1}"
        )


def target_entries(
    family: Family, config: ChameleonConfig, settings: Settings, downsample: int
) -> dict[str, Any]:
    """Manifest entries of a bundle with a target; a code covers `downsample` pixels a side."""
    ids = settings.tokens
    prefix, suffix = [ids.bos], [] if family.framed else [ids.separator]
    around = len(prefix) + len(suffix) + (3 if family.framed else 1)
    room = around + (settings.text_length or SHORTEST_TEXT)
    grids = fitting_grids(family, config, settings, downsample, room)
    longest = max(fed_after_prompt(grid) for grid in grids)
    positions = settings.max_positions or config.max_positions
    text_length = settings.text_length or min(TEXT_LENGTH, positions - around - longest)
    length = around + text_length
    entries: dict[str, Any] = {
        "prompt": {
            "kind": "tokens",
            "length": length,
            "align": "start",
            "prefix": prefix,
            "text": family.text,
            "suffix": suffix,
            "unconditional": [] if family.framed else [ids.bos],
        },
        **network_entries(config, ids.first_image_id, ids.codebook_size, length + longest),
        "grids": grids,
        "sampling": {**family.sampling, **settings.sampling},
    }
    check_ids(family, config, entries)
    return entries


def text_entry(config: ChameleonConfig, settings: Settings, grid: dict[str, Any]) -> dict[str, Any]:
    """Manifest entry of texts about an image, whose codes stand behind the question.

    Meta's program has this temperature and top-p. ExportError: there is no room for a text.
    """
    ids = settings.tokens
    length = settings.max_positions or config.max_positions
    needed = 4 + grid["rows"] * grid["columns"] + SHORTEST_TEXT
    if needed > length:
        raise ExportError(
            f"--text: an image of {grid['width']}x{grid['height']} and a short text take {needed} "
            f"positions, the model has {length}",
            2,
        )
    return {
        "prefix": [ids.bos],
        "text": "{prompt}{image}",
        "before_image": [ids.begin_of_image],
        "after_image": [ids.end_of_image],
        "suffix": [ids.separator],
        "stop": [ids.separator, ids.end_of_text],
        "length": length,
        "sampling": {"temperature": 0.7, "top_k": 0, "top_p": 0.9},
    }


def text_room(entries: dict[str, Any]) -> int:
    """Most ids of one text in a prompt."""
    prompt, grid = entries["prompt"], entries["grids"][0]
    around = (*prompt["prefix"], *prompt["suffix"], *grid["before"])
    return int(prompt["length"] - len(around))


def tokenizer_entry(
    path: Path, ids: TokenIds, vocabulary: int, length: int, text: bool
) -> dict[str, Any]:
    """Manifest entry of a tokenizer whose special pieces have the ids that are used.

    text: the bundle generates texts, too.
    """
    pieces = bpe_pieces(path)
    largest = max(pieces.values(), default=-1)
    if largest >= vocabulary:
        raise ExportError(f"{path}: has ids up to {largest}, the model embeds {vocabulary}")
    # Added ones may be beyond, as <|image|> is, which no prompt for an image holds.
    pieces.update(added_pieces(path))
    expected = {
        "<s>": ids.bos,
        "<racm3:break>": ids.begin_of_image,
        "<eoss>": ids.end_of_image,
        "<reserved08706>": ids.separator,
    }
    if text:
        expected["</s>"] = ids.end_of_text
    for code in range(ids.codebook_size):
        letters = "".join("ABCDEFGHIJ"[int(digit)] for digit in str(code))
        expected[f"IMGIMG{letters}Z"] = ids.first_image_id + code
    for piece, number in expected.items():
        if pieces.get(piece) != number:
            raise ExportError(f"{path}: {piece} has id {pieces.get(piece)}, expected {number}")
    return {"kind": "bpe", "file": path.name, "max_length": length}


def usual_tokenizer(folder: Path) -> Path | None:
    """The tokenizer beside the weights, as the published folders have it."""
    files: Sequence[Path] = (
        folder / "tokenizer.json",
        folder / "text_tokenizer.json",
        folder / ".." / ".." / "tokenizer" / "text_tokenizer.json",
    )
    return next((file for file in files if file.is_file()), None)
