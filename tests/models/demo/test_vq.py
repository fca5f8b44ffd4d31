"""The demo's codes and the training of its image decoder, on a handful of images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from models.demo.training import vq_codes, vq_train
from models.demo.training.vq_codes import Codes, CodeTraining, spherical_k_means
from models.demo.training.vq_decoder import DecoderTraining
from models.demo.training.vq_model import DemoTokenizer, load_tokenizer, save_tokenizer, to_rgb
from models.llamagen.config import VQConfig
from models.llamagen.vq import VQModel
from models.precision import mixed


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    torch.set_num_threads(1)
    return next(vq_train.fresh_batches(seed=1, workers=0))


def test_batches_are_renderings_with_weights(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    rgb, weight = batch
    assert rgb.shape == (4, 3, 256, 256) and weight.shape == (4, 1, 256, 256)
    assert -1 <= rgb.min() < -0.5 and 0.5 < rgb.max() <= 1
    assert weight.min() == 1 and 2 <= weight.max() <= 2 * vq_train.NIGHT_WEIGHT + 1e-5
    again = next(vq_train.fresh_batches(seed=1, workers=0))
    assert torch.equal(rgb, again[0]) and torch.equal(weight, again[1])
    assert not torch.equal(rgb, next(vq_train.fresh_batches(seed=2, workers=0))[0])


def test_k_means_finds_directions() -> None:
    torch.manual_seed(0)
    truth = F.normalize(torch.randn(12, 8), dim=1)
    x = F.normalize(truth.repeat(50, 1) + 0.02 * torch.randn(600, 8), dim=1)
    centres, number = spherical_k_means(x, 24)
    assert torch.allclose(centres.norm(dim=1), torch.ones(24), atol=1e-5)
    assert number.sum() == 600
    assert (x @ centres.T).amax(1).mean() > 0.97


def test_unused_codes_move_to_what_is_far_from_its_code() -> None:
    torch.manual_seed(0)
    near = F.normalize(torch.tensor([[1.0, 0, 0, 0, 0, 0, 0, 0]]), dim=1)
    codes = Codes(near.repeat(40, 1) + 0.001 * torch.randn(40, 8), 8)
    codes.table[4:] = -near  # used by nothing
    codes.sums[4:], codes.count[4:] = -near * 0.001, 0.001
    far = torch.tensor([0.0, 1, 0, 0, 0, 0, 0, 0])
    unit = torch.cat([near.repeat(30, 1), far.repeat(2, 1)]).T.reshape(1, 8, 4, 8)
    picked, _ = codes.nearest(unit)
    codes.follow(unit, picked, revive=True)
    assert (codes.table @ far).max() > 0.9


def test_codes_are_learnt_and_continue_from_their_checkpoint(
    tmp_path: Path, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    training = CodeTraining(tmp_path, seed=1)
    vq_train.set_rates(training.optims, 1.0)
    losses = [training.update(*batch, 0.0) for _ in range(8)]
    assert losses[-1] < 0.8 * losses[0]
    assert training.codes is None and len(training.pool) == 8
    training.update(*batch, 0.5)
    assert training.codes is not None and not training.pool
    before = training.codes.table.clone()
    training.update(*batch, 0.5)
    assert not torch.equal(before, training.codes.table)
    before = training.codes.table.clone()
    training.update(*batch, 0.95)
    assert torch.equal(before, training.codes.table)
    training.save(spent=9.0)
    resumed = CodeTraining(tmp_path, seed=1)
    assert (resumed.step, resumed.spent) == (11, 9.0)
    assert torch.equal(resumed.codes.table, training.codes.table)
    tokenizer = resumed.result()
    used, perplexity = vq_codes.use(tokenizer, batch[0])
    assert 1 < perplexity <= used <= 1024


def test_a_tokenizer_encodes_to_the_nearest_code(
    tmp_path: Path, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    torch.manual_seed(0)
    save_tokenizer(DemoTokenizer(), tmp_path / "codes.pt")
    model = load_tokenizer(tmp_path / "codes.pt")
    codes = model.encode(batch[0])
    assert codes.shape == (4, 16, 16) and codes.dtype == torch.int64
    with mixed("cpu"), torch.no_grad():
        z = F.normalize(model.encoder(batch[0]).float(), dim=1)
    table = F.normalize(model.vq.quantize.embedding.weight, dim=1)
    similar = torch.einsum("bdhw,kd->bhwk", z, table)
    chosen = similar.gather(-1, codes[..., None])[..., 0]
    assert torch.allclose(chosen, similar.amax(-1), atol=1e-5)


def test_decoder_learns_trunk_first_and_continues_from_its_checkpoint(
    tmp_path: Path, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    torch.manual_seed(0)
    save_tokenizer(DemoTokenizer(), tmp_path / "codes.pt")
    training = DecoderTraining(tmp_path, seed=1)
    vq_train.set_rates(training.optims, 1.0)
    rgb, weight = batch[0][:2], batch[1][:2]
    top = training.model.vq.decoder.conv_out.weight
    before = top.clone()
    losses = [training.update(rgb, weight, whole=False) for _ in range(4)]
    assert losses[-1] < losses[0] and torch.equal(top, before)
    assert training.reconstruct(rgb).shape == rgb.shape
    losses = [training.update(rgb, weight, whole=True) for _ in range(4)]
    assert losses[-1] < losses[0] and not torch.equal(top, before)
    training.save(spent=12.5)

    resumed = DecoderTraining(tmp_path, seed=1)
    assert (resumed.step, resumed.whole, resumed.spent) == (8, 4, 12.5)
    for (name, a), (_, b) in zip(training.named, resumed.named):
        assert torch.equal(a, b), name

    saved = torch.load(tmp_path / "vq.pt", weights_only=True)
    official = VQModel(VQConfig(**saved["config"]), encoder=False)
    official.load_state_dict(saved["model"])
    assert all(v.dtype == torch.float16 for v in saved["model"].values())
    codes = training.mean.encode(rgb)
    expected = training.mean.vq.decode_code(codes)
    assert torch.allclose(official.float().decode_code(codes), expected, atol=0.05)


def test_the_clock_counts_processor_time() -> None:
    clock = vq_train.Clock(budget=100.0, spent=50.0)
    assert 0.5 <= clock.progress < 0.6
    while clock.spent < 50.05:
        np.linalg.svd(np.ones((50, 50)))
    assert not clock.due()


def test_rates_warm_up_hold_and_fall() -> None:
    assert vq_train.rate(0.0, 0) < 0.05
    assert vq_train.rate(0.3, 1000) == 1
    assert vq_train.rate(0.99, 5000) < 0.05


def test_rgb_is_between_minus_one_and_one() -> None:
    rgb = to_rgb(torch.tensor([[[[0, 255, 128]]]], dtype=torch.uint8))
    assert torch.allclose(rgb[0, :, 0, 0], torch.tensor([-1.0, 1.0, 0.0]), atol=0.01)
