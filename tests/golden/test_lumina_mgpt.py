"""Lumina-mGPT targets: both sequences, processed scores and a greedy image as recorded."""

from __future__ import annotations

from pathlib import Path

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

KINDS = ("lumina_mgpt",)


def is_parallel(case: Case) -> bool:
    """The checkpoint holds model-parallel norms, and no image was recorded."""
    return bool(case.info["dims"]["model_parallel_size"] > 1)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lumina") / "bundle"
    if is_parallel(case):
        ids = {"codebook_size": 256, "end_of_image": 260, "begin_of_image": 261, "separator": 262}
        config = {"tokens": ids, "sizes": ["64x64"]}
        return engine.export(out, "anole", config, model=case.folder)
    grids = [case.info["grid"], case.info["greedy"]]
    sizes = ",".join(f"{32 * g['width_grids']}x{32 * g['height_grids']}" for g in grids)
    return engine.export(out, "lumina-mgpt", {}, "--sizes", sizes, model=case.folder)


@pytest.fixture
def recorded(case: Case) -> None:
    if is_parallel(case):
        pytest.skip("no recorded image")


def grid_ids(bundle: Path, number: int, codes: Tensor) -> list[int]:
    """Ids of an image as the manifest's grid frames its codes."""
    manifest = engine.manifest(bundle)
    grid = manifest["grids"][number]
    rows = codes.view(grid["rows"], grid["columns"]).tolist()
    ids = list(grid["before"])
    for row in rows:
        ids += [*row, *grid["row_end"]]
    return ids + list(grid["after"])


def feed(bundle: Path, prompt: Tensor, image: Tensor, number: int) -> tuple[Target, Tensor]:
    """Hidden states [2,R,H] from the last id in front of the codes on, conditional first."""
    manifest = engine.manifest(bundle)
    before = len(manifest["grids"][number]["before"])
    target = Target(bundle, 2, len(prompt) + len(image))
    opened = torch.cat([prompt, image[:before]])
    hidden = target.prefill([opened, opened[len(prompt) :]])
    rows = [torch.stack([h[-1] for h in hidden])]
    rows += [target.step(token) for token in image[before:]]
    return target, torch.stack(rows, 1)


def test_model_parallel_norms(case: Case, bundle: Path) -> None:
    if not is_parallel(case):
        pytest.skip("one norm for all heads")
    ids = case.long("input_ids")
    target = Target(bundle, 1, len(ids))
    (hidden,) = target.prefill([ids])
    tolerance = case.info["tolerance"]["logits_abs"]
    engine.assert_recorded(case, "hidden", hidden, tolerance)
    expected = case.tensors["logits"][:, target.image_ids]
    engine.assert_close("logits", target.logits(hidden), expected, tolerance)


def test_steps(case: Case, bundle: Path, recorded: None) -> None:
    """Hidden states and logits; the image's ids are the manifest's."""
    prompt, forced = case.long("prompt_ids"), case.long("forced_ids")
    codes = forced[(forced >= 4) & (forced < 8196)]
    assert grid_ids(bundle, 0, codes) == forced.tolist()
    target, hidden = feed(bundle, prompt, forced, 0)
    first = case.long("uncond_active").argmax()  # the prediction of the first code
    tolerance = case.info["tolerance"]["logits_abs"]
    conditional = case.tensors["step_hidden"][first:]
    engine.assert_close("hidden", hidden[0], conditional, tolerance)
    for name, rows in (("cond", hidden[0]), ("uncond", hidden[1])):
        expected = case.tensors[f"{name}_logits"][first if name == "cond" else 0 :]
        got = target.logits(rows[: len(expected)])
        engine.assert_close(name, got, expected[:, target.image_ids], tolerance)


def test_processed_scores(case: Case, bundle: Path, recorded: None) -> None:
    """Guidance and top-k on the image ids alone are the official processors where codes are due."""
    forced, scores = case.long("forced_ids"), case.tensors["processed_scores"]
    target, hidden = feed(bundle, case.long("prompt_ids"), forced, 0)
    first = int(case.long("uncond_active").argmax())
    settings, seen = case.info["sampling"], 0
    for row in case.long("uncond_active").nonzero().flatten().tolist():
        token = int(forced[row])
        if not 4 <= token < 8196:  # end of a row or of the image: no other id has a score
            assert (scores[row] > -torch.inf).nonzero().tolist() == [[token]]
            continue
        logits = target.logits(hidden[:, row - first])
        top_k = settings["image_top_k"]
        got = engine.probabilities(logits, 1.0, top_k, 1.0, guidance=settings["cfg_scale"])[0]
        expected = scores[row].softmax(-1)
        outside = expected.clone()
        outside[target.image_ids] = 0
        assert not outside.any(), f"score {row}: other ids than codes"
        expected = expected[target.image_ids]
        engine.assert_same_support(f"score {row}", got, expected)
        kept = expected > 0  # compared as logarithms, which are what has the recorded error
        difference = (got[kept].log() - expected[kept].log()).abs().max()
        assert difference <= 2 * case.info["tolerance"]["processed_scores_abs"], f"score {row}"
        seen += 1
    assert seen == case.info["grid"]["latent_h"] * case.info["grid"]["latent_w"]


def test_greedy(case: Case, bundle: Path, recorded: None) -> None:
    """Every recorded greedy code has the largest guided score; the other ids are the grid's."""
    prompt, ids = case.long("greedy_prompt_ids"), case.long("greedy_ids")
    image = torch.cat([prompt[-3:], ids])
    codes = ids[(ids >= 4) & (ids < 8196)]
    framed = grid_ids(bundle, 1, codes)
    assert framed[: len(image)] == image.tolist()
    target, hidden = feed(bundle, prompt[:-3], image, 1)
    conditional, unconditional = target.logits(hidden[:, :-1])
    guided = unconditional + case.info["sampling"]["cfg_scale"] * (conditional - unconditional)
    free = case.tensors["greedy_margin"] < 1e30
    assert free.sum() == len(codes)
    assert torch.equal(guided.argmax(-1)[free], codes - 4)
    best = guided.topk(2).values[free]
    margin = case.tensors["greedy_margin"][free]
    tolerance = case.info["tolerance"]["processed_scores_abs"]
    engine.assert_close("margin", best[:, 0] - best[:, 1], margin, tolerance)
