"""Byte-level BPE: ids of texts, also of invalid UTF-8, and texts of ids."""

from __future__ import annotations

import golden_engine as engine
from golden_cases import Case

KINDS = ("bpe_",)


def test_encoding(case: Case) -> None:
    texts = case.strings("enc_bytes")
    assert len(texts) == case.info["counts"]["encode_strings"]
    found = engine.tokenize(
        case.folder / "tokenizer.json", [{"bytes": text.hex()} for text in texts]
    )
    expected = zip(
        case.lists("enc_ids"),
        case.strings("enc_decoded_keep"),
        case.strings("enc_decoded_skip"),
        strict=True,
    )
    for text, answer, (tokens, kept, skipped) in zip(texts, found, expected, strict=True):
        assert answer == {"ids": tokens, "kept": kept.decode(), "skipped": skipped.decode()}, text


def test_decoding(case: Case) -> None:
    lists = case.lists("dec_ids")
    assert len(lists) == case.info["counts"]["decode_lists"]
    found = engine.tokenize(case.folder / "tokenizer.json", [{"ids": tokens} for tokens in lists])
    kept, skipped = case.strings("dec_keep"), case.strings("dec_skip")
    for tokens, answer, keep, skip in zip(lists, found, kept, skipped, strict=True):
        assert (answer["kept"], answer["skipped"]) == (keep.decode(), skip.decode()), tokens
