"""Fits the demo's codes: weighted k-means over the 8x8 patches of rendered pictures.

A code stands for what a patch looks like, so codes are final within a minute, every one of them is used,
and a decoder trained on them learns from the neighbourhood what the codes leave out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from models.demo.training.data import SHARD, WORK, held_out, image_shards, load_images, shard_path
from models.demo.training.vq_model import CONFIG, PATCH, DemoTokenizer, save_tokenizer, to_rgb

PICTURES = 2400  # patches are taken from this many
DETAIL = 0.7  # weight of what differs from a patch's mean colour: texture is cheap to make up, colour is not
SUBJECT_WEIGHT = 3.0
NIGHT_WEIGHT = 1.6  # dark pictures have small differences
ROUNDS = 16
_TIME_COLUMN, _NIGHT = 2, 3


def sample_patches(work: Path, seed: int) -> tuple[Tensor, Tensor]:
    """Patches [N, 3 * PATCH * PATCH] of training pictures and their weights [N]."""
    rng = np.random.default_rng(seed)
    shards = image_shards(work)
    each = max(1, PICTURES // len(shards))
    patches, weights = [], []
    for shard, images in zip(shards, load_images(work, shards)):
        rows = np.sort(rng.choice(SHARD, each, replace=False))
        rows = rows[~held_out(shard * SHARD + rows)]
        rgb = to_rgb(torch.from_numpy(images[rows]))
        patches.append(F.pixel_unshuffle(rgb, PATCH).flatten(2).transpose(1, 2).flatten(0, 1))
        subject = np.load(shard_path(work, "cells", shard))[rows]
        night = np.load(shard_path(work, "attributes", shard))[rows, _TIME_COLUMN] == _NIGHT
        weight = (
            np.where(subject, SUBJECT_WEIGHT, 1.0) * np.where(night, NIGHT_WEIGHT, 1.0)[:, None]
        )
        weights.append(torch.from_numpy(weight.astype(np.float32)).flatten())
    return torch.cat(patches), torch.cat(weights)


def feature_projection(patches: Tensor, width: int) -> Tensor:
    """Projection [patch size, width] onto the main axes of mean colours and shrunken detail."""
    pixels = PATCH * PATCH
    mean = torch.kron(
        torch.eye(3), torch.full((pixels, pixels), 1 / pixels)
    )  # channel-major patches
    shape = mean + DETAIL * (torch.eye(3 * pixels) - mean)
    shaped = patches[:: max(1, len(patches) // 60_000)] @ shape
    covariance = torch.cov(shaped.T)
    axes = torch.linalg.eigh(covariance).eigenvectors[:, -width:].flip(1)
    return shape @ axes


def nearest(features: Tensor, centres: Tensor) -> Tensor:
    """Index of the nearest centre for every row."""
    half = centres.square().sum(1) / 2
    return torch.cat([(part @ centres.T - half).argmax(1) for part in features.split(20_000)])


def weighted_kmeans(features: Tensor, weights: Tensor, count: int) -> Tensor:
    """Centres [count, width]; those that few patches choose move to patches that are far from theirs."""
    centres = features[torch.multinomial(weights, count)].clone()
    for turn in range(ROUNDS):
        chosen = nearest(features, centres)
        sums = torch.zeros_like(centres).index_add_(0, chosen, features * weights[:, None])
        mass = torch.zeros(count).index_add_(0, chosen, weights)
        error = (features - centres[chosen]).square().sum(1) * weights
        centres = sums / mass.clamp(min=1e-6)[:, None]
        rare = mass < 0.05 * mass.mean()
        if turn < ROUNDS - 5 and rare.any():
            centres[rare] = features[torch.multinomial(error, int(rare.sum()))]
    return centres


def fit_codes(work: Path = WORK, seed: int = 1) -> None:
    """Writes work/vq-codes.pt: final codes, and a decoder that is yet to be trained."""
    torch.manual_seed(seed)
    patches, weights = sample_patches(work, seed)
    model = DemoTokenizer()
    model.projection.copy_(feature_projection(patches, model.projection.shape[1]))
    features = patches @ model.projection
    centres = weighted_kmeans(features, weights, CONFIG.codebook_size)
    model.centres.copy_(centres)
    # The decoder's view of a code starts as its main axes and a constant, on the unit sphere.
    axes = centres[:, : CONFIG.codebook_embed_dim - 1] / centres[:, 0].std()
    start = torch.cat([axes, torch.ones(len(centres), 1)], 1)
    model.vq.quantize.embedding.weight.data.copy_(F.normalize(start, dim=-1))
    save_tokenizer(model, work / "vq-codes.pt")
    share = torch.bincount(nearest(features, centres), minlength=len(centres)).double()
    share = share / share.sum()
    perplexity = float((-(share * share.clamp(min=1e-12).log()).sum()).exp())
    error = (
        patches - (centres @ torch.linalg.pinv(model.projection))[nearest(features, centres)]
    ) / 2
    psnr = float(-10 * torch.log10(error.square().mean()))
    print(
        f"codes: {int((share > 0).sum())} used, perplexity {perplexity:.0f}, patch PSNR {psnr:.2f} dB"
    )


if __name__ == "__main__":
    fit_codes()
