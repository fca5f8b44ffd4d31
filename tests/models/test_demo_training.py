"""The demo model's training: tokenizer, data feeding, learning, resuming, judging, exporting."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from models.demo import evaluate, export
from models.demo.render.captions import caption
from models.demo.render.scene import Scene, sample_scene
from models.demo.render.vocabulary import ATTRIBUTES, COLOURS, SIDES, SUBJECTS, known
from models.demo.training import ar_train, model
from models.demo.training.ar_train import Options, Trainee, Trainer
from models.demo.training.classifier import FEATURES, JUDGED, SceneClassifier, disturb, judge
from models.demo.training.data import SHARD, held_out, load_tokens, scene_of, shard_path
from models.demo.training.feeder import Batch, Feeder, make_batch
from models.demo.training.model import DemoModel
from models.demo.training.text import (
    EOS,
    PREFIX,
    SHARED,
    UNK,
    CaptionReader,
    facts,
    perturb,
    pretrain_text,
)
from models.demo.training.vq_model import DemoTokenizer, save_tokenizer
from models.llamagen.config import GPTConfig

SMALL = GPTConfig(
    dim=48,
    n_layer=4,
    n_head=2,
    ffn_dim=64,
    vocab_size=1024,
    grid=16,
    cls_token_num=PREFIX,
    caption_dim=128,
    prefix_rotation="identity",
)


def add_shard(work: Path, shard: int) -> None:
    """A shard whose tokens tell their seed: the first code of picture i is i % 1000."""
    rng = np.random.default_rng(shard)
    tokens = rng.integers(1024, size=(SHARD, 2, 256)).astype(np.uint16)
    tokens[:, :, 0] = np.arange(SHARD)[:, None] % 1000
    scenes = [scene_of(shard * SHARD + i) for i in range(SHARD)]
    np.savez(
        shard_path(work, shard),
        attributes=np.stack([s.indices() for s in scenes]),
        cells=rng.random((SHARD, 256)) < 0.2,
        tokens=tokens,
    )


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with one shard, a tokenizer and a text encoder of one step."""
    torch.set_num_threads(1)
    work = tmp_path_factory.mktemp("demo")
    pretrain_text(work, SMALL.dim, minutes=0)
    add_shard(work, 0)
    save_tokenizer(DemoTokenizer(), work / "codes.pt")
    return work


