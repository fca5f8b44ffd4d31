"""Lumina-mGPT 2.0's network, plain and as the engine runs it: prompt, cached steps, both sequences, scores."""

from __future__ import annotations

from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import golden_lumina2 as lumina2
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

from models.chameleon.transformer import Chameleon, weight_shapes
from models.export.chameleon.weights import Weights, read_weights

KINDS = ("families/lumina2_target",)


def size(case: Case) -> tuple[int, int]:
    grid = case.info["run"]["grid"]
    return lumina2.STEP * grid["width_grids"], lumina2.STEP * grid["height_grids"]


@pytest.fixture(scope="module")
def weights(case: Case) -> Weights:
    return read_weights(case.folder)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lumina2") / "bundle"
    longest = len(case.tensors["prompt_ids"])
    words = ("--official-schedule",)
    return lumina2.export(out, case.folder, None, [size(case)], *words, text_length=longest)


@pytest.fixture(scope="module")
def before(bundle: Path) -> int:
    (grid,) = engine.manifest(bundle)["grids"]
    return len(grid["before"])


def test_sizes(case: Case, weights: Weights) -> None:
    names = {"vocab_size": "vocab_size", "max_positions": "max_positions", "swin_norm": "swin_norm"}
    chameleon.assert_sizes(weights.config, case.info["dims"], **names)


def test_ids(case: Case, bundle: Path) -> None:
    """Ids by name, and the image that the manifest frames."""
    facts, entries = case.info["token_ids"], engine.manifest(bundle)
    assert entries["prompt"]["prefix"] == [facts["bos"]]
    tokens = {"vocabulary": case.info["dims"]["vocab_size"], "first_image_id": facts["image_first"],
              "codebook_size": facts["image_count"]}  # fmt: skip
    assert entries["tokens"] == tokens
    (grid,) = entries["grids"]
    forced = case.long("forced_ids")
    codes = lumina2.codes_of(bundle, forced).tolist()
    assert lumina2.image_ids(grid, codes, facts["image_first"]) == forced.tolist()


@torch.inference_mode()
def test_plain_network(case: Case, weights: Weights) -> None:
    """Both sequences without a cache."""
    model = Chameleon(weights.config)
    for name in weight_shapes(weights.config):
        model.get_parameter(name).copy_(weights.read(name))
    prompt, forced = case.long("prompt_ids"), case.long("forced_ids")
    *layers, hidden = model.trunk(torch.cat([prompt, forced])[None])
    got = torch.stack([layer[0, : len(prompt)] for layer in (*layers, hidden)])
    engine.assert_recorded(case, "layer_hidden", got, "hidden")
    steps = hidden[0, len(prompt) - 1 :]
    engine.assert_recorded(case, "step_hidden", steps, "hidden")
    logits = torch.nn.functional.linear(steps[: len(forced)], model.head)
    engine.assert_recorded(case, "cond_logits", logits, "logits")
    hidden = model.trunk(forced[None])[-1][0]
    logits = torch.nn.functional.linear(hidden, model.head)
    first = case.tensors["uncond_first_logits"]
    engine.assert_close("header", logits[: len(first)], first, case.tolerance("logits"))
    rest = case.tensors["uncond_logits"]
    rows = logits[len(first) - 1 :][: len(rest)]
    engine.assert_close("unconditional", rows, rest, case.tolerance("logits"))


@torch.inference_mode()
def test_prompt(case: Case, bundle: Path) -> None:
    prompt = case.long("prompt_ids")
    target = Target(bundle, 1, len(prompt))
    (hidden,) = target.prefill([prompt])
    engine.assert_recorded(case, "prefill_hidden", hidden, "hidden")
    logits = target.logits(hidden[-1:])[0]
    expected = case.tensors["prefill_logits_last"][target.image_ids]
    engine.assert_close("logits", logits, expected, case.tolerance("logits"))
    cache = target.cache[:, :, 0, :, : len(prompt)]
    chameleon.assert_cache(case, "prefill_k", "prefill_v", cache, "hidden")


