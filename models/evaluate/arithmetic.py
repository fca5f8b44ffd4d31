"""Scores from features: no networks, no pictures."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

import numpy as np

from .errors import EvaluationError, package


@dataclass(frozen=True)
class Statistics:
    """The normal distribution fitted to features: mean [F] and covariance [F, F] (divisor N - 1), in fp64."""

    mean: np.ndarray
    covariance: np.ndarray


def statistics(features: np.ndarray) -> Statistics:
    """Of features [N, F], N at least 2."""
    if len(features) < 2:
        raise EvaluationError(f"Frechet distance: got {len(features)} pictures, expected 2 or more")
    features = features.astype(np.float64)
    return Statistics(features.mean(0), np.atleast_2d(np.cov(features, rowvar=False)))


def frechet(a: Statistics, b: Statistics) -> float:
    """Frechet distance of two normal distributions.

    The root of a product of covariances is taken of a symmetric matrix with the same trace: it is real
    where there are fewer pictures than features, too.
    """
    if a.mean.shape != b.mean.shape:
        raise EvaluationError(
            f"Frechet distance: got {b.mean.size} features in the reference, expected {a.mean.size}"
        )
    values, vectors = np.linalg.eigh(a.covariance)
    root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
    product = root @ b.covariance @ root
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh((product + product.T) / 2), 0)).sum()
    offset = ((a.mean - b.mean) ** 2).sum()
    return float(offset + np.trace(a.covariance) + np.trace(b.covariance) - 2 * cross)


def clip_score(images: np.ndarray, texts: np.ndarray) -> float:
    """Mean cosine of image embeddings [N, C] and the embeddings of their captions [N, C]."""
    images, texts = images.astype(np.float64), texts.astype(np.float64)
    norms = np.linalg.norm(images, axis=1) * np.linalg.norm(texts, axis=1)
    return float(((images * texts).sum(1) / norms).mean())


def precision_recall(real: np.ndarray, drawn: np.ndarray, neighbours: int) -> dict[str, float]:
    """Precision and recall of features [N, F] and [M, F] by their nearest neighbours, from prdc."""
    prdc = package("prdc", "prdc", "precision / recall")
    least = min(len(real), len(drawn))
    if least < neighbours + 2:
        raise EvaluationError(
            f"precision / recall: got {least} pictures, expected {neighbours + 2} or more"
        )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its sizes
        values = prdc.compute_prdc(real, drawn, neighbours)
    return {name: float(values[name]) for name in ("precision", "recall")}
