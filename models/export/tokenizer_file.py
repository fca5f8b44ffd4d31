"""Reads the pieces of a tokenizer.json and their ids."""

from __future__ import annotations

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
    tokens = content.get("added_tokens") or []
    if not isinstance(tokens, list) or not all(
        isinstance(t, dict) and isinstance(t.get("content"), str) for t in tokens
    ):
        raise ExportError(f"{path}: added_tokens: expected objects with content and id")
    pieces = {token["content"]: token.get("id") for token in tokens}
    check_ids(path, pieces)
    return pieces


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
