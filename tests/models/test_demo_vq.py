"""The demo's codes and the training of its image decoder, on a handful of pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from models.demo.training import data, patch_codes, vq_train
from models.demo.training.vq_decoder import DecoderTraining
from models.demo.training.vq_model import load_tokenizer, to_rgb
from models.llamagen.config import VQConfig
from models.llamagen.vq import VQModel

PICTURES = 100


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("work")
    with pytest.MonkeyPatch.context() as patch:
        for module in (data, patch_codes, vq_train):
            patch.setattr(module, "SHARD", PICTURES)
        patch.setattr(patch_codes, "PICTURES", PICTURES)
        data.render_all(folder, shards=1)
        patch_codes.fit_codes(folder)
        data.tokenise_all(folder)
    return folder


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (data, patch_codes, vq_train):
        monkeypatch.setattr(module, "SHARD", PICTURES)


def test_codes_are_nearest_centres_in_reading_order(work: Path) -> None:
    model = load_tokenizer(work / "vq-codes.pt")
    image = np.load(data.shard_path(work, "images", 0))[3]
    codes = np.load(data.shard_path(work, "tokens", 0))[3].reshape(2, 16, 16)
    for row, column in ((0, 0), (5, 2), (15, 9)):
        patch = image[row * 8 : row * 8 + 8, column * 8 : column * 8 + 8] / 127.5 - 1
        feature = patch.transpose(2, 0, 1).reshape(-1) @ model.projection.double().numpy()
        distance = np.square(model.centres.double().numpy() - feature).sum(1)
        assert distance[codes[0, row, column]] <= distance.min() + 1e-3
    mirrored = model.encode(to_rgb(torch.from_numpy(image[None, :, ::-1].copy())))
    assert np.array_equal(codes[1], mirrored[0].numpy())


def test_codes_differ_between_patches(work: Path) -> None:
    tokens = np.load(data.shard_path(work, "tokens", 0))
    assert len(np.unique(tokens)) > 900
    assert all(len(np.unique(picture)) > 20 for picture in tokens[:, 0])


def test_decoder_learns_and_continues_from_its_checkpoint(work: Path) -> None:
    training = DecoderTraining(work, seed=1)
    batches = vq_train.Batches(work, seed=1)
    vq_train.set_rates(training.optims, 1.0)
    rgb, weight = batches.draw(2)
    losses = [training.update(rgb, weight, gan=False)[0] for _ in range(6)]
    assert losses[-1] < 0.8 * losses[0]
    before = [p.clone() for p in training.judge.parameters()]
    _, judged = training.update(rgb, weight, gan=True)
    assert judged > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, training.judge.parameters()))
    training.save(spent=12.5)

    resumed = DecoderTraining(work, seed=1)
    assert (resumed.step, resumed.spent) == (7, 12.5)
    for (name, a), (_, b) in zip(training.named, resumed.named):
        assert torch.equal(a, b), name

    saved = torch.load(work / "vq.pt", weights_only=True)
    official = VQModel(VQConfig(**saved["config"]), encoder=False)
    official.load_state_dict(saved["model"])
    assert all(v.dtype == torch.float16 for v in saved["model"].values())
    codes = training.mean.encode(rgb)
    expected = training.mean.vq.decode_code(codes)
    assert torch.allclose(official.float().decode_code(codes), expected, atol=0.05)
