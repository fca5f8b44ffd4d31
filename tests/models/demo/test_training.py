"""The demo model's training: data feeding, learning, resuming, exporting."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from demo_files import add_shard

from models.demo import export
from models.demo.render.scene import Scene
from models.demo.render.vocabulary import ATTRIBUTES, known
from models.demo.training import ar_train, model
from models.demo.training.ar_train import Options, Trainee, Trainer
from models.demo.training.data import SHARD, held_out, load_tokens
from models.demo.training.feeder import Batch, Feeder, make_batch
from models.demo.training.model import DemoModel
from models.demo.training.text import PREFIX, SHARED, CaptionReader, pretrain_text


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
    sides = batch.facts[:, len(SHARED) + 1 :: 2]  # of the image and of its mirror image
    assert (sides[0] > 0).any() and (sides.sum(0) == 4 * (sides[0] > 0)).all()


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


def test_images_of_two_subjects_learn_whose_colour_is_whose(work: Path) -> None:
    torch.manual_seed(0)
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    scenes = [Scene.from_indices(a) for a in data.attributes]
    named = np.array([s.pair and s.colour != s.second_colour for s in scenes])
    rows = np.concatenate([np.flatnonzero(named)[:3], np.flatnonzero(~named)[:2]])
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
