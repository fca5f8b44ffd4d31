"""The demo pair of continuous tokens: chains and losses of the training, classes, and what a stage leaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from continuous_rule import Gaussian
from continuous_rule import log_ratio as plain_log_ratio
from mar_files import SHAPE, normal, random_model
from torch import Tensor, nn

from models import ops
from models.demo.export import BUNDLE
from models.mar.chain import Chain
from models.mar.demo import autoencoder, drafter, evaluate, target
from models.mar.demo.stage import Options, Stage
from models.mar.demo.world import CLASSES, Latents, class_name, class_of, scene_of, write_shard
from models.mar.diffusion import schedule
from models.mar.kl import LATENT_SCALE, AutoencoderKL
from models.mar.losses import chain_loss, diffusion_loss, gaussian_divergence, log_ratio
from models.mar.target_module import TargetModule


@torch.inference_mode()
def test_chain_is_the_module() -> None:
    ops.load()
    model, tables = random_model(SHAPE), schedule("7")
    z, start, noise = normal(3, 32), normal(3, 4, seed=1), normal(3, 7, 4, seed=2)
    steps = Chain(tables).run(model.diffloss.net, z, start, noise, 0.9)
    module = TargetModule(model, tables)
    module.prepare(torch.empty(0))
    ones = torch.ones(3)
    mean, deviation, sums = module.denoise(z, z[:0], ones, start, noise, 0.9 * ones)
    torch.testing.assert_close(steps.means[0], mean, atol=1e-3, rtol=1e-4)
    torch.testing.assert_close(0.9 * steps.log_deviations[0].exp(), deviation)
    torch.testing.assert_close(steps.log_deviations[1:].double().sum(0), sums, atol=1e-4, rtol=1e-5)
    assert torch.equal(steps.inputs[-1], start)


def test_divergence_and_ratio() -> None:
    p, q = (torch.distributions.Normal(normal(5, 4, seed=s), normal(5, 4, seed=s + 1).exp())
            for s in (1, 3))  # fmt: skip
    arguments = (p.mean, p.stddev.log(), q.mean, q.stddev.log())
    expected = torch.distributions.kl_divergence(p, q)
    torch.testing.assert_close(gaussian_divergence(*arguments), expected)
    noise = normal(5, 4, seed=7)
    x = q.mean + q.stddev * noise
    got = log_ratio(*arguments, noise)
    exact = plain_log_ratio(x, Gaussian(p.mean, p.stddev), Gaussian(q.mean, q.stddev))
    torch.testing.assert_close(got, exact, atol=1e-3, rtol=1e-4)


def test_a_drafter_that_is_the_target_has_no_loss() -> None:
    net, other = (random_model(SHAPE, seed).diffloss.net for seed in (3, 4))
    z, start, noise = normal(6, 32), normal(6, 4, seed=1), normal(6, 7, 4, seed=2)
    chain = Chain(schedule("7"))
    loss, ratio = chain_loss(chain, net, net, (z, z), start, noise, 3)
    assert float(loss) < 1e-3 and float(ratio.abs().max()) < 1e-2
    loss, ratio = chain_loss(chain, net, other, (z, z), start, noise, 3)
    assert float(loss) > 1 and float(ratio.min()) < -1


class Knowing(nn.Module):
    """Predicts the noise of tokens that are all `token`, and the least variance."""

    def __init__(self, token: float) -> None:
        super().__init__()
        self.offset = nn.Parameter(torch.zeros(4))
        self.token, self.kept = token, schedule("").alphas_cumprod

    def forward(self, x: Tensor, t: Tensor, z: Tensor) -> Tensor:
        kept = self.kept[t].float()[:, None]
        noise = (x - kept.sqrt() * self.token) / (1 - kept).sqrt()
        return torch.cat([noise + self.offset, torch.full_like(x, -1.0)], 1)


def test_diffusion_loss_is_least_for_the_truth() -> None:
    tables, tokens, z = schedule(""), torch.full((50, 4), 0.7), normal(50, 32)
    torch.manual_seed(1)
    least = diffusion_loss(Knowing(0.7), tables, tokens, z, 4).detach()
    assert abs(float(least)) < 0.1
    net = Knowing(0.7)
    net.offset.data += 0.3
    torch.manual_seed(1)
    loss = diffusion_loss(net, tables, tokens, z, 4)
    loss.backward()
    # The bound of the variance leaves the noise alone.
    torch.testing.assert_close(net.offset.grad, torch.full((4,), 2 * 0.3 / 4), atol=1e-3, rtol=1e-3)
    assert float(loss.detach()) > float(least) + 0.08


def test_classes() -> None:
    scenes = [scene_of(seed) for seed in range(60)]
    assert not any(scene.pair for scene in scenes)
    for scene in scenes:
        assert class_name(class_of(scene)) == (scene.subject, scene.time)
    assert 0 <= min(map(class_of, scenes)) and max(map(class_of, scenes)) < CLASSES == 50
    assert scenes == [scene_of(seed) for seed in range(60)]


def test_latents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mirror images, and scales that make tokens unit Gaussians."""
    monkeypatch.setattr("models.mar.demo.world.SHARD", 10)

    def moments(rgb: Tensor) -> tuple[Tensor, Tensor]:
        mean = nn.functional.avg_pool2d(rgb.mean(1, keepdim=True), 16).repeat(1, 16, 1, 1)
        return 5 * mean + 2, torch.full_like(mean, -6.0)

    write_shard(tmp_path, 0, moments)
    latents = Latents.load(tmp_path)
    assert latents.mean.shape == (20, 64, 16) and len(latents.classes) == 20
    rows = latents.mean.unflatten(1, (8, 8))
    torch.testing.assert_close(rows[0].flip(1), rows[1], atol=1e-2, rtol=1e-2)
    assert latents.classes[6] == latents.classes[7] == class_of(scene_of(3))
    tokens, classes = latents.batch(500, latents.scale())
    assert tokens.shape == (500, 64, 16) and len(classes) == 500
    assert abs(float(tokens.mean())) < 0.1 and abs(float(tokens.std()) - 1) < 0.1


