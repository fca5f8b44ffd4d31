"""The compiled byte-level BPE tokenizer against the `tokenizers` package."""

from __future__ import annotations

import copy
import json
import random
import subprocess
import unicodedata
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)"
MARKS = r"[\p{P}!-/:-@\[-`{-~]"
PLANES = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0xE000, 0x10000), (0x10000, 0x110000)]
SPACES = " \t\n\r\v\f\x1c\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u200b"
NUMBERS = "0123456789\u00b2\u00bd\u0663\u2167\u2460\u3007\uff11\U0001d7d9"
MARK_TEXTS = (
    ".,!?;:'\"()[]{}<>-_/\\|@#$%^&*+=~`\u2018\u2019\u201c\u2014\u2026\u00bf\u3002\u00a7\u20ac"
)
WORDS = (
    "a photo of the cat sitting on an old wooden table man's don't we'll they've I'm he'd it's "
    "768x768 Generate an image caf\u00e9 na\u00efve \u732b \u0434\u043e\u043c e\u0301 \U0001f600"
).split()
TOKENS = [
    "<s>", "</s>", "<pad>", "<unk>", "<eoss>", "<racm3:break>", "<reserved08706>",
    "<reserved08707>", "<reserved08799>", "<sentinel:0>", "<sentinel:123>", "<sentinel:>",
    "IMGIMGAZ", "IMGIMGABCDZ", "IMGIMGBACZ", "IMGIMGJZ", "IMGIMGABCDEZ", "IMGIMGZ",
]  # fmt: skip
JANUS = Path(__file__).parents[1] / "golden/cases/janus/janus_prompts/model/tokenizer.json"
SIMPLEAR = Path(__file__).parents[1] / "golden/cases/simplear/simplear_prompts/tokenizer.json"
SIMPLEAR_WORDS = (
    "'S 'T 'RE 'Ve 'M 'lL 'D '\u017f '\u017ft DON'T i\u0307 \u0130 \r\n \r \n\n \t\n -\n .\r\n\n (a 1a a1 1,2 \u00bd2 "
    "e\u0301 A\u030a \u212b \u2126 \u1100\u1161\u11a8 \uac00\u11a8 q\u0323\u0307 q\u0307\u0323 \u0344 \u0958 \u0915\u093c "
    "\u2adc \U0001d15e \u1e9b\u0323 \U00011935\U00011930 \U00011938 a\u0301\U00010f46 a\u0345\u0301\u0334 \u0301 \ufb01"
).split(" ")
JANUS_WORDS = (
    "a \uff5e\uff21\uff01\uff11 \u3000\u3001\u3002 \u201cx\u201d \u4e2d\u6587 \u9fa6 \ud55c\uae00 "
    "\u0915\u093f \u05d0 \u01bb\u01c0 \u00aa\u00ba \U00010400\U00010428 \u13a0 \u1c90 \u0660 \u2460 "
    "caf\u00e9s \u00f8\u00f6\u00fa\u00ff\u00f5\u00f7\u00fb\u00fd\u00c0\u00f9\u00c1\u00fe\u00fc 3d\u00c0"
).split(" ")
NEVER_IN_UTF8 = [chr(byte) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))]


def split(pattern: dict[str, str]) -> dict[str, Any]:
    return {"type": "Split", "pattern": pattern, "behavior": "Isolated", "invert": False}


def byte_level(use_regex: bool) -> dict[str, Any]:
    return {
        "type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": use_regex,
    }  # fmt: skip


def spelled_out(file: dict[str, Any]) -> dict[str, Any]:
    """The same file with stages written as regular expressions and added tokens of both kinds."""
    file = copy.deepcopy(file)
    stages = file["pre_tokenizer"]["pretokenizers"]
    stages[2:] = [
        split({"Regex": r"([\t\n]|    |  )"}), split({"Regex": r"\p{N}"}), split({"Regex": MARKS}),
        split({"String": "an"}), split({"Regex": GPT2}), byte_level(False),
    ]  # fmt: skip
    for token in file["added_tokens"][::2]:
        token["normalized"] = True
    size = len(file["model"]["vocab"])
    for index, text in enumerate(("d\u00e9j\u00e0 vu", "</s><pad>", "\n ")):
        token = {**file["added_tokens"][0], "id": size + index, "content": text, "special": False}
        file["added_tokens"].append(token)
    return file


def one_stage(stage: dict[str, Any]) -> dict[str, Any]:
    """A tokenizer whose ids show where one stage splits: x and ! merge with any byte after them."""
    letters = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    characters = [chr(code) for code in letters] + [
        chr(0x100 + k) for k in range(256 - len(letters))
    ]
    merges = [(left, right) for left in "x!" for right in characters if right not in "x!"]
    texts = characters + [left + right for left, right in merges]
    return {
        "added_tokens": [], "normalizer": None, "post_processor": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [stage, byte_level(False)]},
        "decoder": byte_level(True),
        "model": {
            "type": "BPE", "vocab": {text: k for k, text in enumerate(texts)},
            "merges": [list(pair) for pair in merges],
        },
    }  # fmt: skip


