"""Byte-level BPE: ids of texts, also of invalid UTF-8, and texts of ids."""

from __future__ import annotations

import json

import golden_engine as engine
from golden_cases import Case

KINDS = ("bpe_",)


def strings(case: Case, name: str) -> list[bytes]:
    """The byte strings that are stored as one array and its offsets."""
    data = case.tensors[name].numpy().tobytes()
    offsets = case.tensors[f"{name}_offsets"].tolist()
    return [data[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]


def ids(case: Case, name: str) -> list[list[int]]:
    values = case.tensors[name].tolist()
    offsets = case.tensors[f"{name}_offsets"].tolist()
    return [values[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]


def answers(case: Case, requests: list[dict[str, object]]) -> list[dict[str, object]]:
    """What the compiled tokenizer says."""
    output = engine.run(
        engine.BUILD / "tokenize",
        case.folder / "tokenizer.json",
        stdin="".join(json.dumps(request) + "\n" for request in requests),
    )
    result = [json.loads(line) for line in output.splitlines()]
    assert len(result) == len(requests)
    return result


def test_encoding(case: Case) -> None:
    texts = strings(case, "enc_bytes")
    assert len(texts) == case.info["counts"]["encode_strings"]
    found = answers(case, [{"bytes": text.hex()} for text in texts])
    expected = zip(
        ids(case, "enc_ids"),
        strings(case, "enc_decoded_keep"),
        strings(case, "enc_decoded_skip"),
        strict=True,
    )
    for text, answer, (tokens, kept, skipped) in zip(texts, found, expected, strict=True):
        assert answer == {"ids": tokens, "kept": kept.decode(), "skipped": skipped.decode()}, text


def test_decoding(case: Case) -> None:
    lists = ids(case, "dec_ids")
    assert len(lists) == case.info["counts"]["decode_lists"]
    found = answers(case, [{"ids": tokens} for tokens in lists])
    kept, skipped = strings(case, "dec_keep"), strings(case, "dec_skip")
    for tokens, answer, keep, skip in zip(lists, found, kept, skipped, strict=True):
        assert (answer["kept"], answer["skipped"]) == (keep.decode(), skip.decode()), tokens
