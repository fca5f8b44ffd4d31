"""Lumina-mGPT 2.0's prompts: template, tokenizer, ids of sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import golden_lumina2 as lumina2
import pytest
from golden_cases import Case

from models.bundle import Bundle
from models.chameleon.config import ChameleonConfig
from models.export.lumina2.bundle import SCHEDULE, Names, read_names, target_entries

KINDS = ("families/lumina2_prompts",)
TASK = "t2i"  # the task that is sampled; the others' sentences are not asked for
VOCABULARY = 1 << 20
TEXT_LENGTH = 1024


def recorded(case: Case) -> list[dict[str, Any]]:
    prompts = json.loads((case.folder / "prompts.json").read_text(encoding="utf-8"))
    return prompts if isinstance(prompts, list) else prompts["prompts"]


def tokenizer(case: Case) -> Path:
    return case.folder / "tokenizer.json"


@pytest.fixture(scope="module")
def names(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Names:
    """Of a folder whose config.json names nothing."""
    model = tmp_path_factory.mktemp("lumina2")
    (model / "config.json").write_text("{}", encoding="utf-8")
    return read_names(model, tokenizer(case), VOCABULARY)


@pytest.fixture(scope="module")
def bundle(case: Case, names: Names, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The exporter's entries without a model: prompts need none."""
    sizes = dict.fromkeys((p["width"], p["height"]) for p in recorded(case))
    config = ChameleonConfig(vocab_size=VOCABULARY, max_positions=1 << 16)
    bundle = Bundle("prompts", "lumina-mgpt-2", "none", "made by a test")
    entries = target_entries(config, names, list(sizes), 8, TEXT_LENGTH, SCHEDULE)
    bundle.entries.update(entries)
    bundle.files["tokenizer.json"] = tokenizer(case)
    out = tmp_path_factory.mktemp("lumina2") / "bundle"
    bundle.write(out)
    return out


def test_ids_by_name(case: Case, names: Names) -> None:
    facts = case.info["token_ids"]
    assert (names.bos, names.first_image_id, names.codes) == (
        facts["bos"], facts["image_first"], facts["image_count"],
    )  # fmt: skip


def test_headers(case: Case, bundle: Path) -> None:
    for prompt in recorded(case):
        grid = lumina2.grid_of(bundle, prompt["width"], prompt["height"])
        assert grid["before"] == prompt["header_ids"]


def test_ids(case: Case, bundle: Path) -> None:
    """Sentences of other tasks are ids of their text: what stands between bos and the header."""
    prompts = recorded(case)
    mine = [prompt for prompt in prompts if prompt["task"] == TASK]
    requests = [{"prompt": p["prompt"], "width": p["width"], "height": p["height"]} for p in mine]
    found = engine.encode(bundle, *requests)
    for prompt, got in zip(mine, found, strict=True):
        what = f"{prompt['width']}x{prompt['height']} {prompt['prompt']!r}"
        assert got["ids"] == prompt["ids"] + prompt["header_ids"], what
        assert got["unconditional"] == prompt["header_ids"], what
    assert [p["ids"] for p in prompts] == case.lists("ids")
    assert found