@torch.inference_mode()
def test_layers(case: Case, bundle: Path) -> None:
    """What every block gets, for drafters that read inner layers."""
    prompt, expected = case.long("prompt_ids")[None], case.tensors["layer_hidden"][:-1]
    got = Target(bundle, 1, prompt.shape[1]).layers(prompt, len(expected))[:, 0]
    engine.assert_close("layers", got, expected, case.tolerance("hidden"))


@torch.inference_mode()
def test_steps(case: Case, bundle: Path, before: int) -> None:
    """Cached steps of both sequences from the first code on."""
    prompt, forced = case.long("prompt_ids"), case.long("forced_ids")
    target, hidden = lumina2.feed(bundle, prompt, forced, before)
    assert int(case.long("uncond_active").argmax()) == before  # the prediction of the first code
    allowed = case.tolerance("hidden"), case.tolerance("logits")
    engine.assert_close("hidden", hidden[0], case.tensors["step_hidden"][before:], allowed[0])
    expected = case.tensors["uncond_hidden"]
    engine.assert_close("unconditional", hidden[1, : len(expected)], expected, allowed[0])
    wanted = {"cond": case.tensors["cond_logits"][before:], "uncond": case.tensors["uncond_logits"]}
    for (name, expected), rows in zip(wanted.items(), hidden, strict=True):
        got = target.logits(rows[: len(expected)])
        engine.assert_close(name, got, expected[:, target.image_ids], case.tolerance("logits"))


@torch.inference_mode()
def test_processed_scores(case: Case, bundle: Path, before: int) -> None:
    """Guidance and top-k on the codes alone are the official processors where codes are due."""
    forced, scores = case.long("forced_ids"), case.tensors["processed_scores"]
    target, hidden = lumina2.feed(bundle, case.long("prompt_ids"), forced, before)
    settings = case.info["run"]
    engine_scales = iter(lumina2.scales(bundle, *size(case), settings["cfg"]))
    codes = set(lumina2.codes_of(bundle, forced).tolist())
    seen = 0
    for row in case.long("uncond_active").nonzero().flatten().tolist():
        token = int(forced[row]) - target.tokens["first_image_id"]
        if token not in codes:  # end of a row or of the image: no other id has a score
            assert (scores[row] > -torch.inf).nonzero().tolist() == [[int(forced[row])]]
            continue
        scale = next(engine_scales)
        assert scale == pytest.approx(float(case.tensors["guidance"][row]), abs=1e-6)
        got = engine.probabilities(
            target.logits(hidden[:, row - before]),
            1.0,
            settings["image_top_k"],
            1.0,
            guidance=scale,
        )[0]
        assert_scores(case, f"score {row}", target, got, scores[row])
        seen += 1
    assert seen == settings["grid"]["latent_h"] * settings["grid"]["latent_w"]


def assert_scores(case: Case, what: str, target: Target, got: Tensor, scores: Tensor) -> None:
    """Probabilities of codes against scores of all ids; near the k-th largest, kept sets may differ."""
    outside = scores.clone()
    outside[target.image_ids] = -torch.inf
    assert not (outside > -torch.inf).any(), f"{what}: other ids than codes"
    expected = scores[target.image_ids]
    edge = expected[expected > -torch.inf].min()
    differing = (got > 0) != (expected > -torch.inf)
    kept = (got > 0) & ~differing
    logs = got[kept].log() - got[kept].sum().log()
    engine.assert_close(
        what, logs, expected[kept].log_softmax(-1), 2 * case.tolerance("processed_scores")
    )
    if differing.any():
        near = (expected[kept] - edge).abs() <= case.tolerance("processed_scores", 1)
        assert near.any() and int(differing.sum()) <= 2, f"{what}: another kept set"
