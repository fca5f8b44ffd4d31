"""SimpleAR from published files and captions to pixels: exporter, compiled loop, Cosmos' decoder."""

from __future__ import annotations

import json
from pathlib import Path

import golden_engine as engine
import golden_pixels as pixels
import pytest
import torch
from golden_cases import Case, sibling
from golden_chameleon import Target
from torch import Tensor

KINDS = ("families/simplear_generate",)
CELL = 16  # pixels a side of a code
METHODS = (("ar",), ("sjd",), ("ngram",), ("zipar", "--ahead", 100))  # exact ones, at temperature 0


def runs(case: Case, greedy: bool) -> list[dict]:
    return [run for run in case.info["runs"] if (run["top_k"] == 1) == greedy]


def size(case: Case) -> tuple[int, int]:
    """Width and height in pixels."""
    rows, columns = case.info["grid"]
    return CELL * columns, CELL * rows


def export(case: Case, folder: Path, *words: object) -> Path:
    model, decoder = (sibling(case, case.info[entry]).folder for entry in ("model", "vq"))
    lengths = [case.tensors["negative_ids"].numel()]
    lengths += [case.tensors[f"{run['run']}.prompt_ids"].numel() for run in case.info["runs"]]
    images = engine.images_of([size(case)], max(lengths))
    return engine.export(
        folder / "bundle", "simplear", images, "--dtype", "fp32", *words,
        model=model, decoder=decoder / "decoder.jit",
    )  # fmt: skip


@pytest.fixture(scope="module")
def full(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(case, tmp_path_factory.mktemp("simplear"), "--full-head")


@pytest.fixture(scope="module")
def codes_alone(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(case, tmp_path_factory.mktemp("simplear"))


def test_check(full: Path, codes_alone: Path) -> None:
    for bundle in (full, codes_alone):
        engine.check(bundle)


def test_prompts(case: Case, full: Path) -> None:
    width, height = size(case)
    for run in case.info["runs"]:
        request = {"prompt": run["prompt"], "width": width, "height": height}
        (found,) = engine.encode(full, request)
        assert found["ids"] == case.tensors[f"{run['run']}.prompt_ids"].tolist()
        assert found["unconditional"] == case.tensors["negative_ids"].tolist()


def generate(
    case: Case, bundle: Path, folder: Path, run: dict, *method: object
) -> tuple[Tensor, Tensor]:
    """Tokens and pixels of a greedy image by the program."""
    width, height = size(case)
    folder.mkdir(parents=True, exist_ok=True)
    engine.generate(
        bundle, "-p", run["prompt"], "-W", width, "-H", height, "--cfg-scale", run["cfg"],
        "-o", folder / "image.png", "--save-codes", folder / "codes.json", "--method", *method,
    )  # fmt: skip
    (generated,) = json.loads((folder / "codes.json").read_text(encoding="utf-8"))["images"]
    return torch.tensor(generated["codes"]), pixels.read_png(folder / "image.png")


def assert_pixels(case: Case, name: str, bundle: Path, tokens: Tensor, generated: Tensor) -> None:
    """Floats and bytes of tokens as the bundle counts them."""
    decoder = engine.load_module(bundle, "image_decoder")
    image = decoder.decode(tokens.view(1, *case.info["grid"]))[0]
    if case.has(f"{name}.image"):
        engine.assert_recorded(case, f"{name}.image", image, "image")
    pixels.assert_rounded(name, generated, case.tensors[f"{name}.image_u8"], image, 0.03)


@torch.inference_mode()
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method[0])
def test_greedy(
    case: Case, full: Path, codes_alone: Path, tmp_path: Path, method: tuple[object, ...]
) -> None:
    """Among all ids, and where no text was sampled among the codes."""
    found = runs(case, greedy=True)
    for run in found:
        name = run["run"]
        expected = case.long(f"{name}.tokens")
        tokens, generated = generate(case, full, tmp_path / name, run, *method)
        assert torch.equal(tokens, expected), name
        assert_pixels(case, name, full, tokens, generated)
        if run["text_ids_drawn"] == 0:
            codes, other = generate(case, codes_alone, tmp_path / f"{name} codes", run, *method)
            assert torch.equal(codes, case.long(f"{name}.codes").flatten()), name
            assert torch.equal(other, generated), name
    assert found


def logits_of(case: Case, bundle: Path, name: str) -> Tensor:
    """Logits [N,2,V] in front of every recorded token."""
    tokens = case.long(f"{name}.tokens")
    pair = [case.long(f"{name}.prompt_ids"), case.long("negative_ids")]
    target = Target(bundle, 2, max(map(len, pair)) + len(tokens))
    hidden = [torch.stack([rows[-1] for rows in target.prefill(pair)])]
    hidden += [target.step(token) for token in tokens[:-1]]
    return target.logits(torch.stack(hidden))


@torch.inference_mode()
def test_sampled(case: Case, full: Path) -> None:
    """The engine's probabilities give every recorded token, of text too, to its noise."""
    found = runs(case, greedy=False)
    for run in found:
        name = run["run"]
        settings = (run["temperature"], run["top_k"], run["top_p"])
        distributions = torch.cat(
            [
                engine.probabilities(pair, *settings, guidance=run["cfg"])
                for pair in logits_of(case, full, name)
            ]
        )
        if case.has(f"{name}.probs"):
            steps = [0, 1, len(distributions) // 2]
            engine.assert_recorded(case, f"{name}.probs", distributions[steps], 1e-4)
        sampled = (distributions / case.tensors[f"{name}.noise"]).argmax(-1)
        assert torch.equal(sampled, case.long(f"{name}.tokens")), name
    assert found


@torch.inference_mode()
def test_pixels_of_sampled_tokens(
    case: Case, full: Path, codes_alone: Path, tmp_path: Path
) -> None:
    """Ids of text become code 0."""
    for run in runs(case, greedy=False):
        name = run["run"]
        codes = case.long(f"{name}.codes")
        tokens = case.long(f"{name}.tokens").view_as(codes)
        (got,) = pixels.decode(full, tmp_path, tokens)
        assert_pixels(case, name, full, tokens, got)
        (same,) = pixels.decode(codes_alone, tmp_path, codes)
        assert torch.equal(same, got), name
