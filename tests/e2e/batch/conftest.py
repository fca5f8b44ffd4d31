"""Fixtures: a caption set, an undisturbed run over it, and a function for other runs."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

import pytest

from tests.e2e.batch.sets import ITEMS, Batch, command


@pytest.fixture(scope="module")
def captions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A COCO file: 20 images with two captions each, unsorted."""
    images = random.Random(3).sample(range(100, 600), ITEMS // 2)
    annotations = [
        {"image_id": image, "id": 2 * k + r, "caption": f"caption {r} of {image}" + " at dusk" * r}
        for r in range(2)
        for k, image in enumerate(images)
    ]
    path = tmp_path_factory.mktemp("captions") / "captions.json"
    path.write_text(json.dumps({"images": [], "annotations": annotations}))
    return path


@pytest.fixture
def batch(lamplighter: Path, drafter_bundle: Path, captions: Path) -> Batch:
    """Runs `lamplighter batch` on the captions into a folder."""

    def run(out: Path, *more: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command(lamplighter, drafter_bundle, captions, out, *more),
            capture_output=True, text=True, timeout=300, env={**os.environ, **environment},
        )  # fmt: skip

    return run


@pytest.fixture(scope="module")
def whole(
    lamplighter: Path,
    drafter_bundle: Path,
    captions: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """An undisturbed run."""
    out = tmp_path_factory.mktemp("whole") / "out"
    subprocess.run(command(lamplighter, drafter_bundle, captions, out), check=True, timeout=300)
    return out
