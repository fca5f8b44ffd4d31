"""Training of EAGLE drafters: data, learning, resuming, refusals."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import save_file
from toy_target import CONFIG, toy_images, toy_model

from models.eagle import data, train
from models.eagle.batch import make_batch
from models.eagle.drafter import Drafter
from models.eagle.features import load_target
from models.eagle.losses import guided_logits
from models.eagle.recipes import RECIPES
from models.eagle.train import Trainer, evaluate, new_drafter
from models.export.checkpoint import ExportError


@pytest.fixture
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every training step takes 50 ms, so that the number of steps does not depend on the machine."""
    ticks = count()
    monkeypatch.setattr("models.eagle.train.time.process_time", lambda: 0.05 * next(ticks))


@pytest.fixture
def toy_data(tmp_path: Path) -> Path:
    for shard in range(2):
        save_file(toy_images(24, shard), data.shard_path(tmp_path, "features", shard))
    return tmp_path


def test_phases_follow_one_another() -> None:
    options = RECIPES["multi-step"]
    assert [options.phase(share).steps for share in (0.0, 0.49, 0.5, 0.99, 1.0)] == [1, 1, 4, 4, 4]


@pytest.mark.usefixtures("steady_clock")
@pytest.mark.parametrize("recipe", RECIPES)
def test_training_learns_the_toy_target(recipe: str, toy_data: Path, tmp_path: Path) -> None:
    """The toy target's distribution follows from the last token alone, so that drafts can be nearly perfect."""
    options = replace(RECIPES[recipe], batch=8, warm_up=5, minutes=0.05)
    images = data.Images(toy_data, CONFIG, held_out=8)
    start = new_drafter(recipe, toy_model(), CONFIG, images)  # type: ignore[arg-type]
    trainer = Trainer(toy_model(), start, options, tmp_path / "drafter.pt")  # type: ignore[arg-type]
    before = evaluate(trainer.drafter, trainer.model, images, steps=2)
    trainer.run(images)
    after = trainer.reports[-1]
    assert after["rates"][0] > before["rates"][0] + 0.2
    assert after["chains"][2] > before["chains"][2]
    saved = torch.load(tmp_path / "drafter.pt", weights_only=True)
    drafter = new_drafter(recipe, toy_model(), CONFIG, images)  # type: ignore[arg-type]
    drafter.load_state_dict(saved["model"])
    frozen = torch.equal(drafter.embed_tokens.weight, toy_model().embedding)
    assert frozen == (recipe in ("published", "hass"))


@pytest.mark.parametrize(
    ("target", "heads"),
    [
        ((5120, 128, 8), (40, 8)),  # Emu3.5: 64 heads
        ((1280, 64, 20), (20, 20)),
        ((40, 20, 4), (2, 2)),  # more key heads than heads fit
        ((36, 8, 3), (3, 3)),  # 4 heads of 8 do not fill the width
        ((48, 8, 4), (6, 3)),
        ((32, 64, 2), (1, 1)),
    ],
)
def test_heads_fit_every_target(target: tuple[int, int, int], heads: tuple[int, int]) -> None:
    """Also those whose heads together are not as wide as the target."""
    assert train.heads_of(*target) == heads
    replace(CONFIG, hidden=target[0], heads=heads[0], kv_heads=heads[1], rotary="line")


@pytest.mark.usefixtures("steady_clock")
def test_stopped_training_continues(toy_data: Path, tmp_path: Path) -> None:
    file = tmp_path / "drafter.pt"
    options = replace(RECIPES["guided"], minutes=0.01, batch=8)
    images = data.Images(toy_data, CONFIG, held_out=8)
    first = Trainer(toy_model(), Drafter(CONFIG), options, file)  # type: ignore[arg-type]
    first.run(images)
    longer = replace(options, minutes=0.02)
    second = Trainer(toy_model(), Drafter(CONFIG), longer, file)  # type: ignore[arg-type]
    assert second.step == first.step > 0 and second.seconds == first.seconds
    for one, two in zip(first.drafter.parameters(), second.drafter.parameters()):
        assert torch.equal(one, two)
    second.run(images)
    assert second.step > first.step and len(second.reports) == len(first.reports) + 1
    wider = replace(CONFIG, ffn=40)
    with pytest.raises(ExportError, match="another drafter"):
        Trainer(toy_model(), Drafter(wider), options, file)  # type: ignore[arg-type]


