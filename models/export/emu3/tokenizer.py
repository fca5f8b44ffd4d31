"""The tokenizer.json of an Emu3 folder: transformers', or one made of the official files."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..checkpoint import ExportError
from ..qwen_tokenizer import FLAGS, qwen_tokenizer

RANKS, SPECIAL = "emu3.tiktoken", "emu3_vision_tokens.txt"
# Tokens in front of those that the second file lists; they follow the ranks.
FIRST = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205)))
MOST_BYTES = 64 << 20


def find_tokenizer(folder: Path, scratch: Path) -> Path:
    """A file named tokenizer.json, in `scratch` if the folder has none. ExportError: no tokenizer."""
    if (folder / "tokenizer.json").is_file():
        return folder / "tokenizer.json"
    if not (folder / RANKS).is_file():
        raise ExportError(
            f"{folder}: no tokenizer, expected tokenizer.json, or {RANKS} with {SPECIAL}"
        )
    made = scratch / "tokenizer.json"
    made.write_text(json.dumps(from_ranks(folder), ensure_ascii=False), encoding="utf-8")
    return made


def from_ranks(folder: Path) -> dict[str, Any]:
    """Content of tokenizer.json. ExportError: the files are none of Emu3's tokenizer."""
    ranks = read_ranks(folder / RANKS)
    special = [*FIRST, *filter(None, map(str.strip, read_lines(folder / SPECIAL)))]
    merges, letters = [], byte_letters()

    def spelled(token: bytes) -> str:
        return "".join(letters[byte] for byte in token)

    for token, rank in sorted(ranks.items(), key=lambda each: each[1]):
        if len(token) > 1:
            parts = split(token, ranks, rank)
            if len(parts) != 2:
                raise ExportError(
                    f"{folder / RANKS}: token {rank} is made of {len(parts)} earlier ones, expected 2"
                )
            merges.append(" ".join(map(spelled, parts)))
    added = [
        # The authors compose accents first: one behind a tag changes its last character.
        {"id": number, "content": text, **FLAGS, "normalized": True, "special": True}
        for number, text in enumerate(special, len(ranks))
    ]
    return qwen_tokenizer({spelled(t): rank for t, rank in ranks.items()}, merges, added)


def split(token: bytes, ranks: Mapping[bytes, int], rank: int) -> list[bytes]:
    """The parts of a token when all merges of lower rank are done."""
    parts = [bytes([byte]) for byte in token]
    while True:
        pairs = [ranks.get(a + b, rank) for a, b in zip(parts, parts[1:], strict=False)]
        best = min(pairs, default=rank)
        if best >= rank:
            return parts
        at = pairs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


def read_ranks(file: Path) -> dict[bytes, int]:
    """Ranks, which are ids, by bytes."""
    ranks: dict[bytes, int] = {}
    try:
        for line in filter(None, read_lines(file)):
            token, number = line.split()
            ranks[base64.b64decode(token, validate=True)] = int(number)
    except ValueError as error:
        raise ExportError(f"{file}: expected lines of a token in base 64 and its rank") from error
    if sorted(ranks.values()) != list(range(len(ranks))) or b"" in ranks:
        raise ExportError(f"{file}: expected ranks from 0 to {len(ranks) - 1}, each once")
    return ranks


def read_lines(file: Path) -> list[str]:
    try:
        if file.stat().st_size > MOST_BYTES:
            raise ExportError(f"{file}: has more than {MOST_BYTES} bytes")
        return file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError as error:
        raise ExportError(f"{file}: no such file") from error
    except (OSError, ValueError) as error:
        raise ExportError(f"{file}: not readable as text: {error}") from error


def byte_letters() -> list[str]:
    """The character that stands for each byte in byte-level BPE: itself where it is printable."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {byte: chr(byte) for byte in printable}
    others = (byte for byte in range(256) if byte not in letters)
    letters |= {byte: chr(0x100 + number) for number, byte in enumerate(others)}
    return [letters[byte] for byte in range(256)]
