"""Emu3.5's tokenizer against the official one; skipped without it.

PYTHONPATH=EMU VENV/bin/python -m pytest tests/golden/test_emu35_tokenizer.py      # as in record_emu35.py
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import golden_engine as engine
import pytest

from models.export.emu3.tokenizer import find_tokenizer

pytest.importorskip("transformers")
record_emu35 = pytest.importorskip("record_emu35")

# First and last character of what odd texts are made of, and how many of them stand side by side at most.
RANGES = (
    ("a", "z", 9), ("A", "Z", 4), ("0", "9", 6), (" ", " ", 8), ("!", "/", 5), ("\u0001", "\u001f", 3),
    ("\u0300", "\u036f", 4), ("\u00c0", "\u024f", 6), ("\u0400", "\u04ff", 6), ("\u0600", "\u06ff", 6),
    ("\u0900", "\u097f", 6), ("\u1100", "\u11ff", 5), ("\u2000", "\u206f", 3), ("\u3040", "\u30ff", 6),
    ("\u4e00", "\u9fff", 6), ("\uac00", "\ud7a3", 6), ("\uf900", "\ufaff", 3), ("\ufe00", "\ufe0f", 2),
    ("\U0001d400", "\U0001d7ff", 4), ("\U0001f300", "\U0001faff", 4), ("\U000e0020", "\U000e007f", 2),
)  # fmt: skip
PIECES = ("'s", "'LL", "\r\n", "\n\n", "\t", "\u00a0", "<|extra_200|>", "<|image start|>", "<|visual token 000007|>",
          "<|im_", "|>", "e\u0301", "\u212b", "👩‍👩‍👧", "🇩🇪")  # fmt: skip
TEXTS = 2000
FIRST_SPECIAL = record_emu35.tokenization_emu3.SPECIAL_START_ID  # recording replaces it


def odd_text(source: random.Random) -> str:
    parts = []
    for _ in range(source.choice((1, 3, 10, 40))):
        first, last, most = source.choice(RANGES)
        count = source.randint(1, most)
        parts.append("".join(chr(source.randint(ord(first), ord(last))) for _ in range(count)))
        if source.random() < 0.3:
            parts.append(source.choice(PIECES))
    return "".join(parts) * source.choice((1, 1, 1, 1, 30))


def test_the_published_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of odd texts by the program that reads a bundle's file, made of the official two."""
    published = record_emu35.tokenization_emu3
    monkeypatch.setattr(published, "SPECIAL_START_ID", FIRST_SPECIAL)
    folder = Path(published.__file__).parent
    special = folder / "emu3_vision_tokens.txt"
    reader = published.Emu3Tokenizer(
        str(folder / "emu3.tiktoken"), special_tokens_file=str(special)
    )
    source = random.Random(0)
    texts = [odd_text(source) for _ in range(TEXTS)]
    lines = "".join(json.dumps({"bytes": text.encode().hex()}) + "\n" for text in texts)
    made = find_tokenizer(folder, tmp_path)
    found = engine.run(engine.BUILD / "tokenize", made, stdin=lines).splitlines()
    allowed = {
        piece for piece in PIECES if piece in reader.special_tokens
    }  # with all of them it takes minutes
    for text, line in zip(texts, found, strict=True):
        tokens = reader.tokenize(text, allowed_special=allowed)
        is_equal = json.loads(line)["ids"] == reader.convert_tokens_to_ids(tokens)
        assert is_equal, ascii(text)
