"""LlamaGen GPT: exporter, modules, compiled decode loop and sampler against recorded runs.

Conditional rows come first, then unconditional ones. Rows of padding are computed by the plain
PyTorch definition alone: the engine never runs them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from torch import Tensor

from models.export.config_file import Section
from models.export.llamagen.config import Hints
from models.export.llamagen.networks import load_gpt
from models.llamagen.gpt import GPT

KINDS = ("llamagen_t2i", "llamagen_c2i")


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (checkpoint,) = case.weights()
    out = tmp_path_factory.mktemp("gpt") / "bundle"
    return engine.export(out, "llamagen", {"gpt": case.info["model"]}, gpt=checkpoint)


@pytest.fixture(scope="module")
def plain(case: Case) -> GPT:
    (checkpoint,) = case.weights()
    return load_gpt(checkpoint, Section(case.info["model"], "case.json"), Hints())


@pytest.fixture(scope="module")
def forced(case: Case, bundle: Path) -> dict[str, Tensor]:
    """The compiled loop with the recorded tokens put in place of its own."""
    scale = guidance(case)
    inputs = {**conditions(case), "forced_tokens": case.tensors["forced_tokens"]}
    return engine.decode(bundle, inputs, cfg_scale=scale if scale > 1 else 2.0)


def guidance(case: Case) -> float:
    """Scale of logits_cfg."""
    return float(case.info["runs"]["greedy"]["cfg_scale"])


def is_text(case: Case) -> bool:
    return case.has("t5_features")


def conditions(case: Case) -> dict[str, Tensor]:
    """Input of the compiled loop."""
    if is_text(case):
        return {"features": case.tensors["t5_features"], "mask": case.tensors["t5_mask"]}
    return {"class_ids": case.tensors["class_ids"]}


def valid_lengths(case: Case) -> list[int]:
    """Prompt rows of every image."""
    return [int(n) for n in case.long("t5_mask").sum(1)] if is_text(case) else [1] * images(case)


def images(case: Case) -> int:
    return case.tensors["forced_tokens"].shape[0]


def plain_prefix(case: Case, model: GPT) -> Tensor:
    """Final-norm features [2B, T, dim] of the prefix, padding included."""
    if is_text(case):
        condition, mask = case.tensors["cond"], case.long("emb_masks")
    else:
        condition, mask = case.long("class_ids"), None
    with torch.inference_mode():
        halves = [condition, model.unconditional(condition)]
        return torch.cat([model.trunk(model.embed_condition(h), mask)[0] for h in halves])


def test_rotary_table_and_mask(case: Case, plain: GPT) -> None:
    table = torch.view_as_real(plain.rotation).reshape(case.tensors["freqs_cis"].shape)
    engine.assert_recorded(case, "freqs_cis", table, 1e-6)
    if case.has("attention_mask_row0"):
        recorded = case.tensors["attention_mask_row0"].bool()
        mask = case.long("emb_masks")[:1] if is_text(case) else None
        seen = plain.attention_bias(mask, recorded.shape[0])[0, 0] == 0
        assert torch.equal(seen, recorded)


def test_condition(case: Case, bundle: Path) -> None:
    """Projected prompt rows, conditional and null."""
    if not is_text(case):
        pytest.skip("no recorded condition")
    target = engine.load_module(bundle, "target")
    mask = case.long("t5_mask")
    tolerance = case.tolerance("logits")
    got = (
        target.embed_condition(case.tensors["t5_features"], mask),
        target.embed_unconditional(mask),
    )
    expected = case.tensors["cond_embedding"].chunk(2)
    for half in range(2):
        for image, n in enumerate(valid_lengths(case)):
            rows = expected[half][image, -n:]
            engine.assert_close(f"half {half}", got[half][image, :n], rows, tolerance)


def test_logits(case: Case, forced: dict[str, Tensor]) -> None:
    steps = case.long("logits.step_index")
    logits = forced["logits"]
    tolerance = case.tolerance("logits")
    engine.assert_recorded(case, "logits", logits[steps], tolerance)
    conditional, unconditional = logits[case.long("logits_cfg.step_index")].chunk(2, 1)
    guided = unconditional + (conditional - unconditional) * guidance(case)
    tolerance = case.tolerance("logits", 1)
    engine.assert_recorded(case, "logits_cfg", guided, tolerance)


def test_hidden(case: Case, forced: dict[str, Tensor], plain: GPT) -> None:
    tolerance = case.tolerance("logits")
    steps = case.long("logits.step_index")[1:] - 1
    engine.assert_recorded(case, "hidden_steps", forced["hidden_steps"][steps], tolerance)
    expected = case.tensors["hidden_prefill"]
    for row, n in enumerate(valid_lengths(case) * 2):
        got = forced["hidden_prefill"][row, :n]
        engine.assert_close(f"prompt row {row}", got, expected[row, -n:], tolerance)
    engine.assert_close("padded prompts", plain_prefix(case, plain), expected, tolerance)


def test_prefill_logits(case: Case, bundle: Path, forced: dict[str, Tensor], plain: GPT) -> None:
    if not case.has("prefill.logits"):
        pytest.skip("no recorded prefill logits")
    tolerance = case.tolerance("logits")
    expected = case.tensors["prefill.logits"]
    positions = case.long("prefill.positions")
    with torch.inference_mode():
        padded = plain.output(plain_prefix(case, plain)[:: images(case), positions])
    engine.assert_close("padded prompt", padded, expected, tolerance)
    first = case.tensors["hidden_prefill"].shape[1] - valid_lengths(case)[0]
    valid = positions >= first
    rows = forced["hidden_prefill"][:: images(case), positions[valid] - first]
    got = engine.load_module(bundle, "target").logits(rows.contiguous())
    engine.assert_close("prompt", got, expected[:, valid], tolerance)


def test_sampler(case: Case) -> None:
    tolerance = case.tolerance("probabilities")
    steps = case.long("logits_cfg.step_index").tolist()
    rows = [steps.index(step) for step in case.long("sampler.step_index").tolist()]
    logits = case.tensors["logits_cfg"][rows]
    for number, settings in enumerate(case.info["sampler_settings"]):
        got = engine.probabilities(logits, **settings)
        expected = case.tensors[f"sampler.{number}.probs"]
        engine.assert_close(f"sampler {number}", got, expected, tolerance)
        engine.assert_same_support(f"sampler {number}", got, expected)


def test_ties(case: Case) -> None:
    tolerance = case.tolerance("probabilities")
    for number, settings in enumerate(case.info["tie_sampler_settings"]):
        got = engine.probabilities(case.tensors["sampler.tie_logits"], **settings)
        expected = case.tensors[f"sampler.tie.{number}.probs"]
        engine.assert_close(f"ties {number}", got, expected, tolerance)
        engine.assert_same_support(f"ties {number}", got, expected)


def runs(case: Case, seeded: bool) -> dict[str, dict[str, Any]]:
    """Recorded runs that sample with a seed, or those that always take the best token."""
    return {name: run for name, run in case.info["runs"].items() if ("seed" in run) == seeded}


def options(run: dict[str, Any]) -> dict[str, Any]:
    names = ("cfg_scale", "temperature", "top_k", "top_p", "cfg_interval")
    return {name: run[name] for name in names}


def test_greedy(case: Case, bundle: Path) -> None:
    found = runs(case, seeded=False)
    assert found
    for name, run in found.items():
        assert run["top_k"] == 1, f"{name}: neither greedy nor seeded"
        tokens = engine.decode(bundle, conditions(case), **options(run))["tokens"]
        expected = case.tensors[f"{name}.tokens"]
        assert torch.equal(tokens, expected), f"{name}: {first_difference(tokens, expected)}"


def test_sampled(case: Case, bundle: Path) -> None:
    """Replays samples from the distributions of the compiled loop: token = argmax(p / noise)."""
    found = runs(case, seeded=True)
    assert found
    for name, run in found.items():
        expected = case.tensors[f"{name}.tokens"]
        inputs = {**conditions(case), "forced_tokens": expected}
        rows = engine.decode(bundle, inputs, **options(run))["probabilities"]
        noise = case.tensors.get(f"{name}.noise")
        torch.manual_seed(run["seed"])
        tokens = [
            torch.multinomial(p, 1)[:, 0] if noise is None else (p / noise[step]).argmax(-1)
            for step, p in enumerate(rows)
        ]
        got = torch.stack(tokens, 1).int()
        assert torch.equal(got, expected), f"{name}: {first_difference(got, expected)}"


def first_difference(got: Tensor, expected: Tensor) -> str:
    assert got.shape == expected.shape, f"{list(got.shape)} tokens, {list(expected.shape)} recorded"
    image, step = (got != expected).nonzero()[0].tolist()
    return f"image {image}, token {step}: {got[image, step]} instead of {expected[image, step]}"
