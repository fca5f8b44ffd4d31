"""Scores from features: no networks, no images."""

from __future__ import annotations

import contextlib
import io

import numpy as np

from .errors import EvaluationError, package


def clip_score(images: np.ndarray, texts: np.ndarray) -> float:
    """Mean cosine of image embeddings [N, C] and the embeddings of their captions [N, C]."""
    images, texts = images.astype(np.float64), texts.astype(np.float64)
    norms = np.linalg.norm(images, axis=1) * np.linalg.norm(texts, axis=1)
    return float(((images * texts).sum(1) / norms).mean())


def precision_recall(real: np.ndarray, generated: np.ndarray, neighbours: int) -> dict[str, float]:
    """Precision and recall of features [N, F] and [M, F] by their nearest neighbours, from prdc."""
    prdc = package("prdc", "prdc", "precision / recall")
    least = min(len(real), len(generated))
    if least < neighbours + 2:
        raise EvaluationError(
            f"precision / recall: got {least} images, expected {neighbours + 2} or more"
        )
    with contextlib.redirect_stdout(io.StringIO()):  # it prints its sizes
        values = prdc.compute_prdc(real, generated, neighbours)
    return {name: float(values[name]) for name in ("precision", "recall")}