def late_layout(file: dict[str, Any]) -> dict[str, Any]:
    """The same file with the bytes that no text has as plain added tokens after the first two, and merges as pairs."""
    file = copy.deepcopy(file)
    model, added = file["model"], file["added_tokens"]
    kept = sorted(set(model["vocab"]) - set(NEVER_IN_UTF8), key=model["vocab"].__getitem__)
    model["vocab"] = {text: k for k, text in enumerate(kept)}
    model["merges"] = [merge.split(" ") for merge in model["merges"]]
    plain = [{**added[0], "content": text, "special": False} for text in NEVER_IN_UTF8]
    tokens = [*added[:2], *plain, *added[2:]]
    file["added_tokens"] = [{**t, "id": len(kept) + k} for k, t in enumerate(tokens)]
    return file


def random_part(rng: random.Random) -> bytes:
    """A few characters of one sort, or bytes that are not UTF-8."""
    kind = rng.randrange(9)
    if kind == 0:
        first, end = rng.choice(PLANES)
        return "".join(chr(rng.randrange(first, end)) for _ in range(rng.randint(1, 4))).encode()
    if kind == 1:
        return rng.choice(SPACES).encode() * rng.choice((1, 1, 2, 3, 4, 5, 9))
    if kind == 2:
        return b" " * rng.choice((1, 1, 1, 2, 3, 4, 5, 6, 7, 13))
    if kind == 3:
        return "".join(rng.choices(NUMBERS, k=rng.randint(1, 5))).encode()
    if kind == 4:
        return "".join(rng.choices(MARK_TEXTS, k=rng.randint(1, 4))).encode()
    if kind == 5:
        token = rng.choice(TOKENS)
        return token[rng.choice((0, 0, 0, 1)) : len(token) - rng.choice((0, 0, 0, 1))].encode()
    if kind == 6 and rng.random() < 0.3:
        return rng.choice((rng.randbytes(rng.randint(1, 5)), b"\xed\xa0\x80", b"\xf0\x9f\x98"))
    return (rng.choice(("", " ", " ")) + rng.choice(WORDS)).encode()


def random_text(rng: random.Random, more: list[str] = []) -> bytes:  # noqa: B006
    """A random text. Every third part comes from `more` when given."""
    parts = []
    for _ in range(rng.randint(1, 12)):
        words = more and rng.randrange(3) == 0
        parts.append(rng.choice(more).encode() if words else random_part(rng))
    return b"".join(parts)


def characters() -> list[str]:
    """Characters at changes of the category, the first ones, and some of the others."""
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    kinds = [unicodedata.category(c) for c in every]
    edges = {0, len(every) - 1}
    for index in range(1, len(every)):
        if kinds[index] != kinds[index - 1]:
            edges |= {index - 1, index}
    edges |= set(range(0x600)) | set(random.Random(6).sample(range(len(every)), 10_000))
    return [every[index] for index in sorted(edges)]


