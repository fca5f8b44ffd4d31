"""Writes the SentencePiece model of a T5 tokenizer.json, for folders that have no spiece.model.

Both hold the same pieces, scores and normalisation; what a T5 tokenizer does not have is refused. The file's
format is protobuf: fields of a message as key, length and content.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..json_file import read_json
from ..messages import ExportError

NORMAL, UNKNOWN, CONTROL = 1, 2, 3  # kinds of pieces
UNIGRAM = 1  # kind of the model
SPACE = "\u2581"
SENTINEL = re.compile(r"<extra_id_(\d{1,4})>")
SPECIAL = ("<pad>", "</s>", "<unk>")  # by id
HINT = "give --spiece FILE, the spiece.model of the T5 that it belongs to"
# What may stand in a T5's normaliser beside the table: it takes away spaces at the ends and in a row, as
# SentencePiece does.
SPACES = ("Strip", "Replace")
REPLACED = ((" {2,}", " "), (" {2,}", SPACE), (r"\A +| +\z", ""), (" ", SPACE))


def spiece_of(path: Path) -> tuple[bytes, int]:
    """Content of spiece.model, and the number of sentinels (<extra_id_0>, ...) behind its pieces.

    ExportError: the tokenizer is none of a T5.
    """
    content = read_json(path)
    pieces, sentinels = pieces_of(content, path)
    table = character_table(content.get("normalizer"), path)
    check_spaces(content.get("pre_tokenizer"), path)
    return model_file(pieces, table), sentinels


def refused(path: Path, what: str) -> ExportError:
    return ExportError(f"{path}: {what}, expected the tokenizer of a T5; {HINT}")


def pieces_of(content: dict[str, Any], path: Path) -> tuple[list[tuple[str, float]], int]:
    """Pieces with scores, and how many sentinels follow them."""
    model = content.get("model")
    if not isinstance(model, dict) or model.get("type", "Unigram") != "Unigram":
        raise refused(path, "model is no Unigram")
    listed = model.get("vocab")
    if not isinstance(listed, list) or not all(is_piece(entry) for entry in listed):
        raise refused(path, "model.vocab is no list of pieces with scores")
    if model.get("byte_fallback") or model.get("unk_id") != SPECIAL.index("<unk>"):
        raise refused(path, f"unk_id is {model.get('unk_id')} or bytes are pieces")
    pieces = [(str(text), float(score)) for text, score in listed]
    names = [text for text, _ in pieces]
    if tuple(names[:3]) != SPECIAL or len(set(names)) != len(names):
        raise refused(path, f"pieces begin with {', '.join(names[:3])} or repeat")
    own = len(pieces)
    while SENTINEL.fullmatch(names[own - 1]):
        own -= 1
    if any(SENTINEL.fullmatch(name) for name in names[:own]):
        raise refused(path, "sentinels stand between pieces")
    count = check_added(content.get("added_tokens"), names, own, path)
    return pieces[:own], count


def is_piece(entry: Any) -> bool:
    return (
        isinstance(entry, list)
        and len(entry) == 2
        and isinstance(entry[0], str)
        and type(entry[1]) in (int, float)
    )


def check_added(tokens: Any, names: Sequence[str], own: int, path: Path) -> int:
    """Number of sentinels. ExportError: added tokens are others, or have other ids."""
    tokens = [] if tokens is None else tokens
    if not isinstance(tokens, list) or not all(isinstance(token, dict) for token in tokens):
        raise refused(path, "added_tokens is no list of objects")
    ids = {token.get("content"): token.get("id") for token in tokens}
    sentinels = {
        name for name in (*ids, *names) if isinstance(name, str) and SENTINEL.fullmatch(name)
    }
    for name, number in ids.items():
        known = name in sentinels or name in SPECIAL
        if not known or (name in names and names.index(name) != number):
            raise refused(path, f"added token {name} has id {number}")
    for name in sentinels:  # the last id is <extra_id_0>
        last = own + len(sentinels) - 1
        number = ids.get(name, names.index(name) if name in names else None)
        if number != last - int(name[len("<extra_id_") : -1]):
            raise refused(path, f"{name} has id {number}")
    return len(sentinels)


def character_table(normalizer: Any, path: Path) -> bytes:
    """The compiled table of characters, the same bytes as in spiece.model."""
    parts = normalizer if isinstance(normalizer, dict) else {}
    steps = parts.get("normalizers") if parts.get("type") == "Sequence" else [parts]
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise refused(path, "normalizer is none")
    kinds = [step.get("type") for step in steps]
    if kinds.count("Precompiled") != 1 or set(kinds) - {"Precompiled", *SPACES}:
        raise refused(path, f"normalizer has steps {', '.join(map(str, kinds))}")
    text = steps[kinds.index("Precompiled")].get("precompiled_charsmap")
    try:
        table = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise refused(path, "precompiled_charsmap is no base64") from error
    for step in steps:
        pattern = step.get("pattern")
        patterns = list(pattern.values()) if isinstance(pattern, dict) else []
        known = any(
            [replaced] == patterns and step.get("content") == by for replaced, by in REPLACED
        )
        if step.get("type") == "Replace" and not known:
            raise refused(path, "normalizer replaces other things than spaces in a row")
    return table


def check_spaces(pre_tokenizer: Any, path: Path) -> None:
    """Words are split at spaces, which SPACE in front of the word stands for."""
    parts = pre_tokenizer if isinstance(pre_tokenizer, dict) else {}
    steps = parts.get("pretokenizers") if parts.get("type") == "Sequence" else [parts]
    steps = steps if isinstance(steps, list) else []
    meta = [step for step in steps if isinstance(step, dict) and step.get("type") == "Metaspace"]
    others = {step.get("type") for step in steps if isinstance(step, dict)} - {"Metaspace"}
    fits = len(meta) == 1 and meta[0].get("replacement", SPACE) == SPACE
    fits = fits and meta[0].get("prepend_scheme", "always") == "always"
    fits = fits and meta[0].get("add_prefix_space", True) is not False
    if not fits or others - {"WhitespaceSplit"}:
        raise refused(path, "pre_tokenizer is not one of spaces")


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def field(number: int, content: int | bytes | float) -> bytes:
    """A field of a message: a whole number, a 32-bit float, or bytes."""
    if isinstance(content, float):
        return varint(number << 3 | 5) + struct.pack("<f", content)
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def model_file(pieces: Sequence[tuple[str, float]], table: bytes) -> bytes:
    """A ModelProto of sentencepiece_model.proto: pieces, what the trainer says, and the normaliser."""
    kinds = {"<pad>": CONTROL, "</s>": CONTROL, "<unk>": UNKNOWN}
    result = bytearray()
    for text, score in pieces:
        piece = field(1, text.encode()) + field(2, score) + field(3, kinds.get(text, NORMAL))
        result += field(1, piece)
    trainer = field(3, UNIGRAM) + field(4, len(pieces))
    pad, eos, unk = (SPECIAL.index(name) for name in SPECIAL)
    # Without a token for the beginning: -1, as 64 bits have it.
    trainer += field(40, unk) + field(41, (1 << 64) - 1) + field(42, eos) + field(43, pad)
    spaces = field(3, 1) + field(4, 1) + field(5, 1)  # one in front, none twice, shown as SPACE
    normalizer = field(1, b"nmt_nfkc") + field(2, table) + spaces
    return bytes(result + field(2, trainer) + field(3, normalizer))
