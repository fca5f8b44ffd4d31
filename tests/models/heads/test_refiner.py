"""Refiners of stale drafts: scripted form, files, training on their own windows, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from llamagen_files import GPT_SHAPE

from models import ops
from models.archive import write_archive
from models.eagle.features import load_target, prompt_ids
from models.export.__main__ import main
from models.heads.refine import Refiner, RefinerConfig
from models.heads.refine_module import RefinerModule
from models.heads.train_refiner import check, losses
from models.heads.train_refiner import main as train
from models.heads.windows import Windows

CODES, HIDDEN = GPT_SHAPE.vocab_size, GPT_SHAPE.dim
CAPTION = "a red boat on the sea at dawn"


def random_refiner(config: RefinerConfig) -> Refiner:
    torch.manual_seed(4)
    refiner = Refiner(config).requires_grad_(False)
    for weight in refiner.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return refiner


def attach(bundle: Path, file: Path, *more: str) -> int:
    words = ["--bundle", str(bundle), "--name", "r", "--drafter", str(file), *more]
    return main(["refine", *words])


def test_the_scripted_form_is_the_plain_one(tmp_path: Path) -> None:
    ops.load()
    refiner = random_refiner(RefinerConfig(24, 30, 20, 12))
    write_archive(RefinerModule(refiner), tmp_path / "refiner.pt")
    module = torch.jit.load(tmp_path / "refiner.pt")
    module.prepare(torch.empty(0))
    hidden, stale = torch.randn(4, 3, 24), torch.randint(-1, 30, (4, 3))
    stale[0, 1] = -1
    read, state = refiner.read(hidden, stale), torch.zeros(4, 20)
    torch.testing.assert_close(module.read(hidden, stale), read)
    for position in range(3):
        tokens = torch.randint(30, (4,))
        own = module.step(read[:, position : position + 1], state[:, None], tokens[:, None])
        state = refiner.step(read[:, position], state, tokens)
        torch.testing.assert_close(own[:, 0], state)
        torch.testing.assert_close(module.logits(own)[:, 0], refiner.logits(state))


def test_files_of_the_training_are_attached(bundle: Path, tmp_path: Path) -> None:
    refiner = random_refiner(RefinerConfig(HIDDEN, CODES, 20, 12))
    torch.save({"config": {}, "model": refiner.state_dict()}, tmp_path / "refiner.pt")
    assert attach(bundle, tmp_path / "refiner.pt", "--dtype", "bf16") == 0
    entry = json.loads((bundle / "manifest.json").read_text())["drafters"]["r"]
    assert entry == {"file": "drafter-r.pt", "dtype": "bfloat16", "kind": "refine"}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            RefinerConfig(HIDDEN + 1, CODES, 20),
            f"hidden: got {HIDDEN + 1}, the target has {HIDDEN}",
        ),
        (RefinerConfig(HIDDEN, CODES + 1, 20), f"codes: got {CODES + 1}, the target has {CODES}"),
    ],
)
def test_refiners_of_other_targets_are_refused(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], config: RefinerConfig,
    message: str,
) -> None:  # fmt: skip
    torch.save({"model": random_refiner(config).state_dict()}, tmp_path / "refiner.pt")
    before = (bundle / "manifest.json").read_bytes()
    assert attach(bundle, tmp_path / "refiner.pt") != 0
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert (bundle / "manifest.json").read_bytes() == before


def test_windows_know_what_the_target_says(demo_bundle: Path, build_dir: Path) -> None:
    """Rows of a pass are the target's own of the same tokens, and distributions of known tokens those that were sampled from."""
    torch.manual_seed(3)
    model = load_target(demo_bundle)
    head = check(model)
    windows = Windows(model, head, prompt_ids(model, [CAPTION, "a house"], build_dir), 3)
    refiner = Refiner(RefinerConfig(head.shape[1], len(head), 16, 8)).requires_grad_(False)
    for _ in range(3):
        tokens, seen = windows.newest, windows.seen
        drafts, logits = windows.draft(refiner)
        read, state = refiner.read(seen.hidden, seen.stale), torch.zeros(2, 16)
        for position in range(3):
            state = refiner.step(read[:, position], state, tokens)
            row = seen.hidden[:, position] @ head.T * (seen.stale[:, position] >= 0)[:, None]
            torch.testing.assert_close(logits[:, position], row + refiner.logits(state))
            tokens = drafts[:, position]
            assert (windows.distribution(logits[:, position]).gather(1, tokens[:, None]) > 0).all()
        hidden, before = windows.score(drafts), windows.count.clone()
        windows.accept(drafts, logits, hidden)
        kept = windows.count - before - 1
        stale = windows.seen.stale
        for image, count in enumerate(kept.tolist()):
            left = drafts[image, count:].tolist()
            assert stale[image].tolist() == left + [-1] * count
            for position in range(3):
                row = hidden[image, min(count + 1 + position, 3)]
                assert torch.equal(windows.seen.hidden[image, position], row)


