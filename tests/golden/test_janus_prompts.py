"""Janus-Pro's prompts: template, padded unconditional rows, and the tokenizer alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
from golden_cases import Case

from models.bundle import Bundle
from models.export.janus.bundle import prompt_entry, read_tags, target_entries
from models.export.settings import Settings
from models.janus.config import JanusConfig

KINDS = ("families/janus_prompts",)
TEXT_LENGTH = 2048
SIDE = 64  # of an image, in pixels


def tokenizer(case: Case) -> Path:
    return case.folder / "model" / "tokenizer.json"


def recorded(case: Case) -> dict[str, list[dict[str, Any]]]:
    return json.loads((case.folder / "prompts.json").read_text(encoding="utf-8"))


def write_bundle(case: Case, out: Path, roles: tuple[str, str]) -> Path:
    """The exporter's entries without a model: prompts need none."""
    file = json.loads(tokenizer(case).read_text(encoding="utf-8"))
    ids = [*file["model"]["vocab"].values(), *(token["id"] for token in file["added_tokens"])]
    config = JanusConfig(
        text_ids=max(ids) + 1, codes=16, code_dim=8, head_width=8, max_positions=4096
    )
    prompt = prompt_entry(read_tags(tokenizer(case), config.text_ids), roles, TEXT_LENGTH)
    settings = Settings(sizes=[(SIDE, SIDE)], text_length=TEXT_LENGTH)
    bundle = Bundle("prompts", "janus", "none", "made by a test")
    bundle.entries.update(target_entries(config, settings, prompt, 16))
    bundle.files["tokenizer.json"] = tokenizer(case)
    bundle.entries["tokenizer"] = {
        "kind": "bpe", "file": "tokenizer.json", "max_length": TEXT_LENGTH,
    }  # fmt: skip
    bundle.write(out)
    return out


@pytest.fixture(scope="module")
def prompts(case: Case, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Recorded prompts with what the engine says of them, for every pair of roles."""
    prompts = recorded(case)["prompts"]
    for roles in {tuple(prompt["roles"]) for prompt in prompts}:
        bundle = write_bundle(case, tmp_path_factory.mktemp("janus") / "bundle", roles)
        mine = [prompt for prompt in prompts if tuple(prompt["roles"]) == roles]
        requests = [{"prompt": p["caption"], "width": SIDE, "height": SIDE} for p in mine]
        for prompt, found in zip(mine, engine.encode(bundle, *requests), strict=True):
            prompt["found"] = found
    return prompts


def test_ids(prompts: list[dict[str, Any]]) -> None:
    for prompt in prompts:
        what = f"{prompt['style']} {prompt['caption']!r}"
        assert prompt["found"]["ids"] == prompt["ids"], what
        assert prompt["found"]["unconditional"] == prompt["uncond_ids"], what


def test_tensors_say_the_same(case: Case, prompts: list[dict[str, Any]]) -> None:
    assert [p["found"]["ids"] for p in prompts] == case.lists("cond_ids")
    assert [p["found"]["unconditional"] for p in prompts] == case.lists("uncond_ids")


def test_decoding(case: Case, prompts: list[dict[str, Any]]) -> None:
    answers = engine.tokenize(tokenizer(case), [{"ids": prompt["ids"]} for prompt in prompts])
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer["kept"] == prompt["decoded"], prompt["caption"]
        assert answer["skipped"] == prompt["decoded_skip_special"], prompt["caption"]


def test_strings(case: Case) -> None:
    texts = case.strings("string")
    answers = engine.tokenize(tokenizer(case), [{"bytes": text.hex()} for text in texts])
    expected = zip(case.lists("string_ids"), case.strings("string_decoded"), strict=True)
    for text, answer, (ids, decoded) in zip(texts, answers, expected, strict=True):
        assert answer["ids"] == ids, text
        assert answer["kept"].encode() == decoded, text
