"""MAR: the module of a bundle is the plain network."""

from __future__ import annotations

import pytest
import torch
from mar_files import KL_SHAPE, SHAPE, normal, random_model
from torch import Tensor

from models import ops
from models.mar.diffusion import schedule, spaced_steps
from models.mar.kl import AutoencoderKL, sampled
from models.mar.network import MAR
from models.mar.target_module import TargetModule


def module_of(model: MAR, respacing: str = "7", like: Tensor | None = None) -> torch.nn.Module:
    ops.load()
    module = torch.jit.script(TargetModule(model, schedule(respacing)))
    module.prepare(torch.empty(0) if like is None else like)
    return module


@torch.inference_mode()
def test_context_is_the_plain_network(model: MAR) -> None:
    """Each image alone in the plain one, all at once in the module, whatever is hidden."""
    module, count = module_of(model, like=torch.empty(0, dtype=torch.bfloat16)), SHAPE.positions
    latents = normal(4, count, SHAPE.channels)
    shown = torch.tensor([0, 5, count - 1, count])[:, None]
    visible = torch.rand(4, count, generator=torch.Generator().manual_seed(2)).argsort(1) < shown
    classes = torch.tensor([0, 4, SHAPE.classes, 2])
    hidden = latents.masked_fill(~visible[..., None], torch.nan)
    z = module.context(hidden, visible, classes)
    for i in range(4):
        row = slice(i, i + 1)
        expected = model.context(latents[row], visible[row], classes[row])
        torch.testing.assert_close(z[row], expected, atol=1e-5, rtol=1e-5)


def plain_chain(
    model: MAR, z: Tensor, other: Tensor, scale: Tensor, start: Tensor, noise: Tensor, tau: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """In fp64, by the formulas of the schedule."""
    net, tables, x = model.double().diffloss.net, schedule(str(noise.shape[1])), start.double()
    channels = x.shape[1]
    sums = torch.zeros_like(x)
    for i in reversed(range(noise.shape[1])):
        steps = tables.steps[i].expand(len(x))
        out = net(x, steps, z.double())
        free = net(x, steps, other.double())[:, :channels]
        guess = free + scale[:, None] * (out[:, :channels] - free)
        kept = tables.alphas_cumprod[i]
        clean = (x - (1 - kept).sqrt() * guess) / kept.sqrt()
        mean = tables.posterior_mean_coef1[i] * clean + tables.posterior_mean_coef2[i] * x
        share = (out[:, channels:] + 1) / 2
        log_variance = (
            share * tables.log_betas[i] + (1 - share) * tables.posterior_log_variance_clipped[i]
        )
        deviation = tau[:, None] * (log_variance / 2).exp()
        if i:
            sums += log_variance / 2
            x = mean + deviation * noise[:, i]
    model.float()
    return mean, deviation, sums


@torch.inference_mode()
def test_chain_is_the_plain_formula() -> None:
    """Guided, at several scales and temperatures; scale 1 is no guidance."""
    model, rows, steps = random_model(SHAPE), 5, 7
    module = module_of(model, str(steps))
    z, other = normal(rows, 32, seed=1), normal(rows, 32, seed=2)
    start, noise = normal(rows, 4, seed=3), normal(rows, steps, 4, seed=4)
    scale, tau = torch.tensor([1.0, 1.5, 3.0, 1.0, 2.0]), torch.tensor([1.0, 0.9, 0.8, 0.95, 1.0])
    expected = plain_chain(model, z, other, scale, start, noise, tau)
    noise[:, 0] = torch.nan
    got = module.denoise(z, other, scale, start, noise, tau)
    assert [t.dtype for t in got] == [torch.float32, torch.float32, torch.float64]
    for value, exact in zip(got, expected, strict=True):
        torch.testing.assert_close(value.double(), exact, atol=2e-3, rtol=2e-4)
    alone = module.denoise(z, other[:0], scale, start, noise, tau)
    for value, free in zip(got, alone, strict=True):
        torch.testing.assert_close(value[[0, 3]], free[[0, 3]], atol=1e-3, rtol=1e-4)
    assert (got[0] - alone[0])[[1, 2, 4]].abs().amin(1).min() > 1e-3


@torch.inference_mode()
def test_rows_of_a_chain_are_independent(model: MAR) -> None:
    module, steps = module_of(model), 7
    inputs = [normal(6, 32, seed=1), normal(6, 32, seed=2), torch.full((6,), 2.0),
              normal(6, 4, seed=3), normal(6, steps, 4, seed=4), torch.ones(6)]  # fmt: skip
    together = module.denoise(*inputs)
    for row in range(6):
        alone = module.denoise(*(t[row : row + 1] for t in inputs))
        for one, other in zip(alone, together, strict=True):
            torch.testing.assert_close(one[0], other[row], atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("respacing", "message"),
    [
        ("0", "0 of a section of 1000 steps"),
        ("1001", "1001 of a section of 1000 steps"),
        ("10,,20", "expected counts such as 100 or 10,15,20"),
        ("-5", "expected counts"),
        ("ddim600", "no integer stride takes 600 of 1000"),
        ("1", "expected two steps or more"),
        ("9@20-1000", "20 to 1000 are not of 1000 steps"),
        ("9@20-20", "20 to 20 are not"),
        ("9@995-999", "9 of a section of 5 steps"),
        ("9@4", "expected counts"),
    ],
)
def test_respacings_that_do_not_exist(respacing: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        schedule(respacing)


def test_all_steps_remain() -> None:
    assert (
        spaced_steps("") == list(range(1000)) == spaced_steps("1000") == spaced_steps("1000@0-999")
    )


def test_a_later_last_step_leaves_more_noise() -> None:
    """Its mean is the token that the network sees behind the noise."""
    assert spaced_steps("5@39-999") == [39, 279, 519, 759, 999]
    early, late = schedule("25"), schedule("25@40-999")
    for tables in (early, late):
        assert float(tables.posterior_mean_coef1[0]) == pytest.approx(1.0)
        assert float(tables.posterior_mean_coef2[0]) == pytest.approx(0.0)
    assert float(late.betas[0]) > 50 * float(early.betas[0])


def test_the_autoencoder_encodes_and_decodes() -> None:
    torch.manual_seed(1)
    kl = AutoencoderKL(KL_SHAPE).requires_grad_(False)
    rgb = normal(2, 3, 8, 12)
    mean, log_variance = kl.moments(rgb)
    assert mean.shape == log_variance.shape == (2, 4, 4, 6)
    assert kl.decode(kl.encode(rgb)).shape == rgb.shape
    assert (sampled(mean, torch.full_like(mean, -60)) - kl.encode(rgb)).abs().max() < 1e-6
    assert (sampled(mean, log_variance) - kl.encode(rgb)).abs().max() > 1e-3
