"""SimpleAR's network, plain and as the engine runs it: both prompts, cached steps, guidance, ids sampled greedily."""

from __future__ import annotations

from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

from models.export.simplear.weights import Weights, read_folder
from models.simplear.network import SimpleAR

KINDS = ("families/simplear_target",)
HALVES = (("prompt", ""), ("negative", "negative_"))


@pytest.fixture(scope="module")
def weights(case: Case) -> Weights:
    return read_folder(case.folder)


@pytest.fixture(scope="module")
def plain(weights: Weights) -> SimpleAR:
    return SimpleAR(weights.config, weights.read)


def export(case: Case, folder: Path, *words: object) -> Path:
    longest = max(len(case.tensors[f"{half}_ids"]) for half, _ in HALVES)
    images, words = engine.images_of([(64, 64)], longest), ("--dtype", "fp32", *words)
    return engine.export(folder / "bundle", "simplear", images, *words, model=case.folder)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(case, tmp_path_factory.mktemp("simplear"))


@pytest.fixture(scope="module")
def full(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(case, tmp_path_factory.mktemp("simplear"), "--full-head")


def prompts(case: Case) -> list[Tensor]:
    return [case.long(f"{half}_ids") for half, _ in HALVES]


def test_sizes(case: Case, weights: Weights) -> None:
    """Also those that config.json leaves out."""
    names = {"vocab_size": "vocab_size", "max_positions": "max_positions"}
    chameleon.assert_sizes(weights.config, case.info["dims"], **names)


def test_prompts(case: Case, bundle: Path) -> None:
    request = {"prompt": case.info["run"]["prompt"], "width": 64, "height": 64}
    (found,) = engine.encode(bundle, request)
    assert found["ids"] == case.tensors["prompt_ids"].tolist()
    assert found["unconditional"] == case.tensors["negative_ids"].tolist()


@torch.inference_mode()
def test_plain_network(case: Case, plain: SimpleAR) -> None:
    """Whole sequences without a cache."""
    fed = case.long("generated_ids")[:-1]
    logits = []
    for prompt, (_, prefix) in zip(prompts(case), HALVES, strict=True):
        *layers, hidden = (rows[0] for rows in plain.trunk(torch.cat([prompt, fed])[None]))
        engine.assert_recorded(case, f"{prefix}prefill_hidden", hidden[: len(prompt)], "hidden")
        steps = hidden[len(prompt) - 1 :]
        engine.assert_recorded(case, f"{prefix}step_hidden", steps, "hidden")
        logits.append(plain.logits(steps))
        if not prefix:
            # The last of them is the norm's output.
            got = torch.stack([*layers[:-1], hidden])[:, : len(prompt)]
            engine.assert_recorded(case, "layer_hidden", got, "hidden")
    for name, got in zip(("cond_logits", "uncond_logits"), logits, strict=True):
        engine.assert_recorded(case, name, got, "logits")


@torch.inference_mode()
def test_target(case: Case, bundle: Path, full: Path) -> None:
    """Prompts of unequal length side by side, then id by id with the cache."""
    fed = case.long("generated_ids")
    pair = prompts(case)
    target = Target(full, 2, max(map(len, pair)) + len(fed))
    prefilled = target.prefill(pair)
    for rows, (_, prefix) in zip(prefilled, HALVES, strict=True):
        engine.assert_recorded(case, f"{prefix}prefill_hidden", rows, "hidden")
    cache = target.cache[:, :, 0, :, : len(pair[0])]
    chameleon.assert_cache(case, "prefill_k", "prefill_v", cache, "hidden")
    steps = [torch.stack([rows[-1] for rows in prefilled]), *(target.step(i) for i in fed[:-1])]
    hidden = torch.stack(steps, 1)
    for rows, (_, prefix) in zip(hidden, HALVES, strict=True):
        engine.assert_recorded(case, f"{prefix}step_hidden", rows, "hidden")
    conditional, unconditional = target.logits(hidden)
    engine.assert_recorded(case, "cond_logits", conditional, "logits")
    engine.assert_recorded(case, "uncond_logits", unconditional, "logits")
    codes = Target(bundle, 1, 1)
    got = codes.logits(hidden)
    engine.assert_close("codes", got[0], conditional[:, codes.image_ids], 1e-6)
    assert got.shape[-1] == case.info["token_ids"]["codes"]


@torch.inference_mode()
def test_guidance(case: Case) -> None:
    """Scores of log-softmaxes have the distribution of guided logits, and the same best id."""
    scale = case.info["run"]["cfg"]
    pairs = torch.stack([case.tensors["cond_logits"], case.tensors["uncond_logits"]], 1)
    expected = case.tensors["guided_scores"].double().softmax(-1)
    for pair, distribution, best, margin in zip(
        pairs, expected, case.long("generated_ids"), case.tensors["margin"], strict=True
    ):
        got = engine.probabilities(pair, 1.0, 0, 1.0, guidance=scale)[0]
        engine.assert_close("distribution", got, distribution, 1e-4)
        assert margin <= 1e-3 or got.argmax() == best
