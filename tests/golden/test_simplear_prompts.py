"""SimpleAR's prompts and its tokenizer, from tokenizer.json and from the files of the slow one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
from golden_cases import Case

from models.bundle import Bundle
from models.export.settings import Settings
from models.export.simplear.bundle import (
    NEGATIVE_PROMPT,
    NEGATIVE_TEXT,
    TEXT,
    image_ids,
    target_entries,
)
from models.export.simplear.tokenizer import read_tokenizer
from models.simplear.config import SimpleARConfig

KINDS = ("families/simplear_prompts",)
SIDE = 64  # of an image, in pixels
TEXT_LENGTH = 4096


def recorded(case: Case, name: str) -> list[dict[str, Any]]:
    return list(json.loads((case.folder / name).read_text(encoding="utf-8")))


@pytest.fixture(scope="module", params=["tokenizer.json", "slow files"])
def tokenizer(
    request: pytest.FixtureRequest, case: Case, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    if request.param == "tokenizer.json":
        return case.folder / "tokenizer.json"
    if not (case.folder / "vocab.json").is_file():
        pytest.skip("no vocab.json")
    folder = tmp_path_factory.mktemp("slow")
    for name in ("vocab.json", "merges.txt", "added_tokens.json", "tokenizer_config.json"):
        if (case.folder / name).is_file():
            shutil.copyfile(case.folder / name, folder / name)
    scratch = folder / "scratch"
    scratch.mkdir()
    return read_tokenizer(folder, scratch)


@pytest.fixture(scope="module")
def bundle(case: Case, tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exporter's entries without a model: prompts need none."""
    facts = case.info["token_ids"]
    vocabulary = facts["first_image_id"] + facts["codes"]
    ids = image_ids(tokenizer, vocabulary, 64000)
    assert (ids.first, ids.count) == (facts["first_image_id"], facts["codes"])
    config = SimpleARConfig(vocab_size=vocabulary, dim=16, n_head=2, n_kv_head=2)
    bundle = Bundle("prompts", "simplear", "none", "made by a test")
    settings = Settings([(SIDE, SIDE)], TEXT_LENGTH)
    bundle.entries.update(target_entries(config, ids, settings))
    bundle.files["tokenizer.json"] = tokenizer
    bundle.entries["tokenizer"] = {
        "kind": "bpe", "file": "tokenizer.json", "max_length": TEXT_LENGTH,
    }  # fmt: skip
    out = tmp_path_factory.mktemp("simplear") / "bundle"
    bundle.write(out)
    return out


def test_texts(case: Case) -> None:
    assert case.info["template"] == TEXT
    assert case.info["negative_prompt"] == NEGATIVE_TEXT.replace("{prompt}", NEGATIVE_PROMPT)


def test_ids(case: Case, bundle: Path) -> None:
    prompts = recorded(case, "prompts.json")
    captions = [p["prompt"] for p in prompts if p["kind"] == "positive"]
    requests = [{"prompt": text, "width": SIDE, "height": SIDE} for text in captions]
    found = iter(engine.encode(bundle, *requests))
    negatives = [p["ids"] for p in prompts if p["kind"] != "positive"]
    got = []
    for prompt in prompts:
        answer = {"ids": prompt["ids"], "unconditional": prompt["ids"]}
        if prompt["kind"] == "positive":
            answer = next(found)
            assert answer["ids"] == prompt["ids"], prompt["prompt"]
            assert all(answer["unconditional"] == ids for ids in negatives)
        got.append(answer["ids"])
    assert got == case.lists("ids")


def test_negative_prompts(case: Case, bundle: Path, tokenizer: Path) -> None:
    """One of the request stands in the place of the bundle's."""
    texts = ["", "fog", "{prompt} <|soi|> na\u00efve", "a" * 300]
    requests = [
        {"prompt": "a", "negative_prompt": text, "width": SIDE, "height": SIDE} for text in texts
    ]
    whole = [NEGATIVE_TEXT.replace("{prompt}", text) for text in texts]
    expected = engine.tokenize(tokenizer, [{"bytes": text.encode().hex()} for text in whole])
    for answer, wanted in zip(engine.encode(bundle, *requests), expected, strict=True):
        assert answer["unconditional"] == wanted["ids"]


def test_strings(case: Case, tokenizer: Path) -> None:
    strings = recorded(case, "strings.json")
    requests: list[dict[str, object]] = [{"bytes": s["text"].encode().hex()} for s in strings]
    for string, answer in zip(strings, engine.tokenize(tokenizer, requests), strict=True):
        assert answer["ids"] == string["ids"], string["text"]
        assert answer["kept"] == string["decoded"], string["text"]
