"""Chameleon and Lumina-mGPT targets: all checkpoint layouts against recorded runs."""

from __future__ import annotations

import re
from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import pytest
import torch
from golden_cases import Case, sibling
from golden_chameleon import Target
from torch import Tensor

from models.chameleon.transformer import Chameleon, weight_shapes
from models.export.chameleon.weights import Weights, read_weights

KINDS = ("chameleon_hf", "chameleon_meta")


@pytest.fixture(scope="module")
def weights(case: Case) -> Weights:
    return read_weights(case.folder)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chameleon") / "bundle"
    return engine.export(out, "anole", chameleon.settings(case), model=case.folder)


def sequences(case: Case) -> dict[str, Tensor]:
    """Conditional and unconditional prompt."""
    return {name: case.long(f"{name}_prompt_ids") for name in ("cond", "uncond")}


@torch.inference_mode()
def test_plain_network(case: Case, weights: Weights) -> None:
    """All logits and, where there are any, the stream behind every layer."""
    model = Chameleon(weights.config)
    model.load_state_dict({name: weights.read(name) for name in weight_shapes(weights.config)})
    tolerance = case.info["tolerance"]["logits_abs"]
    for name, prompt in sequences(case).items():
        ids = torch.cat([prompt, case.long("forced_image_ids")])
        got = model(ids[None])[0]
        expected = [case.tensors[f"{name}_{part}_logits"] for part in ("prefill", "step")]
        engine.assert_close(f"{name} logits", got, torch.cat(expected), tolerance)
        if case.has(f"{name}_prefill_layers"):
            layers = torch.cat(model.trunk(prompt[None]))
            engine.assert_recorded(case, f"{name}_prefill_layers", layers, tolerance)


def test_layouts_hold_the_same_network(case: Case, weights: Weights) -> None:
    twin = case.info.get("same_function_as")
    if twin is None:
        pytest.skip("recorded in one layout")
    other = read_weights(sibling(case, twin).folder)
    assert other.adjacent != weights.adjacent
    for name, shape in weight_shapes(weights.config).items():
        tensor = weights.read(name)
        assert tensor.shape == shape
        assert torch.equal(tensor, other.read(name)), name


def test_target(case: Case, bundle: Path) -> None:
    """Hidden states, logits of the image ids and caches of both sequences in one batch."""
    prompts, forced = sequences(case), case.long("forced_image_ids")
    longest = max(len(prompt) for prompt in prompts.values())
    target = Target(bundle, 2, longest + len(forced))
    prefilled = target.prefill(list(prompts.values()))
    assert_caches(case, target.cache, prompts)
    stepped = torch.stack([target.step(token) for token in forced], 1)
    allowed = case.info["tolerance"]
    for name, prompt, steps in zip(prompts, prefilled, stepped, strict=True):
        for part, hidden in (("prefill", prompt), ("step", steps)):
            expected = case.tensors.get(f"{name}_{part}_hidden")
            if expected is not None:
                engine.assert_close(f"{name} {part}", hidden, expected, allowed["hidden_abs"])
            expected = case.tensors[f"{name}_{part}_logits"][:, target.image_ids]
            got = target.logits(hidden)
            engine.assert_close(f"{name} {part} logits", got, expected, allowed["logits_abs"])


def assert_caches(case: Case, cache: Tensor, prompts: dict[str, Tensor]) -> None:
    """Keys after norm and rotation, and values, of the prompts' rows."""
    tolerance = case.info["tolerance"].get("cache_abs", case.info["tolerance"]["logits_abs"])
    seen = 0
    for sequence, (name, prompt) in enumerate(prompts.items()):
        rows = cache[:, :, sequence, :, : len(prompt)]
        if case.has(f"{name}_prefill_k_cache"):
            names = f"{name}_prefill_k_cache", f"{name}_prefill_v_cache"
            chameleon.assert_cache(case, *names, rows, tolerance)
            seen += 1
        if case.has(f"{name}_prefill_k_cache_interleaved"):
            expected = case.tensors[f"{name}_prefill_k_cache_interleaved"].transpose(1, 2)
            engine.assert_close(f"{name} keys", rows[:, 0], expected, tolerance)
            seen += 1
    assert seen, "no recorded cache"


def test_image_ids(case: Case, bundle: Path) -> None:
    """The head has the rows of the image ids, which are all that may be sampled."""
    target = Target(bundle, 1, len(sequences(case)["cond"]) + 1)
    mask = torch.zeros_like(case.tensors["image_token_mask"])
    mask[target.image_ids] = 1
    assert torch.equal(mask, case.tensors["image_token_mask"])
    if not case.has("cond_image_only_logits"):
        return
    hidden = [target.prefill([sequences(case)["cond"]])[0][-1]]
    hidden.append(target.step(case.long("forced_image_ids")[0])[0])
    expected = case.tensors["cond_image_only_logits"]
    assert torch.equal(expected > torch.finfo(torch.float32).min, mask.bool().expand_as(expected))
    got = target.logits(torch.stack(hidden))
    tolerance = case.info["tolerance"]["logits_abs"]
    engine.assert_close("image ids", got, expected[:, target.image_ids], tolerance)


def test_other_parts_are_ignored(case: Case, weights: Weights) -> None:
    """Image tokenizers and frequencies in a checkpoint are no part of the network."""
    extra = re.compile(r"model\.vqmodel\.|rope\.")
    assert not [name for name in weights.state if extra.match(name)]
