"""Losses of MAR's diffusion head: that of the published training, and divergence of a drafter's chain."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .chain import Chain
from .diffusion import Schedule
from .network import HeadNetwork


def gaussian_divergence(mean_p: Tensor, log_p: Tensor, mean_q: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) of Gaussians by channel, in nats; log_*: of deviations."""
    ratio = (2 * (log_p - log_q)).exp()
    return 0.5 * (ratio - 1 + (mean_p - mean_q).square() * (-2 * log_q).exp()) + log_q - log_p


def diffusion_loss(
    net: HeadNetwork, tables: Schedule, tokens: Tensor, z: Tensor, repeats: int
) -> Tensor:
    """Squared error of the noise and the variational bound of the variance (Nichol and Dhariwal 2021).

    tables: of all steps of training; tokens [N,C] under conditions z [N,D], each at `repeats` random steps.
    """
    tokens, z = tokens.repeat(repeats, 1), z.repeat(repeats, 1)
    device = tokens.device
    t = torch.randint(len(tables.steps), (len(tokens),))
    noise = torch.randn_like(tokens)

    def of(table: Tensor) -> Tensor:
        return table[t].float().to(device)[:, None]

    kept = of(tables.alphas_cumprod)
    x = kept.sqrt() * tokens + (1 - kept).sqrt() * noise
    guess, variance = net(x, t.to(device), z).float().chunk(2, -1)
    frozen = (
        of(tables.sqrt_recip_alphas_cumprod) * x
        - of(tables.sqrt_recipm1_alphas_cumprod) * guess.detach()
    )
    ahead, back = of(tables.posterior_mean_coef1), of(tables.posterior_mean_coef2)
    mean, exact = ahead * frozen + back * x, ahead * tokens + back * x
    least, most = of(tables.posterior_log_variance_clipped), of(tables.log_betas)
    log_deviation = 0.5 * ((variance + 1) / 2 * most + (1 - variance) / 2 * least)
    bound = gaussian_divergence(exact, 0.5 * least, mean, log_deviation)
    last = 0.5 * ((tokens - mean) / log_deviation.exp()).square() + log_deviation
    bound = torch.where(t.to(device)[:, None] == 0, last, bound) / math.log(2)
    return ((noise - guess).square() + bound).mean()


def chain_loss(
    chain: Chain,
    target: HeadNetwork,
    draft: HeadNetwork,
    conditions: tuple[Tensor, Tensor],
    start: Tensor,
    noise: Tensor,
    some: int,
) -> tuple[Tensor, Tensor]:
    """How far a drafter's chains are from the target's of the same noise, and log ratios of its tokens [N].

    conditions: the target's z and the drafter's. Two parts, each the mean of log(1 + KL): `some` steps from
    what the target's chain saw there, which is easy to learn, and the last step behind the drafter's own
    chain, which decides what is accepted.
    """
    with torch.no_grad():
        p = chain.run(target, conditions[0], start, noise)
    count = len(start)
    i = torch.randint(len(p.means), (some, count), device=start.device)
    i[0] = 0
    rows = torch.arange(count, device=start.device).expand(some, -1)
    picked = (i.flatten(), rows.flatten())
    mean, log_deviation = chain.step(
        draft, p.inputs[picked], i.flatten(), conditions[1].repeat(some, 1)
    )
    guided = gaussian_divergence(p.means[picked], p.log_deviations[picked], mean, log_deviation)
    q = chain.run(draft, conditions[1], start, noise)
    last = (p.means[0], p.log_deviations[0], q.means[0], q.log_deviations[0])
    own = gaussian_divergence(*last).sum(-1)
    loss = torch.log1p(guided.sum(-1)).mean() + torch.log1p(own).mean()
    return loss, log_ratio(*(t.detach() for t in last), noise[:, 0])


def log_ratio(
    mean_p: Tensor, log_p: Tensor, mean_q: Tensor, log_q: Tensor, noise: Tensor
) -> Tensor:
    """log p - log q of the drafter's tokens mean_q + deviation_q * noise [N,C] -> fp64 [N]."""
    mean_p, log_p, mean_q, log_q, noise = (
        t.double() for t in (mean_p, log_p, mean_q, log_q, noise)
    )
    x = mean_q + log_q.exp() * noise
    distance = ((x - mean_p) * (-log_p).exp()).square()
    return (0.5 * (noise.square() - distance) + log_q - log_p).sum(-1)
