"""Texts about images from Python: the program's, with the target's distribution by every method."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from models import ops
from tests.conftest import Runner
from tests.e2e.families import add_text_drafters, anole

METHODS = (
    "ar", "self", "ngram", "lookahead", "sjd", "scd", "sjd-pac", "eagle", "eagle-2", "flash",
    "eagle+sjd", "flash+sjd",
)  # fmt: skip
QUESTION = "What is in the image?"
TOP_K, TEMPERATURE, TOKENS, TEXTS = 2, 0.9, 5, 1200


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images of 64 x 64 pixels, 4 x 4 codes; drafters of texts."""
    folder = tmp_path_factory.mktemp("anole")
    return add_text_drafters(folder, anole(folder, "--text"))


@pytest.fixture(scope="module")
def speaker(package: Any, bundle: Path) -> Any:
    return package.TextToImage(bundle, device="cpu", dtype="fp32", threads=1)


@pytest.fixture(scope="module")
def image() -> Image.Image:
    random = np.random.default_rng(0)
    return Image.fromarray(random.integers(0, 256, (64, 64, 3), dtype=np.uint8))


def test_texts_are_those_of_the_program(
    speaker: Any, lamplighter: Path, bundle: Path, run_program: Runner, image: Image.Image, tmp_path: Path
) -> None:  # fmt: skip
    image.save(tmp_path / "a.png")
    ran = run_program(
        lamplighter, "describe", "a.png", "-m", bundle, "-p", QUESTION, "--device", "cpu", "--dtype", "fp32",
        "-t", 1, "--seed", 7, "--method", "sjd", "--tree", "chain-3", "--max-tokens", 30, "--json", cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    parts: list[str] = []
    found = speaker.describe(
        image, QUESTION, seed=7, method="sjd", tree="chain-3", max_tokens=30, on_text=parts.append
    )
    reported = json.loads(ran.stdout)
    assert (found.text, found.finish_reason) == (reported["text"], reported["finish_reason"])
    assert found.prompt_tokens == reported["prompt_tokens"] and len(found.ids) == reported["tokens"]
    assert "".join(parts) == found.text and len(parts) > 1
    assert found.statistics.target_passes == reported["target_passes"]


def test_refused(package: Any, speaker: Any, image: Image.Image) -> None:
    for wrong, words in (
        ({"method": "medusa"}, "method: got 'medusa', expected for texts ar, eagle"),
        ({"max_tokens": 0}, "max_tokens: got 0"),
        ({"fit": "squeeze"}, "fit: got 'squeeze'"),
        ({"width": 64}, "width"),
    ):
        with pytest.raises((package.Error, TypeError), match=words):
            speaker.describe(image, **wrong)

    def stop(_: str) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        speaker.describe(image, on_text=stop)
    assert len(speaker.describe(image, max_tokens=2).ids) == 2


class Exact:
    """The target's probabilities of texts, by passes over whole sequences without a cache of earlier ones."""

    def __init__(self, bundle: Path, prompt: list[int]) -> None:
        ops.load()
        self.manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
        self.target = torch.jit.load(str(bundle / "target.pt"), map_location="cpu")
        self.target.prepare(torch.empty(0))
        self.prompt = prompt

    @torch.inference_mode()
    def next(self, text: tuple[int, ...], temperature: float) -> Tensor:
        """Probabilities of all ids behind a text."""
        shape, tokens = self.manifest["cache"], self.manifest["tokens"]
        ids = torch.tensor([[*self.prompt, *text]])
        cache = torch.zeros(
            shape["layers"], 2, 1, shape["kv_heads"], ids.shape[1], shape["head_dim"]
        )
        positions = torch.arange(ids.shape[1])[None]
        none, start = torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        hidden, _ = self.target.forward(self.target.embed(ids), positions, none, start, cache)
        rows = self.target.text_logits(hidden[:, -1:].contiguous())[0, 0].double() / temperature
        best = rows.topk(TOP_K)
        kept = torch.full_like(rows, -torch.inf)
        kept[best.indices] = best.values
        first, codes = tokens["first_image_id"], tokens["codebook_size"]
        probabilities = kept.softmax(-1)
        return torch.cat([probabilities[:first], torch.zeros(codes), probabilities[first:]])

    def texts(self, stop: list[int], temperature: float) -> dict[tuple[int, ...], float]:
        """All texts of up to TOKENS ids, without the one that ends them."""
        whole: dict[tuple[int, ...], float] = {}
        open_texts: dict[tuple[int, ...], float] = {(): 1.0}
        for _ in range(TOKENS):
            longer: dict[tuple[int, ...], float] = {}
            for text, chance in open_texts.items():
                following = self.next(text, temperature)
                for token in following.nonzero().flatten().tolist():
                    share = chance * float(following[token])
                    if token in stop:
                        whole[text] = whole.get(text, 0.0) + share
                    else:
                        longer[(*text, token)] = share
            open_texts = longer
        assert abs(sum(whole.values()) + sum(open_texts.values()) - 1) < 1e-9
        return whole | open_texts


def surprise(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> float:
    """Chi-square in standard deviations (Wilson and Hilferty 1931); texts that are rare count as one."""
    total = sum(counts.values())
    assert set(counts) <= set(expected)
    cells = [(counts[text], total * chance) for text, chance in expected.items()]
    rare = [cell for cell in cells if cell[1] < 5]
    cells = [cell for cell in cells if cell[1] >= 5]
    if rare:
        cells.append((sum(c for c, _ in rare), sum(e for _, e in rare)))
    chi, free = sum((c - e) ** 2 / e for c, e in cells), len(cells) - 1
    spread = 2 / (9 * free)
    return float(((chi / free) ** (1 / 3) - (1 - spread)) / spread**0.5)


@pytest.fixture(scope="module")
def exact(bundle: Path, speaker: Any, image: Image.Image) -> Exact:
    text, tokens = (
        json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))[part]
        for part in ("text", "tokens")
    )
    codes = [tokens["first_image_id"] + int(code) for code in speaker.encode(image).ravel()]
    around = (text["before_image"], codes, text["after_image"], text["suffix"])
    return Exact(bundle, [*text["prefix"], *itertools.chain(*around)])


@pytest.fixture(scope="module")
def stopping(
    package: Any, bundle: Path, exact: Exact, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """The engine with a likely second token among the ids that end texts."""
    first = int(exact.next((), TEMPERATURE).argmax())
    stop = int(exact.next((first,), TEMPERATURE).argmax())
    folder = tmp_path_factory.mktemp("stop") / "bundle"
    folder.mkdir()
    for path in bundle.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    exact.manifest["text"]["stop"] = [stop]
    (folder / "manifest.json").write_text(json.dumps(exact.manifest), encoding="utf-8")
    return package.TextToImage(folder, device="cpu", dtype="fp32", threads=1)


@pytest.mark.parametrize("method", METHODS)
def test_texts_have_the_targets_distribution(
    stopping: Any, exact: Exact, image: Image.Image, method: str
) -> None:
    """With ends among them, which later drafts must not change."""
    counts: Counter[tuple[int, ...]] = Counter()
    for seed in range(TEXTS):
        found = stopping.describe(
            image, "", seed=seed, method=method, temperature=TEMPERATURE, top_k=TOP_K, top_p=1,
            max_tokens=TOKENS,
        )  # fmt: skip
        counts[tuple(found.ids)] += 1
    stop = exact.manifest["text"]["stop"]
    assert surprise(counts, exact.texts(stop, TEMPERATURE)) < 4
    assert (
        surprise(counts, exact.texts(stop, 2 * TEMPERATURE)) > 6
    )  # the test sees other distributions
