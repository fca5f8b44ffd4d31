"""The tokenizer.json of a Qwen2 folder: its own, or one made of the files of the slow tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import checkpoint
from ..checkpoint import ExportError
from ..qwen_tokenizer import FLAGS, qwen_tokenizer
from ..tokenizer_file import check_ids


def read_tokenizer(folder: Path, scratch: Path) -> Path:
    """A file named tokenizer.json, in `scratch` if the folder has none. ExportError: no tokenizer."""
    if (folder / "tokenizer.json").is_file():
        return folder / "tokenizer.json"
    if not (folder / "vocab.json").is_file():
        raise ExportError(
            f"{folder}: no tokenizer, expected tokenizer.json, or vocab.json with merges"
        )
    made = scratch / "tokenizer.json"
    made.write_text(json.dumps(from_slow(folder), ensure_ascii=False), encoding="utf-8")
    return made


def from_slow(folder: Path) -> dict[str, Any]:
    """Content of tokenizer.json, of vocab.json, merges.txt and the tokens that were added."""
    try:
        lines = (folder / "merges.txt").read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise ExportError(f"{folder / 'merges.txt'}: {error}") from error
    merges = [line for line in lines if line and not line.startswith("#version")]
    vocabulary = checkpoint.read_json(folder / "vocab.json")
    check_ids(folder / "vocab.json", vocabulary)
    return qwen_tokenizer(vocabulary, merges, added_tokens(folder))


def added_tokens(folder: Path) -> list[dict[str, Any]]:
    """By id; tokenizer_config.json says how they are found, added_tokens.json at least which there are."""
    found: dict[int, dict[str, Any]] = {}
    where = folder / "added_tokens.json"
    try:
        listed = checkpoint.read_json(where) if where.is_file() else {}
        check_ids(where, listed)
        for text, number in listed.items():
            found[number] = {"content": text, **FLAGS, "special": True}
        where = folder / "tokenizer_config.json"
        settings = checkpoint.read_json(where) if where.is_file() else {}
        for number, token in settings.get("added_tokens_decoder", {}).items():
            flags = {name: bool(token.get(name, False)) for name in (*FLAGS, "special")}
            found[int(number)] = {"content": str(token["content"]), **flags}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ExportError(f"{where}: no added tokens: {error}") from error
    return [{"id": number, **found[number]} for number in sorted(found)]
