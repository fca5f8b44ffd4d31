"""The tokenizer.json of tokenizers that split texts as Qwen's do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
FLAGS = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def qwen_tokenizer(
    vocabulary: Mapping[str, int], merges: Sequence[str], added: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Content of the file; bytes of vocabulary and merges are spelled as byte-level BPE does."""
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    split = {
        "type": "Split",
        "pattern": {"Regex": PATTERN},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "added_tokens": list(added),
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "vocab": dict(vocabulary),
            "merges": list(merges),
        },
    }
