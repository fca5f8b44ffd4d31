"""Distillation of small targets: distributions, divergences, measured acceptance, resuming."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from llamagen_files import GPT_SHAPE, T5_SHAPE, Files
from safetensors.torch import save_file
from torch import Tensor

from models.distill import __main__ as distill
from models.distill import student
from models.distill.student import Size, chain_tests, divergence, new_student, student_config
from models.eagle import data
from models.eagle.features import TargetModel, load_target, target_features
from models.eagle.losses import chain_compression
from models.export.__main__ import main as export
from models.export.checkpoint import ExportError
from models.llamagen.gpt import GPT
from models.llamagen.t5 import T5Encoder

CLASSES = replace(
    GPT_SHAPE, model_type="c2i", num_classes=5, cls_token_num=1, caption_dim=0, n_kv_head=2
)
CAPTIONS = {"text_features": [f"a boat {i}" for i in range(12)], "class": list("012340123401")}
IDS = {"text_features": [[[5 + i, 6, 1][: 1 + i % 3]] for i in range(12)],
       "class": [[[int(i)]] for i in CAPTIONS["class"]]}  # fmt: skip


class Set:
    """A bundle of random weights, its network, and a data set of images that nobody generated."""

    def __init__(self, folder: Path, spiece: Path, kind: str) -> None:
        torch.manual_seed(3)
        shape = GPT_SHAPE if kind == "text_features" else CLASSES
        self.network = GPT(shape).eval()
        torch.nn.init.normal_(self.network.output.weight, std=0.4)
        files = Files(folder, {"gpt": self.network.state_dict(), "vq": {}})
        sampling = {"cfg_scale": 2.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0}
        files.write_config({"gpt": {"n_head": 2, "grid": 4}, "sampling": sampling})
        files.save_t5(spiece, **T5Encoder(T5_SHAPE).state_dict())
        parts = ["--t5", files.t5] if kind == "text_features" else []
        assert files.export_gpt(*parts) == 0
        self.bundle, self.images = files.out, folder / "images"
        self.out = folder / "new/student.pt"
        self.model: TargetModel = load_target(self.bundle)
        codes = torch.randint(shape.vocab_size, (12, 16))
        features, valid = target_features(self.model, codes, IDS[kind])
        self.images.mkdir()
        tensors = {"features": features.bfloat16(), "codes": codes.int(), "valid": valid.int()}
        save_file(tensors, data.shard_path(self.images, "features", 0))
        (self.images / "captions.txt").write_text("\n".join(CAPTIONS[kind]) + "\n")

    def run(self, *arguments: object) -> int:
        words = ["--bundle", self.bundle, "--data", self.images, "--out", self.out,
                 "--held-out", 4, "--batch", 4, "--dim", 16, "--heads", 2, *arguments]  # fmt: skip
        return distill.main([str(word) for word in words])


@pytest.fixture(params=CAPTIONS)
def made(
    request: pytest.FixtureRequest, tmp_path: Path, spiece: Path, monkeypatch: pytest.MonkeyPatch
) -> Set:
    monkeypatch.setattr(student, "prompt_ids", lambda *_: IDS[request.param])
    return Set(tmp_path, spiece, request.param)


def test_the_network_of_the_target_has_its_distributions(made: Set) -> None:
    """Prompts, their padding and guidance are the target's; a student without a caption differs."""
    settings = distill.drafter_config(made.model)
    images = distill.Images(made.images, settings, 4)
    conditions = distill.Conditions(made.model, CAPTIONS[made.model.prompt_kind], made.out)
    run = distill.Distillation(
        made.model, made.network.config, distill.Options(), images, conditions, made.out
    )
    run.student.load_state_dict(made.network.state_dict())
    own, target, codes = run.distributions([(0, i) for i in range(12)])
    assert own.shape == target.shape == (12, 15, 40) and codes.shape == (12, 16)
    assert float(divergence("tvd", own, target).detach()) < 0.01
    found = run.evaluate()
    assert found["rate"] > 0.99 and found["chains"][3] > 3.1
    other, _, _ = run.distributions([(0, i) for i in (1, *range(1, 12))])
    assert torch.equal(other[1:], own[1:]) and not torch.equal(other[0], own[0])
    with torch.no_grad():
        run.student.output.weight.mul_(0.1)
    assert run.evaluate()["rate"] < 0.8


