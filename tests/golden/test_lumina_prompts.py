"""Prompt ids of Lumina-mGPT and Anole: recipes of the exporters, run by the compiled encoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_cases
import golden_engine as engine
import pytest
from golden_cases import Case

KINDS = ("lumina_prompts", "anole_logits")
FAMILIES = {"lumina_prompts": "lumina-mgpt", "anole_logits": "anole"}
SIZE = (512, 512)  # of an image whose size is not in its prompt


def recorded(case: Case) -> list[dict[str, Any]]:
    prompts = json.loads((case.folder / "prompts.json").read_text(encoding="utf-8"))
    assert isinstance(prompts, list)
    return prompts


def size(prompt: dict[str, Any]) -> tuple[int, int]:
    return prompt.get("width", SIZE[0]), prompt.get("height", SIZE[1])


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded tokenizer, and some model with the ids it needs."""
    tokenizer = next(c for c in golden_cases.all_cases() if c.folder.name == "bpe_chameleon")
    models = golden_cases.cases_of("lumina_mgpt")
    model = max(models, key=lambda found: int(found.info["dims"]["vocab_size"]))
    sizes = sorted({"{}x{}".format(*size(prompt)) for prompt in recorded(case)})
    config = {"sizes": sizes, "max_positions": 10240}
    words = ("--tokenizer", tokenizer.folder / "tokenizer.json")
    out = tmp_path_factory.mktemp("prompts") / "bundle"
    return engine.export(out, FAMILIES[case.kind or ""], config, *words, model=model.folder)


def test_ids(case: Case, bundle: Path) -> None:
    prompts = recorded(case)
    requests = [
        {"prompt": prompt["prompt"], "width": size(prompt)[0], "height": size(prompt)[1]}
        for prompt in prompts
    ]
    for prompt, got in zip(prompts, engine.encode(bundle, *requests), strict=True):
        what = f"{size(prompt)} {prompt['prompt']!r}"
        if case.kind == "anole_logits":
            assert got["ids"] == prompt["cond_ids"], what
            assert got["unconditional"] == prompt["uncond_ids_unpadded"], what
            continue
        # The model itself must go on with the image's begin and size, which the engine feeds.
        width, height = size(prompt)
        header = [8197, 8804 + height // 32, 8804 + width // 32]
        assert got["ids"] == prompt["ids"] + header, what
        assert got["unconditional"] == header, what
