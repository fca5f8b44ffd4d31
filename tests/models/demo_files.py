"""Shards of the demo model's training data."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from models.demo.training.data import SHARD, scene_of, shard_path


def add_shard(work: Path, shard: int) -> None:
    """A shard whose tokens tell their seed: the first code of image i is i % 1000."""
    rng = np.random.default_rng(shard)
    tokens = rng.integers(1024, size=(SHARD, 2, 256)).astype(np.uint16)
    tokens[:, :, 0] = np.arange(SHARD)[:, None] % 1000
    scenes = [scene_of(shard * SHARD + i) for i in range(SHARD)]
    np.savez(
        shard_path(work, shard),
        attributes=np.stack([s.indices() for s in scenes]),
        cells=rng.random((SHARD, 256)) < 0.2,
        tokens=tokens,
    )
