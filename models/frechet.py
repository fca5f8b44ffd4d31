"""The Frechet distance of images' features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Statistics:
    """The normal distribution fitted to features: mean [F] and covariance [F, F] (divisor N - 1), in fp64."""

    mean: np.ndarray
    covariance: np.ndarray


def statistics(features: np.ndarray) -> Statistics:
    """Fits features [N, F]. ValueError: N is below 2."""
    if len(features) < 2:
        raise ValueError(f"Frechet distance: got {len(features)} images, expected 2 or more")
    features = features.astype(np.float64)
    return Statistics(features.mean(0), np.atleast_2d(np.cov(features, rowvar=False)))


def frechet(a: Statistics, b: Statistics) -> float:
    """Frechet distance of two normal distributions. ValueError: they are of different features.

    The root of the covariances' product is taken of a symmetric matrix with the same trace, which is real
    even for fewer images than features.
    """
    if a.mean.shape != b.mean.shape:
        raise ValueError(
            f"Frechet distance: got {b.mean.size} features in the reference, expected {a.mean.size}"
        )
    values, vectors = np.linalg.eigh(a.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    product = root @ b.covariance @ root
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh((product + product.T) / 2), 0)).sum()
    offset = ((a.mean - b.mean) ** 2).sum()
    return float(offset + np.trace(a.covariance) + np.trace(b.covariance) - 2 * cross)
