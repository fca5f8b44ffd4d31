"""The data set of the demo's GPT on disk, in shards that are complete as soon as they exist.

Files in the work folder, for shard k = 00000, 00001, ... of SHARD = 1000 scenes each:

    tokens-k.npz
        attributes  uint8  [SHARD, 9]        value indices, columns as in vocabulary.ATTRIBUTES
        cells       bool   [SHARD, 256]      token cells that the subjects cover, row-major 16x16
        tokens      uint16 [SHARD, 2, 256]   codebook ids, row-major 16x16:
                                             [:, 0] the image, [:, 1] its mirror image

The seed of scene i of shard k is k * SHARD + i. Files are written under a temporary name and renamed, so
a reader may pick up whatever `token_shards` lists while later shards are still being made. `load_tokens`
joins them; mirrored images become rows of their own with swapped sides and flipped cells. Scenes whose
seed is a multiple of 50 are held out (`held_out`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...progress import Progress
from ..render.scene import Scene, sample_scene
from ..render.vocabulary import ATTRIBUTES
from ..render.world import SIZE, render_with_cells

SHARD = 1000
HELD_OUT = 50  # seeds per held-out scene
WORK = Path(__file__).resolve().parents[1] / "work"

Encode = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class TokenSet:
    """Tokenised images; N rows, mirrored copies included."""

    tokens: np.ndarray  # uint16 [N, 256]
    attributes: np.ndarray  # uint8 [N, 9]
    cells: np.ndarray  # bool [N, 256]
    seeds: np.ndarray  # int64 [N]; an image and its mirror image share the seed
    mirrored: np.ndarray  # bool [N]


def scene_of(seed: int) -> Scene:
    """The scene of the data set with this seed."""
    return sample_scene(np.random.default_rng([7, seed]))


def held_out(seeds: np.ndarray) -> np.ndarray:
    """bool: which scenes are kept from training."""
    return seeds % HELD_OUT == 0


def shard_path(work: Path, shard: int) -> Path:
    return work / f"tokens-{shard:05d}.npz"


def token_shards(work: Path = WORK) -> list[int]:
    """Numbers of the shards that are tokenised, ascending."""
    return sorted(int(p.stem.split("-")[1]) for p in work.glob("tokens-?????.npz"))


def mirror_attributes(attributes: np.ndarray) -> np.ndarray:
    """uint8 [N, 9] of the mirrored images: left and right swapped."""
    side = list(ATTRIBUTES).index("side")
    swapped = attributes.copy()
    swapped[:, side] = np.array([2, 1, 0], np.uint8)[attributes[:, side]]
    return swapped


def load_tokens(work: Path = WORK, shards: list[int] | None = None) -> TokenSet:
    """Everything tokenised so far (or the given shards): images first, then their mirror images."""
    shards = token_shards(work) if shards is None else shards
    files = [np.load(shard_path(work, k)) for k in shards]
    tokens, attributes, cells = (
        np.concatenate([f[name] for f in files]) for name in ("tokens", "attributes", "cells")
    )
    seeds = np.concatenate([k * SHARD + np.arange(SHARD) for k in shards])
    flipped = cells.reshape(-1, 16, 16)[:, :, ::-1].reshape(-1, 256)
    return TokenSet(
        tokens=np.concatenate([tokens[:, 0], tokens[:, 1]]),
        attributes=np.concatenate([attributes, mirror_attributes(attributes)]),
        cells=np.concatenate([cells, flipped]),
        seeds=np.concatenate([seeds, seeds]),
        mirrored=np.repeat([False, True], len(seeds)),
    )


def tokenise_shard(work: Path, shard: int, encode: Encode) -> None:
    """Renders one shard and writes the tokens of its images and mirror images, unless they exist.

    encode: uint8 [B, 256, 256, 3] -> codes [B, 256].
    """
    path = shard_path(work, shard)
    if path.exists():
        return
    tokens = np.empty((SHARD, 2, 256), np.uint16)
    cells = np.empty((SHARD, 256), bool)
    attributes = np.empty((SHARD, len(ATTRIBUTES)), np.uint8)
    step = min(20, SHARD)
    images = np.empty((step, SIZE, SIZE, 3), np.uint8)
    for first in range(0, SHARD, step):
        rows = range(first, min(first + step, SHARD))
        for i in rows:
            seed = shard * SHARD + i
            scene = scene_of(seed)
            images[i - first], inside = render_with_cells(scene, seed)
            cells[i], attributes[i] = inside.ravel(), scene.indices()
        part = images[: len(rows)]
        tokens[rows.start : rows.stop, 0] = encode(part)
        tokens[rows.start : rows.stop, 1] = encode(part[:, :, ::-1])
    part_path = path.with_suffix(".part")
    with part_path.open("wb") as stream:
        np.savez(stream, tokens=tokens, cells=cells, attributes=attributes)
    part_path.rename(path)


def tokenise_all(work: Path = WORK, shards: int = 24) -> None:
    """Renders and tokenises shards 0 to `shards` - 1 with work/codes.pt; resumable."""
    import torch

    from .vq_model import load_tokenizer, to_rgb

    model = load_tokenizer(work / "codes.pt")

    def encode(images: np.ndarray) -> np.ndarray:
        rgb = to_rgb(torch.from_numpy(images.copy()))
        return model.encode(rgb).flatten(1).numpy().astype(np.uint16)

    progress = Progress("tokenise", shards)
    for shard in range(shards):
        tokenise_shard(work, shard, encode)
        progress.show(shard + 1)
        progress.log(f"tokenised shard {shard}")