def test_held_out_images_are_not_trained_on(toy_data: Path) -> None:
    images = data.Images(toy_data, CONFIG, held_out=8)
    assert len(images) == 40
    held = {tuple(row[0].tolist()) for b in images.held_out_batches() for row in b.features[::2]}
    batches = images.batches(8, torch.Generator().manual_seed(0))
    seen = [tuple(row[0].tolist()) for _ in range(5) for row in next(batches).features[::2]]
    first = [tuple(x) for s in images.shards for x in s["features"][:, 0, 0].tolist()]
    assert len(set(first)) == len(first)
    assert held == set(first[:8]) and sorted(seen) == sorted(first[8:])


def test_fewer_images_than_a_batch_are_one(toy_data: Path) -> None:
    images = data.Images(toy_data, CONFIG, held_out=8)
    rows = next(images.rows(len(images) + 1, torch.Generator().manual_seed(1)))
    assert len(rows) == len(set(rows)) == len(images)


def test_data_of_the_demo_bundle(
    tmp_path: Path, demo_bundle: Path, build_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens that the engine generated are as probable under the stored features as its distribution says."""
    monkeypatch.setattr("sys.argv", ["data", "--bundle", str(demo_bundle), "--captions", "demo",
        "--out", str(tmp_path), "--images", "4", "--build", str(build_dir)])  # fmt: skip
    threads = torch.get_num_threads()
    assert data.main() == 0
    torch.set_num_threads(threads)
    (shard,) = data.load_shards(tmp_path)
    model = load_target(demo_bundle)
    batch = make_batch(
        shard["features"].float(), shard["codes"], shard["valid"], model.prompt_length, 0
    )
    log_p = guided_logits(batch.targets(1), model.head, 2, model.guidance).log_softmax(-1)
    surprise = -log_p.gather(-1, batch.tokens(1)[..., None]).mean()
    entropy = -(log_p.exp() * log_p).sum(-1).mean()
    assert float(surprise) == pytest.approx(float(entropy), abs=0.25)
    shifted = -log_p.gather(-1, batch.ids[::2, model.prompt_length - 1 : -1, None]).mean()
    assert float(shifted) > float(entropy) + 1
    lines = (tmp_path / "captions.txt").read_text().splitlines()
    assert len(lines) == 4 and len(json.loads((tmp_path / "codes-00000.json").read_text()))
    with pytest.raises(ExportError, match="other captions"):
        other = tmp_path / "other.txt"
        other.write_text("a red tent\n")
        data.prepare_captions(tmp_path, str(other), 1)


@pytest.mark.parametrize(
    ("command", "changed", "code", "message"),
    [
        (data, {"bundle": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/manifest.json: no such file"),
        (data, {"captions": "{tmp}/nosuch"}, 4, "{tmp}/nosuch: No such file or directory"),
        (data, {"size": "8x8"}, 2, "got size 8x8, expected one of 256x256"),
        (data, {"build": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/lamplighter: No such file or directory"),
        (train, {"bundle": "{tmp}/nosuch"}, 4, "{tmp}/nosuch/manifest.json: no such file"),
        (train, {"data": "{tmp}/nosuch"}, 4, "{tmp}/nosuch: got no features, expected the files of"),
        (train, {"held-out": "24"}, 2, "--held-out: got 24 images, expected fewer than the 24"),
        (train, {"out": "{tmp}/other.pt"}, 7, "{tmp}/other.pt: holds another drafter"),
    ],
)  # fmt: skip
def test_refused(
    command: ModuleType, changed: dict[str, str], code: int, message: str, toy_data: Path,
    demo_bundle: Path, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """One line of error, and no traceback."""
    torch.save({"model": {}}, toy_data / "other.pt")
    (toy_data / "lines").write_text("a red tent\n")
    options = {"bundle": str(demo_bundle), "out": "{tmp}/out"}
    options |= (
        {"captions": "{tmp}/lines"} if command is data else {"data": "{tmp}", "held-out": "8"}
    )
    words = [word for key, value in (options | changed).items() for word in (f"--{key}", value)]
    threads = torch.get_num_threads()
    assert command.main([word.replace("{tmp}", str(toy_data)) for word in words]) == code
    torch.set_num_threads(threads)
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    assert message.replace("{tmp}", str(toy_data)) in text
    if "bundle" in changed or "out" in changed:
        assert not (toy_data / "out").exists()
