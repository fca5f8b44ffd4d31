"""Reads the pieces of a tokenizer.json and their ids."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .json_file import read_json
from .messages import ExportError


def bpe_pieces(path: Path, content: dict[str, Any] | None = None) -> dict[str, int]:
    """Ids by piece of a BPE model. ExportError: the file has another one, or ids that are no numbers."""
    content = read_json(path) if content is None else content
    model = content.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
        raise ExportError(f"{path}: expected a tokenizer.json with a BPE model")
    if not isinstance(vocabulary, dict):
        raise ExportError(f"{path}: model.vocab: expected ids by piece")
    check_ids(path, vocabulary)
    return dict(vocabulary)


def added_pieces(path: Path, content: dict[str, Any] | None = None) -> dict[str, int]:
    """Ids of the pieces that were added to the model's."""
    content = read_json(path) if content is None else content
    tokens = content.get("added_tokens")
    tokens = [] if tokens is None else tokens
    if not isinstance(tokens, list) or not all(
        isinstance(t, dict) and isinstance(t.get("content"), str) for t in tokens
    ):
        raise ExportError(f"{path}: added_tokens: expected objects with content and id")
    pieces = {token["content"]: token.get("id") for token in tokens}
    check_ids(path, pieces)
    return pieces


def read_tags(file: Path, usual: Mapping[str, str]) -> dict[str, str]:
    """Texts of tags by the names that a tokenizer_config.json has for them; usual: where it has none."""
    settings = read_json(file) if file.is_file() else {}
    more = settings.get("extra_special_tokens")
    settings = {**more, **settings} if isinstance(more, dict) else settings
    tags = {}
    for name, text in usual.items():
        tag = settings.get(name, text)
        tag = tag.get("content") if isinstance(tag, dict) else tag
        if not isinstance(tag, str):
            raise ExportError(f"{file}: {name}: got {tag!r}, expected a token's text")
        tags[name] = tag
    return tags


def check_ids(path: Path, pieces: dict[str, Any]) -> None:
    """ExportError: an id is no whole number, or two pieces have it."""
    owners: dict[int, str] = {}
    for piece, number in pieces.items():
        if type(number) is not int or number < 0:
            raise ExportError(f"{path}: {piece} has id {number!r}, expected a whole number")
        other = owners.setdefault(number, piece)
        if other != piece:
            raise ExportError(f"{path}: {other} and {piece} have id {number}, expected one id each")


def all_pieces(path: Path) -> dict[str, int]:
    """Ids by piece, added ones too."""
    content = read_json(path)
    return {**bpe_pieces(path, content), **added_pieces(path, content)}


def check_embedded(path: Path, pieces: Mapping[str, int], count: int) -> None:
    """ExportError: a piece has an id that the model, which has `count`, does not embed."""
    for piece, number in pieces.items():
        if number >= count:
            raise ExportError(f"{path}: {piece} has id {number}, the model embeds 0 to {count - 1}")


def image_codes(
    path: Path, pieces: Mapping[str, int], pattern: re.Pattern[str], first: str, family: str
) -> tuple[int, int]:
    """Id of code 0 and the number of codes, by names whose number the pattern's group is.

    first: the name of code 0. ExportError: there is none, or ids do not follow one another.
    """
    ids = {int(m[1]): number for piece, number in pieces.items() if (m := pattern.fullmatch(piece))}
    if 0 not in ids:
        raise ExportError(f"{path}: no token {first}, expected {family}'s tokenizer")
    for code in range(len(ids)):
        if ids.get(code) != ids[0] + code:
            raise ExportError(
                f"{path}: code {code} has id {ids.get(code)}, expected {ids[0] + code}"
            )
    return ids[0], len(ids)
