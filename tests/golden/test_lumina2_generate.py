"""Lumina-mGPT 2.0 from ids of prompts to pixels: exporter, compiled loop with guidance's schedule, decoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import golden_engine as engine
import golden_lumina2 as lumina2
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case, sibling
from safetensors.torch import load_file
from torch import Tensor

from tests.e2e.families import Shape, Weights, add_drafter

KINDS = ("families/lumina2_generate",)
# Exact ones, at temperature 0.
METHODS: tuple[dict[str, Any], ...] = (
    {"method": "ar"},
    {"method": "sjd"},
    {"method": "scd"},
    {"method": "ngram"},
    {"method": "eagle", "tree": "chain-8"},
    {"method": "eagle", "tree": "lantern-26"},
    {"method": "eagle-2"},
)
FORCED = 1e30  # margin of ids that are not sampled


def runs(case: Case, greedy: bool) -> list[dict[str, Any]]:
    return [run for run in case.info["runs"] if (run["seed"] is None) == greedy]


def prompt_ids(case: Case, run: dict[str, Any]) -> Tensor:
    """Runs of a caption and size have the ids of one prompt: its number ends their names."""
    same = [
        other["run"].rpartition("_")[2] for other in case.info["runs"]
        if all(other[key] == run[key] for key in ("prompt", "width", "height"))
    ]  # fmt: skip
    name = next(f"prompt_{end}.ids" for end in same if case.has(f"prompt_{end}.ids"))
    return case.long(name)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a drafter that guesses now and then."""
    folder = tmp_path_factory.mktemp("lumina2")
    model, vq = sibling(case, case.info["model"]), sibling(case, case.info["vq"])
    sizes = [(run["width"], run["height"]) for run in case.info["runs"]]
    (file,) = vq.weights()
    longest = max(len(prompt_ids(case, run)) for run in case.info["runs"])
    out = lumina2.export(
        folder / "bundle", model.folder, file, sizes, "--official-schedule", text_length=longest
    )
    dims = model.info["dims"]
    shape = Shape(dims["hidden_size"], dims["heads"], dims["kv_heads"], dims["ffn_size"])
    embeddings = engine.load_module(out, "target").embed(torch.arange(dims["vocab_size"])[None])[0]
    add_drafter(folder, out, Weights(shape, 6), embeddings, "part")
    return out


def expected_codes(case: Case, bundle: Path, run: dict[str, Any]) -> Tensor:
    return lumina2.codes_of(bundle, case.long(f"{run['run']}.tokens"))


def test_check(bundle: Path) -> None:
    engine.check(bundle)


def test_ids(case: Case, bundle: Path) -> None:
    """What the engine forces around the codes is what the model sampled, or was forced to, there."""
    first = engine.manifest(bundle)["tokens"]["first_image_id"]
    for run in case.info["runs"]:
        grid = lumina2.grid_of(bundle, run["width"], run["height"])
        codes = expected_codes(case, bundle, run).tolist()
        framed = lumina2.image_ids(grid, codes, first)
        assert framed == case.long(f"{run['run']}.tokens").tolist(), run["run"]


def test_greedy(case: Case, bundle: Path, tmp_path: Path) -> None:
    """The engine's codes with every method."""
    found = runs(case, greedy=True)
    wanted = [
        {"width": run["width"], "height": run["height"], "ids": prompt_ids(case, run).tolist(),
         "unconditional": [], "cfg_scale": run["cfg"], "temperature": 0, **method}
        for run in found for method in METHODS
    ]  # fmt: skip
    out = tmp_path / "out.safetensors"
    engine.run(engine.BUILD / "golden_layout", bundle, out, stdin=json.dumps(wanted))
    sampled, number = load_file(out), 0
    for run in found:
        expected = expected_codes(case, bundle, run).tolist()
        for method in METHODS:
            assert sampled[f"{number}.codes"].tolist() == expected, f"{run['run']} {method}"
            number += 1
    assert number


@torch.inference_mode()
def test_pixels(case: Case, bundle: Path, tmp_path: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    grids = {}
    for run in case.info["runs"]:
        grid = lumina2.grid_of(bundle, run["width"], run["height"])
        codes = expected_codes(case, bundle, run)
        grids[run["run"]] = codes.view(grid["rows"], grid["columns"])
    for (name, codes), got in zip(grids.items(), pixels.decode(bundle, tmp_path, *grids.values())):
        image = decoder.decode(codes[None])[0]
        if case.has(f"{name}.image"):
            engine.assert_recorded(case, f"{name}.image", image, "image")
        expected = case.tensors[f"{name}.image_u8"]
        pixels.assert_rounded(name, got, expected, image, 127.5 * case.tolerance("image"))


def guided_distributions(case: Case, bundle: Path, run: dict[str, Any]) -> dict[int, Tensor]:
    """The engine's probabilities [V] in front of every recorded code, by its step."""
    grid = lumina2.grid_of(bundle, run["width"], run["height"])
    before, ids = len(grid["before"]), case.long(f"{run['run']}.tokens")
    pairs = run["cfg"] != 1
    target, hidden = lumina2.feed(bundle, prompt_ids(case, run), ids, before, pairs)
    scales = iter(lumina2.scales(bundle, run["width"], run["height"], run["cfg"]))
    first = target.tokens["first_image_id"]
    distributions = {}
    for step in range(before, len(ids)):
        if not 0 <= int(ids[step]) - first < target.tokens["codebook_size"]:
            continue
        scale = next(scales)
        assert scale == pytest.approx(float(case.tensors[f"{run['run']}.guidance"][step]), rel=1e-6)
        settings = (run["temperature"], run["image_top_k"], 1.0)
        logits = target.logits(hidden[:, step - before])
        distributions[step] = engine.probabilities(
            logits, *settings, guidance=scale if pairs else None
        )[0]
    return distributions


@torch.inference_mode()
def test_margins(case: Case, bundle: Path) -> None:
    """Recorded greedy ids are the best ones by more than the engine errs."""
    for run in runs(case, greedy=True):
        free = case.tensors[f"{run['run']}.margin"] < FORCED
        distributions = guided_distributions(case, bundle, run)
        assert int(free[len(free) - 1 - len(distributions) :].sum()) <= len(distributions)
        ids = (
            case.long(f"{run['run']}.tokens") - engine.manifest(bundle)["tokens"]["first_image_id"]
        )
        for step, distribution in distributions.items():
            assert int(distribution.argmax()) == int(ids[step]), f"{run['run']} step {step}"


@torch.inference_mode()
def test_sampled(case: Case, bundle: Path) -> None:
    """The engine's probabilities give every recorded code to its noise."""
    found = runs(case, greedy=False)
    first = engine.manifest(bundle)["tokens"]["first_image_id"]
    for run in found:
        name = run["run"]
        distributions, noise = (
            guided_distributions(case, bundle, run),
            case.tensors[f"{name}.noise"],
        )
        ids = case.long(f"{name}.tokens") - first
        for step, distribution in distributions.items():
            assert int((distribution / noise[step]).argmax()) == int(ids[step]), (
                f"{name} step {step}"
            )
        steps = (3, 4, len(noise) // 2)
        for step, expected in zip(steps, case.tensors[f"{name}.probs"], strict=True):
            if step in distributions:
                engine.assert_close(
                    f"{name} {step}", distributions[step], expected, case.tolerance("probs")
                )
    assert found