def compare(program: Path, path: Path, texts: list[bytes]) -> None:
    """Ids of every text and both texts of the ids."""
    reference = Tokenizer.from_file(str(path))
    lines = "".join('{"bytes":"' + text.hex() + '"}\n' for text in texts)
    done = subprocess.run(
        [program, path], input=lines, capture_output=True, text=True, timeout=600, check=True
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    decoded = [text.decode("utf-8", "replace") for text in texts]
    expected = [e.ids for e in reference.encode_batch(decoded, add_special_tokens=False)]
    kept = reference.decode_batch(expected, skip_special_tokens=False)
    skipped = reference.decode_batch(expected, skip_special_tokens=True)
    for text, answer, *wanted in zip(texts, answers, expected, kept, skipped, strict=True):
        assert list(answer.values()) == wanted, text


@pytest.fixture
def program(build_dir: Path) -> Path:
    return build_dir / "tokenize"


@pytest.mark.parametrize("spelling", ["as published", "spelled out"])
@pytest.mark.parametrize("case", ["bpe_chameleon", "bpe_plain"])
def test_random_texts(root: Path, program: Path, tmp_path: Path, case: str, spelling: str) -> None:
    path = root / "tests/golden/cases/bpe" / case / "tokenizer.json"
    if spelling == "spelled out":
        file = spelled_out(json.loads(path.read_text(encoding="utf-8")))
        path = tmp_path / "tokenizer.json"
        path.write_text(json.dumps(file), encoding="utf-8")
    rng = random.Random(f"{case} {spelling}")
    compare(program, path, [random_text(rng) for _ in range(25_000)])


@pytest.mark.parametrize("layout", ["early", "late"])
def test_deepseek(program: Path, tmp_path: Path, layout: str) -> None:
    """Janus's tokenizer, on texts with the tags of prompts."""
    file = json.loads(JANUS.read_text(encoding="utf-8"))
    if layout == "late":
        file = late_layout(file)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    more = [token["content"] for token in file["added_tokens"]] + 2 * JANUS_WORDS
    rng = random.Random(f"deepseek {layout}")
    compare(program, path, [random_text(rng, more) for _ in range(100_000)])


def composed_added(file: dict[str, Any]) -> dict[str, Any]:
    """Half of the added tokens are searched in composed texts; composition creates or destroys some."""
    file = copy.deepcopy(file)
    for token in file["added_tokens"][::2]:
        token["normalized"] = True
    size = max(token["id"] for token in file["added_tokens"]) + 1
    for index, (text, normalized) in enumerate(
        (("e\u0301", True), ("\u212b", True), ("A\u030a", False), ("n't", True), ("\u0301", False))
    ):
        token = {**file["added_tokens"][0], "id": size + index, "content": text}
        file["added_tokens"].append({**token, "normalized": normalized, "special": False})
    return file


@pytest.mark.parametrize("layout", ["as published", "added tokens in composed texts"])
def test_qwen(program: Path, tmp_path: Path, layout: str) -> None:
    """SimpleAR's tokenizer, on texts with the tags of prompts and with marks that compose."""
    file = json.loads(SIMPLEAR.read_text(encoding="utf-8"))
    if layout != "as published":
        file = composed_added(file)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(file), encoding="utf-8")
    more = [token["content"] for token in file["added_tokens"]] + 3 * SIMPLEAR_WORDS
    rng = random.Random(f"qwen {layout}")
    compare(program, path, [random_text(rng, more) for _ in range(100_000)])


def test_composition(program: Path, tmp_path: Path) -> None:
    """Every character alone, after letters and among marks of other classes."""
    path = tmp_path / "tokenizer.json"
    file = one_stage(split({"Regex": r"\p{N}"}))
    path.write_text(json.dumps({**file, "normalizer": {"type": "NFC"}}), encoding="utf-8")
    every = characters() + [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
    texts = [f"{c}|e{c}\u0334|e\u0301{c}|\u1100{c}|{c}\u0327\u0301" for c in every]
    compare(program, path, [t.encode() for t in texts])


def test_random_ids(root: Path, program: Path) -> None:
    """Ids of incomplete characters, unknown ids, special tokens between the bytes of a character."""
    path = root / "tests/golden/cases/bpe/bpe_plain/tokenizer.json"
    reference = Tokenizer.from_file(str(path))
    rng = random.Random(5)
    lists = [[rng.randrange(700) for _ in range(rng.randint(0, 9))] for _ in range(5_000)]
    done = subprocess.run(
        [program, path], input="".join(json.dumps({"ids": ids}) + "\n" for ids in lists),
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    for ids, line in zip(lists, done.stdout.splitlines(), strict=True):
        answer = json.loads(line)
        assert answer["kept"] == reference.decode(ids, skip_special_tokens=False), ids
        assert answer["skipped"] == reference.decode(ids), ids


@pytest.mark.parametrize(
    "stage",
    [
        {"type": "Digits", "individual_digits": True},
        {"type": "Digits", "individual_digits": False},
        {"type": "Punctuation", "behavior": "Isolated"},
        *(split({"Regex": text}) for text in (r"\p{N}", r"\p{P}", MARKS, GPT2, GPT2 + r"|\s+")),
        *(split({"Regex": text}) for text in (r"\s?\p{L}+", r"\s?\p{P}+", r"[\p{N}_a-f\p{P}]+")),
        *json.loads(JANUS.read_text(encoding="utf-8"))["pre_tokenizer"]["pretokenizers"][:5],
        json.loads(SIMPLEAR.read_text(encoding="utf-8"))["pre_tokenizer"]["pretokenizers"][0],
    ],
    ids=lambda stage: json.dumps(stage.get("pattern", stage["type"]))[:60],
)
def test_characters(program: Path, tmp_path: Path, stage: dict[str, Any]) -> None:
    """Every character after a letter, a mark and an apostrophe, and between line breaks."""
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(one_stage(stage)), encoding="utf-8")
    pairs = [f"x{c}!{c} x'{c}x'{c}e!\n{c}\n" for c in characters()]
    compare(
        program, path, ["".join(pairs[k : k + 100]).encode() for k in range(0, len(pairs), 100)]
    )
