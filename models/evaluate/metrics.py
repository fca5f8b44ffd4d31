"""The metrics by name: what each needs, and its scores of a folder."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from ..frechet import Statistics, frechet, statistics
from . import clip, inception
from .arithmetic import clip_score, precision_recall
from .errors import EvaluationError, package
from .folders import Folder
from .images import batches, files_below

Scores = dict[str, float]
METRICS = ("fid", "clip", "hpsv2", "pr", "demo")


@dataclass(frozen=True)
class Settings:
    metrics: tuple[str, ...] = ()
    reference: Path | None = None
    save_reference: Path | None = None
    fid_protocol: str = "clean"
    inception_weights: Path | None = None
    clip_protocol: str = "lantern"
    clip_weights: Path | None = None
    hpsv2_weights: Path | None = None
    neighbours: int = 3  # of precision / recall
    resize: int | None = None
    batch: int = 50
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def check(settings: Settings) -> None:
    """Checks all inputs before anything is loaded. Raises EvaluationError."""
    metrics = settings.metrics
    if {"fid", "pr"} & {*metrics}:
        inception.check(settings.fid_protocol, settings.inception_weights)
        if settings.reference is None or not settings.reference.exists():
            got = settings.reference or "nothing"
            raise EvaluationError(
                f"--reference: got {got}, expected a folder of images or an .npz of statistics"
            )
    if "pr" in metrics:
        package("prdc", "prdc", "pr")
    if "clip" in metrics:
        clip.check_clip(settings.clip_protocol, settings.clip_weights)
    if "hpsv2" in metrics:
        clip.check_hps(settings.hpsv2_weights)


def fitted(features: np.ndarray) -> Statistics:
    try:
        return statistics(features)
    except ValueError as error:
        raise EvaluationError(str(error)) from error


class Inception:
    """fid and pr: features of the reference and of folders. See Settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        assert settings.inception_weights and settings.reference  # by check()
        self.stored = self.read() if settings.reference.is_file() else {}
        if "pr" in settings.metrics and self.stored and "features" not in self.stored:
            raise EvaluationError(
                f"--reference: {settings.reference}: no array 'features', expected it for pr "
                "(hint: a folder of images, or the file of --save-reference)"
            )
        self.extract = inception.extractor(
            settings.fid_protocol, settings.inception_weights, settings.device
        )
        if not self.stored:
            self.stored = {"features": self.features(files_below(settings.reference))}
        self.statistics = self.reference()
        if settings.save_reference:
            fitted = {"mu": self.statistics.mean, "sigma": self.statistics.covariance}
            np.savez(settings.save_reference, **{**self.stored, **fitted})

    def read(self) -> dict[str, np.ndarray]:
        file = self.settings.reference
        try:
            with np.load(file, allow_pickle=False) as arrays:  # type: ignore[arg-type]
                known = {n: arrays[n] for n in ("mu", "sigma", "features") if n in arrays}
        except (OSError, ValueError, AttributeError) as error:
            raise EvaluationError(f"--reference: {file}: cannot be read, expected .npz") from error
        if "features" not in known and not {"mu", "sigma"} <= {*known}:
            raise EvaluationError(f"--reference: {file}: expected arrays 'mu' and 'sigma'")
        return known

    def reference(self) -> Statistics:
        if "mu" in self.stored:
            return Statistics(self.stored["mu"], self.stored["sigma"])
        return fitted(self.stored["features"])

    def features(self, files: list[Path]) -> np.ndarray:
        return inception.features(self.extract, files, self.settings.batch, self.settings.resize)

    def distance(self, generated: np.ndarray) -> float:
        try:
            return frechet(fitted(generated), self.statistics)
        except ValueError as error:
            raise EvaluationError(str(error)) from error

    def __call__(self, folder: Folder) -> Scores:
        generated = self.features([image.path for image in folder.images])
        scores: Scores = {}
        if "fid" in self.settings.metrics:
            if len(generated) <= generated.shape[1]:
                print(
                    f"fid: {folder.name}: {len(generated)} images are fewer than features and score too high;"
                    " compare folders of equal counts only",
                    file=sys.stderr,
                )
            scores["fid"] = round(self.distance(generated), 3)
        if "pr" in self.settings.metrics:
            both = precision_recall(self.stored["features"], generated, self.settings.neighbours)
            scores |= {name: round(value, 4) for name, value in both.items()}
        return scores


class Cosine:
    """clip and hpsv2: how near images are to their captions."""

    def __init__(self, name: str, embedder: clip.Embedder, settings: Settings) -> None:
        self.name, self.embedder, self.settings = name, embedder, settings

    def __call__(self, folder: Folder) -> Scores:
        size, found = self.settings.batch, folder.images
        images, texts = [], []
        files = [image.path for image in found]
        for number, loaded in enumerate(batches(files, size, self.settings.resize)):
            captions = [
                image.caption for image in found[number * size : number * size + len(loaded)]
            ]
            images.append(self.embedder.images(loaded))
            texts.append(self.embedder.texts(captions))
        score = clip_score(np.concatenate(images), np.concatenate(texts))
        return {self.name: round(self.embedder.protocol.scale * score, 4)}


def demo(settings: Settings) -> Callable[[Folder], Scores]:
    from ..demo.render.world import SIZE
    from ..demo.scores import score

    def scores(folder: Folder) -> Scores:
        files = [image.path for image in folder.images]
        arrays = (
            np.stack([np.asarray(image) for image in loaded])
            for loaded in batches(files, settings.batch, SIZE)
        )
        return score(arrays, [image.caption for image in folder.images])

    return scores


def scorers(settings: Settings) -> list[Callable[[Folder], Scores]]:
    """Functions from a folder to its scores. Throws EvaluationError when something is missing."""
    check(settings)
    clip.offline()
    made: list[Callable[[Folder], Scores]] = []
    if {"fid", "pr"} & {*settings.metrics}:
        made.append(Inception(settings))
    if "clip" in settings.metrics:
        assert settings.clip_weights
        embedder = clip.clip_embedder(
            settings.clip_protocol, settings.clip_weights, settings.device
        )
        made.append(Cosine("clip", embedder, settings))
    if "hpsv2" in settings.metrics:
        assert settings.hpsv2_weights
        embedder = clip.hps_embedder(settings.hpsv2_weights, settings.device)
        made.append(Cosine("hpsv2", embedder, settings))
    if "demo" in settings.metrics:
        made.append(demo(settings))
    return made
