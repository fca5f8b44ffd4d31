"""Answers to questions about images as training data: what is recorded, and drafters that learn from it."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from models.eagle import answers, train
from models.eagle.answers import BEHIND, load_for
from models.eagle.batch import NO_CODE, make_batch
from models.eagle.data import Images
from models.eagle.features import image_ids, next_ids
from models.eagle.losses import accepted, chain_compression
from models.eagle.train import drafter_config
from models.export.__main__ import main as export
from models.heads import train as heads
from tests.conftest import Runner
from tests.e2e import families

TOKENS, PAIRS = 12, 24
QUESTIONS = ("What is it?", "Is there a red boat in the image, and where does it stand?", "b")


def write_questions(folder: Path) -> Path:
    folder.mkdir()
    random = np.random.default_rng(0)
    lines = []
    for number in range(PAIRS):
        coarse = Image.fromarray(random.integers(0, 256, (5, 5, 3), dtype=np.uint8))
        name = f"{number}.{'bmp' if number == 1 else 'png'}"
        coarse.resize((64, 64), Image.Resampling.BICUBIC).save(folder / name)
        lines.append(json.dumps({"file_name": name, "question": QUESTIONS[number % 3]}))
    (folder / "questions.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "questions.jsonl"


def run(*words: object) -> int:
    threads = torch.get_num_threads()
    code = answers.main([str(word) for word in words])
    torch.set_num_threads(threads)
    return code


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo of texts: 4 x 4 codes; a third of the ids ends an answer, so that lengths differ."""
    made = families.anole(tmp_path_factory.mktemp("anole"), "--text")
    file = made / "manifest.json"
    manifest = json.loads(file.read_text(encoding="utf-8"))
    manifest["text"]["stop"] = list(range(60, 10240, 8))
    file.write_text(json.dumps(manifest), encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def data(bundle: Path, tmp_path_factory: pytest.TempPathFactory, build_dir: Path) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    file = write_questions(folder / "images")
    words = ("--bundle", bundle, "--out", folder / "data", "--tokens", TOKENS, "--build", build_dir)
    assert run("--questions", file, *words) == 0
    return folder / "data"


def found(data: Path) -> list[dict[str, Any]]:
    return list(json.loads((data / "answers-00000.json").read_text(encoding="utf-8")))


def test_answers_are_those_of_the_engine(
    bundle: Path, data: Path, lamplighter: Path, run_program: Runner
) -> None:
    all_answers = found(data)
    assert len(all_answers) == PAIRS
    for number in (0, 2):
        ran = run_program(
            lamplighter, "describe", data.parent / "images" / f"{number}.png", "-m", bundle, "-p",
            QUESTIONS[number % 3], "--seed", 1_000_000 + number, "--max-tokens", TOKENS, "--json",
        )  # fmt: skip
        reported = json.loads(ran.stdout)
        answer = all_answers[number]
        assert reported["tokens"] == len(answer["ids"])
        assert reported["prompt_tokens"] == len(answer["prompt"])
        assert (reported["finish_reason"] == "stop") == answer["ended"]
    lengths = {len(answer["ids"]) for answer in all_answers}
    assert len(lengths) > 2 and any(answer["ended"] for answer in all_answers)


def test_features_are_those_of_the_target(bundle: Path, data: Path) -> None:
    """One pass over prompt and answer alone gives the recorded rows, and they give likely tokens."""
    model, shard = load_for(bundle, data), load_file(data / "features-00000.safetensors")
    assert model.texts and model.tokens == TOKENS and model.guidance == 1
    surprise = []
    for number, answer in enumerate(found(data)):
        codes = shard["codes"][number].long()
        ids = image_ids(model, codes[None])[0]
        length = len(answer["ids"])
        assert ids[:length].tolist() == answer["ids"]
        ended = codes[length:]
        if answer["ended"]:
            assert ids[length] == model.manifest["text"]["stop"][0] and (ended[1:] == BEHIND).all()
        x = model.target.embed(torch.tensor([[*answer["prompt"], *answer["ids"][:-1]]]))
        sizes = model.manifest["cache"]
        cache = torch.zeros(sizes["layers"], 2, 1, sizes["kv_heads"], x.shape[1], sizes["head_dim"])
        none, start = torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
        _, features = model.target.forward(x, torch.arange(x.shape[1])[None], none, start, cache)
        first = model.prompt_length - len(answer["prompt"])
        rows = shard["features"][number, 0, first:][: x.shape[1]].float()
        torch.testing.assert_close(rows, features[0], atol=0.05, rtol=0.02)
        assert int(shard["valid"][number, 0]) == len(answer["prompt"])
        ahead = (rows[len(answer["prompt"]) - 1 :] @ model.head.T).log_softmax(-1)  # type: ignore[union-attr]
        surprise += (-ahead.gather(1, codes[:length, None])).flatten().tolist()
    assert sum(surprise) / len(surprise) < 6 < np.log(10192)
    first_ids = next_ids(model, shard["codes"][:1].long(), [[found(data)[0]["prompt"]]])
    assert torch.equal(first_ids[0], shard["ids"][0].long())


def test_a_drafter_learns_to_write(
    bundle: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lamplighter: Path,
    run_program: Runner,
) -> None:  # fmt: skip
    """EAGLE and FLASH from data to text; greedy texts stay what they were."""
    ticks = count()
    for module in ("models.eagle.train", "models.heads.train"):
        monkeypatch.setattr(f"{module}.time.process_time", lambda: 0.05 * next(ticks))
    threads = torch.get_num_threads()
    words = ["--bundle", bundle, "--data", data, "--held-out", 8, "--batch", 8, "--minutes", 0.06]
    eagle, flash = tmp_path / "eagle.pt", tmp_path / "flash.pt"
    assert train.main([str(word) for word in (*words, "--out", eagle)]) == 0
    assert heads.main([str(word) for word in ("flash", *words, "--out", flash)]) == 0
    torch.set_num_threads(threads)
    report = torch.load(eagle, weights_only=True)["reports"][-1]
    assert report["rates"][0] > 0.15 and 1 < report["chains"][2] < 3
    copy = tmp_path / "bundle"
    copy.mkdir()
    for path in bundle.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    for command, file in (("drafter", eagle), ("flash", flash)):
        line = (command, "--bundle", copy, "--name", file.stem, "--drafter", file, "--text")
        assert export([str(word) for word in line]) == 0
    texts = {}
    for method in ("ar", "eagle", "flash"):
        ran = run_program(
            lamplighter, "describe", data.parent / "images" / "0.png", "-m", copy, "-p", QUESTIONS[0],
            "--temperature", 0, "--dtype", "fp32", "--method", method, "--json",
        )  # fmt: skip
        texts[method] = json.loads(ran.stdout)["text"]
    assert len(set(texts.values())) == 1


def test_lengths_count(data: Path, bundle: Path) -> None:
    """Tokens per pass of answers of different lengths: a draft that is always right, and none."""
    model = load_for(bundle, data)
    batch = Images(data, drafter_config(model), 8).batch([(0, i) for i in range(PAIRS)])
    exact = [batch.targets(step) for step in (1, 2)]

    def distribution(features: torch.Tensor) -> torch.Tensor:
        return (features @ model.head.T).softmax(-1)  # type: ignore[union-attr]

    _, kept = accepted(
        batch,
        exact,
        len(model.head),
        distribution,
        lambda rows, _: distribution(rows),  # type: ignore[arg-type]
    )
    lengths = (batch.codes != BEHIND).sum(1)
    # A pass of the prompt, then two accepted drafts and a token more in each.
    passes = 1 + (lengths - 1 + 2).div(3, rounding_mode="floor")
    assert chain_compression(kept) == pytest.approx(float(lengths.sum() / passes.sum()), abs=1e-3)
    assert chain_compression(kept.where(kept.isnan(), 0.0)) == pytest.approx(1)
    whole = make_batch(
        torch.zeros(1, 1, 6, 4), torch.tensor([[1, 2, NO_CODE, 3]]), torch.tensor([3]), 3, 0
    )
    assert whole.drafted(1).tolist() == [[True, False, False]]


def test_refused(
    bundle: Path, data: Path, tmp_path: Path, build_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_questions(tmp_path / "images")
    words = ("--bundle", bundle, "--questions", file, "--build", build_dir)
    assert run(*words, "--out", data, "--tokens", 7) == 7
    assert "answers of 7, the shards have" in capsys.readouterr().err
    file.write_text('{"file_name": "0.png", "text": "b"}')
    assert run(*words, "--out", tmp_path / "data") != 0
    assert 'expected {"file_name": ..., "question": ...}' in capsys.readouterr().err
    file.write_text('{"file_name": "none.png", "question": "b"}')
    assert run(*words, "--out", tmp_path / "data") != 0
    assert "none.png" in capsys.readouterr().err
    line = ["medusa", "--bundle", bundle, "--data", data, "--out", tmp_path / "m.pt"]
    assert heads.main([str(word) for word in line]) == 2
    assert "holds texts, expected flash for them, not medusa" in capsys.readouterr().err
    (tmp_path / "mute").mkdir()
    mute = families.chameleon(tmp_path / "mute")
    assert run("--bundle", mute, "--questions", file, "--out", tmp_path / "d") == 4
    assert "describes no images" in capsys.readouterr().err