@pytest.fixture()
def work(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder, with the small model in place of the real one."""
    monkeypatch.setattr(model, "gpt_config", lambda: replace(SMALL))
    return Path(shutil.copytree(prepared, tmp_path / "work"))


def test_tokenizer_keeps_caption_words_whole(prepared: Path) -> None:
    reader, rng = CaptionReader(prepared / "text.model"), np.random.default_rng(1)
    captions = [caption(sample_scene(rng), rng) for _ in range(2000)]
    ids, mask = reader.encode(captions)
    assert ids.shape == mask.shape == (2000, PREFIX)
    assert not (ids == UNK).any()
    lengths = mask.sum(1)
    assert (ids.gather(1, lengths[:, None] - 1) == EOS).all()
    words = torch.tensor([len(text.replace(",", " ,").split()) + 1 for text in captions])
    assert (lengths == words.clamp(max=PREFIX)).float().mean() > 0.95
    assert (words <= PREFIX).float().mean() > 0.99


def test_unknown_words_become_letters(prepared: Path) -> None:
    reader = CaptionReader(prepared / "text.model")
    pieces = reader.pieces.encode("a zyxwvut house", out_type=str)
    assert pieces[0] == "\u2581a" and pieces[-1] == "\u2581house"
    assert "".join(pieces[1:-1]).strip("\u2581") == "zyxwvut"


def test_perturbed_captions_keep_their_words() -> None:
    rng = np.random.default_rng(2)
    changed = [perturb("a red tent", rng) for _ in range(500)]
    for text in changed:
        assert [w for w in text.rstrip(".").split() if w in ("a", "red", "tent")] == [
            "a",
            "red",
            "tent",
        ]
    assert 20 < sum(text.rstrip(".") != "a red tent" for text in changed) < 100


def test_processes_share_the_training_scenes(work: Path) -> None:
    options = Options(batch=40, processes=2, pairs=1)
    seen: list[set[int]] = []
    for rank in (0, 1):
        feeder, firsts = Feeder(work, rank, 0, options), []
        for _ in range(len(feeder.rows) // 40):
            firsts += feeder.next().tokens[:, 0].tolist()
        assert sorted(firsts) == sorted(feeder.data.tokens[feeder.rows, 0].tolist())
        assert not held_out(feeder.data.seeds[feeder.rows]).any()
        seen.append(set(feeder.rows.tolist()))
    assert not seen[0] & seen[1]
    data = load_tokens(work)
    assert len(seen[0] | seen[1]) == (~held_out(data.seeds)).sum()


def test_new_shards_join_the_pass_that_runs(work: Path) -> None:
    options = Options(batch=500, processes=1, pairs=1)
    feeder = Feeder(work, 0, 0, options)
    before = len(feeder.rows)
    feeder.next()
    add_shard(work, 1)
    feeder.refresh()
    assert len(feeder.rows) == 2 * before
    assert len(feeder.queue) == 2 * before - 500
    assert len(set(feeder.queue.tolist())) == len(feeder.queue)


def test_noise_changes_inputs_only(work: Path) -> None:
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    rows = np.array([3, SHARD + 3])
    batch = make_batch(data, rows, reader, np.random.default_rng(0), null=1.0, noise=0.5)
    assert (batch.tokens.numpy() == data.tokens[rows]).all()
    share = (batch.inputs != batch.tokens).float().mean()
    assert 0.4 < share < 0.6
    assert batch.drop.all()
    sides = batch.facts[:, len(SHARED) + 1 :: 2]  # of the picture and of its mirror image
    assert (sides[0] > 0).any() and (sides.sum(0) == 4 * (sides[0] > 0)).all()


def test_facts_tell_whose_colour_and_side_is_which() -> None:
    scenes = [
        Scene("lighthouse", "white", "dusk", "sea", "none", "left", "fair", "sailboat", "red"),
        Scene("tent", "blue", "night", "snow", "forest", "centre"),
    ]
    rows = facts(np.stack([scene.indices() for scene in scenes]))[:, len(SHARED) :].reshape(
        2, -1, 2
    )
    colours, sides = (list(values) for values in (COLOURS, SIDES))
    expected = np.zeros_like(rows)
    expected[0, SUBJECTS.index("lighthouse")] = 1 + colours.index("white"), 1 + sides.index("left")
    expected[0, SUBJECTS.index("sailboat")] = 1 + colours.index("red"), 1 + sides.index("right")
    expected[1, SUBJECTS.index("tent")] = 1 + colours.index("blue"), 1 + sides.index("centre")
    assert (rows == expected).all()


def test_nouns_know_their_own_colour(work: Path) -> None:
    reader = CaptionReader(work / "text.model")
    scene = Scene("balloon", "green", "day", "sea", "none", "left", "fair", "sailboat", "red")
    labels = torch.from_numpy(facts(scene.indices()[None]))
    ids, _ = reader.encode(["a red sail boat and a green hot air balloon over the sea"])
    rows, positions, kinds = reader.subjects(ids, labels)
    found = [reader.pieces.id_to_piece(int(ids[0, p])) for p in positions]
    assert rows.tolist() == [0, 0] and found == ["\u2581boat", "\u2581balloon"]
    expected = [("sailboat", "red"), ("balloon", "green")]
    named = [divmod(int(kind), len(COLOURS)) for kind in kinds]
    assert [(SUBJECTS[k], COLOURS[c]) for k, c in named] == expected


def test_a_batch_is_learnt_with_the_caption(work: Path) -> None:
    torch.manual_seed(0)
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    batch: Batch = make_batch(data, np.arange(1, 5), reader, np.random.default_rng(0))
    trainee = Trainee(DemoModel(len(reader.pieces)))
    optimizer = torch.optim.AdamW(trainee.parameters(), 3e-3)
    losses = []
    for _ in range(60):
        loss, extra, _ = trainee(batch)
        (loss.mean() + extra).backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append((loss.mean().item(), extra.item()))
    assert losses[0][0] == pytest.approx(np.log(1024), abs=1e-3)
    assert losses[-1][0] < 0.75 * losses[0][0]
    assert losses[-1][1] < 0.5 * losses[0][1]
    features, _ = trainee.model.condition(batch.ids, batch.mask)
    null = trainee.model.gpt.embed_condition(features, torch.tensor([False, True, True, True]))
    assert not torch.allclose(null[0], null[1])
    assert torch.equal(null[1], null[2])


def test_pictures_of_two_subjects_learn_whose_colour_is_whose(work: Path) -> None:
    torch.manual_seed(0)
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    scenes = [Scene.from_indices(a) for a in data.attributes]
    told = np.array([s.pair and s.colour != s.second_colour for s in scenes])
    rows = np.concatenate([np.flatnonzero(told)[:3], np.flatnonzero(~told)[:2]])
    batch = make_batch(data, rows, reader, np.random.default_rng(0))
    assert batch.pairs.tolist() == [0, 1, 2] and len(batch.wrong_ids) == 3
    for right, wrong in zip(batch.ids, batch.wrong_ids):
        assert not torch.equal(right, wrong)
    assert not len(make_batch(data, rows[3:], reader, np.random.default_rng(0)).pairs)
    trainee = Trainee(DemoModel(len(reader.pieces)))
    optimizer = torch.optim.AdamW(trainee.parameters(), 3e-3)
    losses = []
    for _ in range(60):
        losses.append(trainee(batch)[2])
        losses[-1].backward()
        optimizer.step()
        optimizer.zero_grad()
    assert losses[0].item() == pytest.approx(3 / 5 * np.log(2), abs=0.05)
    assert losses[-1].item() < 0.2 * losses[0].item()


def test_captions_of_equal_seeds_differ_in_what_the_scenes_differ_in(prepared: Path) -> None:
    reader = CaptionReader(prepared / "text.model")
    scene = Scene("tent", "pink", "day", "meadow", "none", "left", "fair", "tree", "white")
    other = replace(scene, colour="white", second_colour="pink")
    ids, _ = reader.phrase([scene, other], np.array([7, 7]))
    words = [sorted(reader.pieces.decode(row.tolist()).split()) for row in ids]
    assert words[0] == words[1] and not torch.equal(ids[0], ids[1])


def test_a_stopped_run_continues(work: Path) -> None:
    options = Options(minutes=0.02, processes=1, batch=2, average=0.5)
    first = Trainer(work, options, 0)
    start = {k: v.clone() for k, v in first.trainee.state_dict().items()}
    first.run()
    assert first.step > 0
    assert any(not torch.equal(v, start[k]) for k, v in first.trainee.state_dict().items())
    second = Trainer(work, replace(options, minutes=0.04), 0)
    assert second.step == first.step and second.spent == first.spent
    for name, value in first.average.state_dict().items():
        assert torch.equal(value, second.average.state_dict()[name])
    for name, value in first.trainee.state_dict().items():
        assert torch.equal(value, second.trainee.state_dict()[name])
    second.run()
    assert second.step > first.step


def test_two_processes_keep_one_model(prepared: Path, tmp_path: Path) -> None:
    work = Path(shutil.copytree(prepared, tmp_path / "work"))
    (work / "text-state.pt").unlink()
    pretrain_text(work, model.gpt_config().dim, minutes=0)
    before = dict(os.environ)
    ar_train.train_ar(work, Options(minutes=0.02, processes=2, batch=1))
    assert dict(os.environ) == before  # what suits training is nothing for other processes
    saved = torch.load(work / "ar.pt", weights_only=True)
    assert saved["step"] > 0
    gaps = model.caption_gaps(model.load_average(work), work, 4)
    assert set(gaps) == {"held-out", "null", *ATTRIBUTES}
    assert 4 < gaps["held-out"] < 9


def test_classifier_judges_every_attribute() -> None:
    torch.manual_seed(0)
    images = np.random.default_rng(0).integers(256, size=(3, 256, 256, 3)).astype(np.uint8)
    answers, features = judge(SceneClassifier().eval(), images)
    assert answers.shape == (3, len(JUDGED)) and features.shape == (3, FEATURES)
    for column, name in enumerate(JUDGED):
        assert (answers[:, column] < len(ATTRIBUTES[name])).all()
    rgb = torch.zeros(2, 3, 256, 256)
    assert disturb(rgb, np.random.default_rng(0)).shape == rgb.shape


def test_shares_count_the_captions_that_name_an_attribute() -> None:
    said = np.zeros((4, 8), bool)
    said[:2, 0] = said[:, 1] = True
    right = np.zeros((2, 4, 8), bool)
    right[:, 0, 0] = right[0, 1, 0] = right[:, 2:, 0] = True
    right[:, :, 1] = True
    table = evaluate.shares(right, said)
    assert set(table) == {"subject", "colour"}
    assert table["subject"] == {"share": 0.75, "standard error": 0.25, "pictures": 4}
    assert table["colour"] == {"share": 1.0, "standard error": 0.0, "pictures": 8}


def test_figures_of_several_drawings_have_a_standard_error() -> None:
    assert evaluate.spread([4.0]) == {"mean": 4.0}
    assert evaluate.spread([1.0, 2.0, 3.0, 2.0]) == {
        "mean": 2.0, "standard error": 0.408, "drawings": [1.0, 2.0, 3.0, 2.0],
    }  # fmt: skip


def test_named_attributes_are_those_the_caption_says() -> None:
    scene = Scene("tent", "purple", "dusk", "meadow", "none", "left", "rain", "tree", "red")
    said = dict(zip(JUDGED, evaluate.named(scene, "a tree and a violet tent on grass, sunset")))
    assert [name for name, value in said.items() if value] == [
        "subject",
        "colour",
        "time",
        "second",
    ]
    assert evaluate.named(scene, "a camping tent") == [True] + [False] * 7
    rng = np.random.default_rng(0)
    drawn = [sample_scene(rng) for _ in range(500)]
    said = np.array([evaluate.named(s, caption(s, rng)) for s in drawn])
    assert said[:, 0].all() and (said.mean(0)[:4] > 0.9).all()


def test_exported_bundle_names_its_parts(work: Path, tmp_path: Path) -> None:
    trainer = Trainer(work, Options(processes=1, batch=1), 0)
    trainer._save()
    export.export_bundle(work, tmp_path / "bundle")
    manifest = json.loads((tmp_path / "bundle" / "manifest.json").read_text())
    assert set(manifest["modules"]) == {"target", "text_encoder", "image_decoder"}
    assert manifest["tokenizer"]["cleaning"] == "lower"
    assert manifest["prompt"] == {
        "kind": "text_features", "length": PREFIX, "align": "end", "features": 128,
        "vocabulary": known(),
    }  # fmt: skip
    assert manifest["grids"][0]["width"] == 256
    assert manifest["sampling"]["cfg_scale"] == export.SAMPLING["cfg_scale"]