def test_training_brings_the_student_nearer_and_goes_on_where_it_stopped(
    made: Set, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(10**6))
    monkeypatch.setattr("models.distill.__main__.time.process_time", lambda: float(next(ticks)))
    assert made.run("--minutes", 0.05) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert made.run("--minutes", 1, "--divergence", "tvd") == 0
    last = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert first["step"] == 3 and last["step"] == 60
    assert last["rate"] > first["rate"] + 0.02
    assert made.run("--dim", 32) == 7
    assert "holds another student" in capsys.readouterr().err
    assert made.run("--out", made.images) != 0
    assert "is a folder, expected a file" in capsys.readouterr().err


def test_a_student_becomes_a_drafter(
    made: Set, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert made.run("--minutes", 0) == 0
    assert "loss" not in json.loads(capsys.readouterr().out)  # no step was made
    out, description = tmp_path / "student-bundle", made.out.with_suffix(".json")
    words = ["--gpt", made.out, "--config", description, "--out", out]
    assert export(["llamagen", *map(str, words)]) == 0
    words = ["--model", made.bundle, "--from", out, "--name", "small"]
    assert export(["draft-model", *map(str, words)]) == 0
    manifest: dict[str, Any] = json.loads((made.bundle / "manifest.json").read_text())
    assert manifest["drafters"]["small"]["kind"] == "model"


def test_a_student_begins_with_the_ends_of_the_target(made: Set) -> None:
    config = student_config(made.model, Size(layers=1))
    begun = new_student(config, made.model)
    assert torch.equal(begun.output.weight, made.network.output.weight)
    assert torch.equal(begun.tok_embeddings.weight, made.network.tok_embeddings.weight)
    other = new_student(student_config(made.model, Size(dim=16, heads=2)), made.model)
    assert other.output.weight.shape == (40, 16)
    assert student_config(made.model, Size(dim=8)).n_head == 1
    with pytest.raises(ExportError, match="3 heads"):
        student_config(made.model, Size(dim=16, heads=3))


def test_divergences() -> None:
    student_distributions, target = torch.randn(2, 3, 7), torch.randn(2, 3, 7)
    p, q = target.softmax(-1), student_distributions.softmax(-1)

    def found(kind: str) -> Tensor:
        return divergence(kind, student_distributions, target)

    torch.testing.assert_close(found("forward-kl"), (p * (p / q).log()).sum(-1).mean())
    torch.testing.assert_close(found("reverse-kl"), (q * (q / p).log()).sum(-1).mean())
    torch.testing.assert_close(found("tvd"), 1 - torch.minimum(p, q).sum(-1).mean())


def test_chains_of_a_student_are_tested_token_by_token() -> None:
    p, q = torch.rand(2, 5, 6).softmax(-1), torch.rand(2, 5, 6).softmax(-1)
    codes = torch.randint(6, (2, 6))
    rates, tests = chain_tests(p, q, codes, 3)
    assert rates.shape == tests.shape == (2, 5, 3)
    for root, step in ((0, 0), (1, 2), (3, 1)):
        row, token = root + step, int(codes[1, root + step + 1])
        expected = min(1.0, float(q[1, row, token] / p[1, row, token]))
        assert float(tests[1, root, step]) == pytest.approx(expected)
        assert float(rates[1, root, step]) == pytest.approx(
            float(torch.minimum(p[1, row], q[1, row]).sum())
        )
    assert rates[:, 4, 1].isnan().all() and (tests[:, 4, 1] == 0).all()
    assert chain_compression(torch.ones_like(tests)) > chain_compression(tests) > 1
