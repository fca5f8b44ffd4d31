"""Janus-Pro from a published folder and captions to pixels: exporter, compiled loop, image decoder."""

from __future__ import annotations

import json
from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case
from golden_chameleon import Target
from torch import Tensor

KINDS = ("families/janus_generate",)
METHODS = (("ar",), ("sjd",), ("ngram",), ("zipar", "--ahead", 100))  # exact ones, at temperature 0


def runs(case: Case, greedy: bool) -> dict[str, dict]:
    return {name: run for name, run in case.info["runs"].items() if ("seed" not in run) == greedy}


def size(case: Case, run: dict) -> tuple[int, int]:
    """Width and height of a run's images in pixels."""
    rows, columns = run["grid"]
    side = case.info["model"]["vq"]["downsample"]
    return side * columns, side * rows


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    sizes = [size(case, run) for run in case.info["runs"].values()]
    longest = max(case.tensors[f"prompt{i}.ids"].numel() for i in range(len(case.info["prompts"])))
    out = tmp_path_factory.mktemp("janus") / "bundle"
    images = engine.images_of(sizes, longest)
    return engine.export(out, "janus", images, "--dtype", "fp32", model=case.published)


def test_check(bundle: Path) -> None:
    engine.check(bundle)


def test_prompts(case: Case, bundle: Path) -> None:
    width, height = size(case, next(iter(case.info["runs"].values())))
    for number, prompt in enumerate(case.info["prompts"]):
        request = {"prompt": prompt["caption"], "width": width, "height": height}
        (found,) = engine.encode(bundle, request)
        assert found["ids"] == case.tensors[f"prompt{number}.ids"].tolist()
        assert found["unconditional"] == case.tensors[f"prompt{number}.uncond_ids"].tolist()


def generate(
    case: Case, bundle: Path, folder: Path, run: dict, *method: object
) -> tuple[Tensor, Tensor]:
    """Codes and pixels of a greedy image by the program."""
    width, height = size(case, run)
    folder.mkdir(parents=True, exist_ok=True)
    engine.generate(
        bundle, "-p", case.info["prompts"][run["prompt"]]["caption"], "-W", width, "-H", height,
        "--cfg-scale", run["cfg_weight"], "-o", folder / "image.png",
        "--save-codes", folder / "codes.json", "--method", *method,
    )  # fmt: skip
    (generated,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
    return torch.tensor(generated["codes"]), pixels.read_png(folder / "image.png")


@torch.inference_mode()
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method[0])
def test_greedy(case: Case, bundle: Path, tmp_path: Path, method: tuple[object, ...]) -> None:
    """Codes of every greedy run, and pixels where they were recorded."""
    decoder = engine.load_module(bundle, "image_decoder")
    found = runs(case, greedy=True)
    for name, run in found.items():
        codes, generated = generate(case, bundle, tmp_path / name, run, *method)
        assert codes.tolist() == case.tensors[f"{name}.tokens"][0].tolist(), name
        if not case.has(f"{name}.image_u8"):
            continue
        image = decoder.decode(codes.view(1, *run["grid"]))[0]
        if case.has(f"{name}.image"):
            expected = case.tensors[f"{name}.image"][0]
            engine.assert_close(name, image, expected, case.tolerance("image"))
        pixels.assert_truncated(name, generated, case.tensors[f"{name}.image_u8"][0], image, 0.02)
    assert found


def logits_of(case: Case, bundle: Path, name: str, run: dict) -> Tensor:
    """Logits [N,2P,V] in front of every recorded code, rows conditional, unconditional by turns."""
    codes = case.long(f"{name}.tokens")
    number = run["prompt"]
    pair = [case.long(f"prompt{number}.{part}") for part in ("ids", "uncond_ids")]
    target = Target(bundle, 2 * len(codes), len(pair[0]) + codes.shape[1])
    hidden = [torch.stack([rows[-1] for rows in target.prefill(pair * len(codes))])]
    fed = codes.repeat_interleave(2, 0) + target.tokens["first_image_id"]
    hidden += [target.step(code) for code in fed.t()[:-1]]
    return target.logits(torch.stack(hidden))


@torch.inference_mode()
def test_logits(case: Case, bundle: Path) -> None:
    """Recorded steps of all runs, before and after guidance."""
    seen = 0
    for name, run in case.info["runs"].items():
        if not case.has(f"{name}.logits"):
            continue
        steps = case.long(f"{name}.logits.step_index")
        logits = logits_of(case, bundle, name, run)[steps]
        engine.assert_recorded(case, f"{name}.logits", logits, "logits")
        if case.has(f"{name}.guided_logits"):
            guided = logits[:, 1::2] + run["cfg_weight"] * (logits[:, 0::2] - logits[:, 1::2])
            engine.assert_recorded(case, f"{name}.guided_logits", guided, "guided_logits")
        seen += 1
    assert seen


@torch.inference_mode()
def test_sampled(case: Case, bundle: Path) -> None:
    """The engine's probabilities give every recorded code to its uniform, and to its noise."""
    found = runs(case, greedy=False)
    for name, run in found.items():
        codes = case.long(f"{name}.tokens")
        logits = logits_of(case, bundle, name, run)
        pairs = logits.unflatten(1, (-1, 2)).flatten(0, 1)  # [N * P, 2, V]
        guided = [
            engine.probabilities(pair, run["temperature"], 0, 1.0, guidance=run["cfg_weight"])
            for pair in pairs
        ]
        distributions = torch.cat(guided).view(codes.shape[1], len(codes), -1)
        if case.has(f"{name}.probs"):
            steps = case.long(f"{name}.logits.step_index")
            engine.assert_recorded(case, f"{name}.probs", distributions[steps], 1e-4)
        ends = distributions.double().cumsum(-1)
        sampled = (ends <= case.tensors[f"{name}.uniform"][..., None]).sum(-1)
        assert torch.equal(sampled.t(), codes), name
        if case.has(f"{name}.noise"):
            sampled = (distributions / case.tensors[f"{name}.noise"]).argmax(-1)
            assert torch.equal(sampled.t(), codes), name
    assert found


@torch.inference_mode()
def test_pixels_of_sampled_codes(case: Case, bundle: Path, tmp_path: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for name, run in runs(case, greedy=False).items():
        if not case.has(f"{name}.image_u8"):
            continue
        codes = case.long(f"{name}.tokens")[0].view(*run["grid"])
        image = decoder.decode(codes[None])[0]
        if case.has(f"{name}.image"):
            expected = case.tensors[f"{name}.image"][0]
            engine.assert_close(name, image, expected, case.tolerance("image"))
        (got,) = pixels.decode(bundle, tmp_path, codes)
        pixels.assert_truncated(name, got, case.tensors[f"{name}.image_u8"][0], image, 0.02)