@torch.inference_mode()
def test_the_decoder_starts_from_codes() -> None:
    """From rows of the codebook it decodes nearly what the demo decodes, whose decoder has more attention."""
    torch.manual_seed(3)
    known = torch.jit.load(BUNDLE / "image_decoder.pt").float()
    known.prepare(torch.empty(0))
    codes = torch.randint(1024, (1, 8, 8))
    kl = autoencoder.Autoencoder().kl
    latents = torch.zeros(1, 16, 8, 8)
    rows = dict(known.named_buffers())["table"][codes].permute(0, 3, 1, 2)
    latents[:, : rows.shape[1]] = rows * rows.shape[1] ** 0.5
    both = torch.stack([known.decode(codes).flatten(), kl.decode(latents * LATENT_SCALE).flatten()])
    assert float(torch.corrcoef(both)[0, 1]) > 0.9


@torch.inference_mode()
def test_decoder_of_unit_tokens() -> None:
    torch.manual_seed(2)
    kl = AutoencoderKL(autoencoder.CONFIG, encoder=False)
    shift, spread, tokens = normal(16, seed=1), normal(16, seed=2).exp(), normal(1, 16, 2, 2)
    expected = kl.decode((tokens * spread[:, None, None] + shift[:, None, None]) * LATENT_SCALE)
    unit = AutoencoderKL(autoencoder.CONFIG, encoder=False)
    unit.load_state_dict(autoencoder.unit_decoder(kl, shift, spread))
    torch.testing.assert_close(unit.decode(tokens), expected, atol=1e-4, rtol=1e-4)


def test_a_stage_goes_on(tmp_path: Path) -> None:
    options = Options(tmp_path, minutes=1e9)

    def stage() -> Stage:
        torch.manual_seed(1)
        return Stage("line", nn.Linear(3, 1), options, 0.05)

    x = normal(64, 3)
    whole, first = stage(), stage()
    for run, stop in ((whole, 60), (first, 30)):
        for number in run.steps():
            if number == stop:
                break
            run.update((run.model(x) - x.sum(1, keepdim=True)).square().mean())
    first.save()
    again = stage()
    assert again.number == 30 and again.clock.spent >= 0
    for number in again.steps():
        if number == 60:
            break
        again.update((again.model(x) - x.sum(1, keepdim=True)).square().mean())
    for one, other in zip(again.average.parameters(), whole.average.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
    assert not [path for path in tmp_path.iterdir() if path.suffix == ".part"]


def test_generation_fills_the_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every token once, by chains of the conditions that its step saw."""
    config = replace(SHAPE, classes=CLASSES, channels=16)
    monkeypatch.setattr(target, "CONFIG", config)
    monkeypatch.setattr(target, "RESPACING", "3")
    model, seen = random_model(config), []
    context = model.context
    monkeypatch.setattr(
        model, "context", lambda x, visible, c: (seen.append(visible), context(x, visible, c))[1]
    )
    tokens = target.generate(model, torch.tensor([3, 8]), 5)
    assert tokens.shape == (2, 12, 16) and tokens.isfinite().all()
    counts = [visible.sum(1).tolist() for visible in seen]
    assert counts == [[n, n] for n in (0, 1, 3, 5, 9)]
    assert all((a <= b).all() for a, b in zip(seen, seen[1:], strict=False))
    assert (tokens != 0).all()


def test_the_pair_fits_together() -> None:
    for key in ("positions", "channels", "classes"):
        assert getattr(target.CONFIG, key) == getattr(drafter.CONFIG, key)
    assert autoencoder.CONFIG.downsample**2 * target.CONFIG.positions == 128 * 128


def test_evaluation_knows_renderings() -> None:
    """The classifier finds what the classes name; with the classes exchanged it does not."""
    images, classes = evaluate.renderings(24)  # those it compares with
    report = evaluate.evaluate(images, classes)
    assert min(report["generated"].values()) > 0.8  # type: ignore[attr-defined]
    exchanged = evaluate.evaluate(images, [(c + 7) % CLASSES for c in classes])
    assert max(exchanged["generated"].values()) < 0.5  # type: ignore[attr-defined]
    assert abs(report["frechet"]) < 1e-3 < report["frechet of renderings"]  # type: ignore[arg-type]