def test_training_raises_the_acceptance(demo_bundle: Path, build_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "captions.txt").write_text(f"{CAPTION}\na house in the fog\n")
    words = ["--bundle", str(demo_bundle), "--captions", str(tmp_path / "captions.txt")]
    words += ["--out", str(tmp_path / "r.pt"), "--slots", "3", "--batch", "8", "--inner", "64"]
    words += ["--build", str(build_dir)]
    steps = []
    for minutes in ("0.01", "0.2"):
        assert train([*words, "--minutes", minutes]) == 0
        steps.append(torch.load(tmp_path / "r.pt", weights_only=True)["step"])
    assert 0 < steps[0] < steps[1]
    model = load_target(demo_bundle)
    head = check(model)
    refiners = [Refiner(RefinerConfig(head.shape[1], len(head), 64)) for _ in range(2)]
    refiners[1].load_state_dict(torch.load(tmp_path / "r.pt", weights_only=True)["model"])
    kept = []
    for refiner in refiners:
        torch.manual_seed(1)
        windows = Windows(model, head, prompt_ids(model, [CAPTION] * 8, build_dir), 3)
        sums = 0.0
        for _ in range(10):
            drafts, logits = windows.draft(refiner.requires_grad_(False))
            hidden = windows.score(drafts)
            sums += float(losses(logits, hidden[:, :-1] @ head.T, windows.live)[1])
            windows.accept(drafts, logits, hidden)
        kept.append(sums / 10)
    assert kept[1] > kept[0] + 0.2


def test_a_file_of_another_refiner_is_not_continued(
    demo_bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.pt"
    torch.save({"config": {"hidden": 1}}, file)
    words = ["--bundle", str(demo_bundle), "--captions", "demo", "--out", str(file)]
    assert train([*words, "--minutes", "0.01"]) == 7
    assert "holds other heads" in capsys.readouterr().err


def test_rows_that_end_are_refused(demo_bundle: Path) -> None:
    model = load_target(demo_bundle)
    model.grid = {**model.grid, "row_end": [3]}
    with pytest.raises(Exception, match="rows of its images end with a token"):
        check(model)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--slots", "63"], 2, "--slots: got 63, expected 1 to 62"),
        (["--batch", "0"], 2, "--batch: got 0"),
        (["--captions", "empty.txt"], 4, "empty.txt: got no captions"),
        (["--bundle", "models/mar/demo/bundle"], 4, "got continuous tokens, expected codes"),
    ],
)
def test_trainings_that_cannot_begin(
    demo_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], words: list[str], code: int, message: str,
) -> None:  # fmt: skip
    root = demo_bundle.parents[2]
    words = [str(root / word) if "/" in word else word for word in words]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text("\n")
    given = ["--bundle", str(demo_bundle), "--captions", "demo", "--out", "r.pt"]
    assert train([*given, *words]) == code
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
