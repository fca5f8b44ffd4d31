"""LlamaGen's text side: caption cleaning, T5 tokenizer, exported encoder, left padding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from torch import Tensor

from models.export.config_file import Section
from models.export.llamagen.networks import load_t5
from models.llamagen.gpt import pad_left

KINDS = ("llamagen_t5",)
CLEANING = {"clean": "llamagen", "raw": "lower"}


@pytest.fixture(scope="module")
def tokenizer_folder(case: Case) -> Path:
    """The folder of the case that holds the tokenizer."""
    return next(case.folder.rglob("spiece.model")).parent


@pytest.fixture(scope="module")
def bundles(case: Case, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One for every folder of weights; not each of them has a tokenizer."""
    out = tmp_path_factory.mktemp("t5")
    config = {"t5": case.info["model"]}
    return [
        engine.export(out / f.parent.name, "llamagen", config, t5=f.parent) for f in case.weights()
    ]


@pytest.fixture(scope="module")
def prompts(case: Case) -> list[dict[str, Any]]:
    return json.loads((case.folder / case.info["text_file"]["file"]).read_text(encoding="utf-8"))


def test_tokens(case: Case, tokenizer_folder: Path, prompts: list[dict[str, Any]]) -> None:
    """Cleaned texts and ids of every prompt, by the compiled tokenizer."""
    model = case.info["model"]
    requests = [{"text": p["prompt"], "cleaning": CLEANING[p["option"]]} for p in prompts]
    output = engine.run(
        engine.BUILD / "tokenize",
        tokenizer_folder / "spiece.model",
        model["max_length"],
        model["extra_ids"],
        stdin="".join(json.dumps(request) + "\n" for request in requests),
    )
    answers = [json.loads(line) for line in output.splitlines()]
    assert len(answers) == len(prompts)
    for prompt, answer in zip(prompts, answers, strict=True):
        where = f"{prompt['option']} {prompt['index']}: {prompt['prompt'][:60]!r}"
        assert answer["text"] == prompt["text"], where
        assert answer["ids"] == prompt["ids"], where


def test_recorded_ids(case: Case, prompts: list[dict[str, Any]]) -> None:
    """The padded tables agree with the list the other tests use."""
    for option in CLEANING:
        if not case.has(f"{option}.input_ids"):
            continue
        own = [p for p in prompts if p["option"] == option]
        ids, mask = case.tensors[f"{option}.input_ids"], case.tensors[f"{option}.attention_mask"]
        assert mask.sum(1).tolist() == [p["n"] for p in own]
        assert [row[: p["n"]].tolist() for row, p in zip(ids, own, strict=True)] == [
            p["ids"] for p in own
        ]


def test_features(case: Case, bundles: list[Path]) -> None:
    """The exported encoder on padded ids, and on the valid ids alone as the engine calls it."""
    ids, mask = case.long("enc.input_ids"), case.long("enc.attention_mask")
    expected = case.tensors["enc.last_hidden_state"]
    tolerance = case.tolerance("features")
    valid = mask.bool()
    for bundle in bundles:
        encoder = engine.load_module(bundle, "text_encoder")
        with torch.inference_mode():
            padded = encoder.encode(ids, mask)
            engine.assert_close(f"{bundle}", padded[valid], expected[valid], tolerance)
            for row, n in enumerate(mask.sum(1).tolist()):
                alone = encoder.encode(ids[row : row + 1, :n], mask[row : row + 1, :n])
                engine.assert_close(f"prompt {row}", alone[0], expected[row, :n], tolerance)


def test_layers(case: Case) -> None:
    """Embedding, the output of every block but the last, the normalised output."""
    model = load_t5(case.weights()[0].parent, Section(case.info["model"], "case.json"))
    ids, mask = case.long("enc.input_ids")[:1], case.long("enc.attention_mask")[:1]
    with torch.inference_mode():
        x = model.shared(ids)
        bias = model.attention_bias(mask)
        states: list[Tensor] = [x]
        for block in model.encoder.block:
            x = block(x, bias, model.dropout)
            states.append(x)
        states[-1] = model.encoder.final_layer_norm(x)
    valid = mask[0].bool()
    expected = case.tensors["enc.hidden_states_prompt0"]
    got = torch.stack([state[0] for state in states])
    engine.assert_close("layers", got[:, valid], expected[:, valid], case.tolerance("features"))


def test_left_padding(case: Case) -> None:
    """Which of the encoded prompts were recorded follows from their lengths."""
    mask = case.long("enc.attention_mask")
    features, left = pad_left(case.tensors["enc.last_hidden_state"], mask)
    for expected, expected_mask in zip(
        case.tensors["enc.left_padded_features"], case.long("enc.left_padded_mask"), strict=True
    ):
        same = [
            row
            for row in range(len(left))
            if torch.equal(left[row], expected_mask)
            and engine.largest_difference(features[row], expected) <= case.tolerance("features")
        ]
        assert same, "no encoded prompt has these left-padded features"
