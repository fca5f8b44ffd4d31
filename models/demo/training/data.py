"""The data set of the demo model on disk, in shards that are complete as soon as they exist.

Files in the work folder, for shard k = 00000, 00001, ... of SHARD = 2000 scenes each:

    images-k.npy      uint8  [SHARD, 128, 128, 3]   rendered pictures (`world.render`)
    attributes-k.npy  uint8  [SHARD, 6]             value indices, columns as in scene.ATTRIBUTES
    cells-k.npy       bool   [SHARD, 256]           token cells that the subject covers, row-major 16x16
    tokens-k.npy      uint16 [SHARD, 2, 256]        codebook ids, row-major 16x16:
                                                    [:, 0] the picture, [:, 1] its mirror image

The seed of scene i of shard k is k * SHARD + i. Files are written under a temporary name and renamed,
tokens-k.npy last, so a reader may pick up whatever `token_shards` lists while later shards are still
being made. `load_tokens` joins them; mirrored pictures become rows of their own with swapped sides
and flipped cells. Scenes whose seed is a multiple of 50 are held out (`held_out`).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.demo.render.scene import ATTRIBUTES, Scene, sample_scene

SHARD = 2000
WORK = Path(__file__).resolve().parents[1] / "work"


@dataclass(frozen=True)
class TokenSet:
    """Tokenised pictures; N rows, mirrored copies included."""

    tokens: np.ndarray  # uint16 [N, 256]
    attributes: np.ndarray  # uint8 [N, 6]
    cells: np.ndarray  # bool [N, 256]
    seeds: np.ndarray  # int64 [N]; a picture and its mirror image share the seed
    mirrored: np.ndarray  # bool [N]


def scene_of(seed: int) -> Scene:
    """The scene of the data set with this seed."""
    return sample_scene(np.random.default_rng([7, seed]))


def held_out(seeds: np.ndarray) -> np.ndarray:
    """bool: which scenes are kept from training."""
    return seeds % 50 == 0


def shard_path(work: Path, kind: str, shard: int) -> Path:
    """Path of one file; kind is images, attributes, cells or tokens."""
    return work / f"{kind}-{shard:05d}.npy"


def token_shards(work: Path = WORK) -> list[int]:
    """Numbers of the shards that are rendered and tokenised, ascending."""
    return sorted(int(p.stem.split("-")[1]) for p in work.glob("tokens-?????.npy"))


def image_shards(work: Path = WORK) -> list[int]:
    """Numbers of the shards that are rendered, ascending."""
    return sorted(int(p.stem.split("-")[1]) for p in work.glob("images-?????.npy"))


def load_images(work: Path, shards: list[int]) -> list[np.ndarray]:
    """Memory-mapped uint8 [SHARD, 128, 128, 3] of every shard."""
    return [np.load(shard_path(work, "images", k), mmap_mode="r") for k in shards]


def mirror_attributes(attributes: np.ndarray) -> np.ndarray:
    """uint8 [N, 6] of the mirrored pictures: left and right swapped."""
    side = list(ATTRIBUTES).index("side")
    swapped = attributes.copy()
    swapped[:, side] = np.array([2, 1, 0], np.uint8)[attributes[:, side]]
    return swapped


def load_tokens(work: Path = WORK, shards: list[int] | None = None) -> TokenSet:
    """Everything tokenised so far (or the given shards): pictures first, then their mirror images."""
    shards = token_shards(work) if shards is None else shards
    tokens = np.concatenate([np.load(shard_path(work, "tokens", k)) for k in shards])
    attributes = np.concatenate([np.load(shard_path(work, "attributes", k)) for k in shards])
    cells = np.concatenate([np.load(shard_path(work, "cells", k)) for k in shards])
    seeds = np.concatenate([k * SHARD + np.arange(SHARD) for k in shards])
    flipped = cells.reshape(-1, 16, 16)[:, :, ::-1].reshape(-1, 256)
    return TokenSet(
        tokens=np.concatenate([tokens[:, 0], tokens[:, 1]]),
        attributes=np.concatenate([attributes, mirror_attributes(attributes)]),
        cells=np.concatenate([cells, flipped]),
        seeds=np.concatenate([seeds, seeds]),
        mirrored=np.repeat([False, True], len(seeds)),
    )


def save_whole(path: Path, array: np.ndarray) -> None:
    """Writes the array so that the path never names an incomplete file."""
    part = path.with_suffix(".part")
    with part.open("wb") as stream:
        np.save(stream, array)
    part.rename(path)


def render_shard(work: Path, shard: int) -> None:
    """Renders one shard unless it exists."""
    from models.demo.render.world import SIZE, render_with_cells

    if shard_path(work, "images", shard).exists():
        return
    images = np.empty((SHARD, SIZE, SIZE, 3), np.uint8)
    cells = np.empty((SHARD, 256), bool)
    attributes = np.empty((SHARD, len(ATTRIBUTES)), np.uint8)
    for i in range(SHARD):
        seed = shard * SHARD + i
        scene = scene_of(seed)
        images[i], inside = render_with_cells(scene, seed)
        cells[i], attributes[i] = inside.ravel(), scene.indices()
    save_whole(shard_path(work, "attributes", shard), attributes)
    save_whole(shard_path(work, "cells", shard), cells)
    save_whole(shard_path(work, "images", shard), images)


def render_all(work: Path = WORK, shards: int = 30, step: int = 1, first: int = 0) -> None:
    """Renders shards first, first + step, ... below `shards`; resumable."""
    work.mkdir(parents=True, exist_ok=True)
    for shard in range(first, shards, step):
        render_shard(work, shard)


def tokenise_shard(work: Path, shard: int, encode: Callable[[np.ndarray], np.ndarray]) -> None:
    """Writes the tokens of one shard and of its mirror images unless they exist."""
    path = shard_path(work, "tokens", shard)
    if path.exists():
        return
    images = np.load(shard_path(work, "images", shard), mmap_mode="r")
    tokens = np.empty((len(images), 2, 256), np.uint16)
    for i in range(0, len(images), 50):
        part = images[i : i + 50]
        tokens[i : i + 50, 0], tokens[i : i + 50, 1] = encode(part), encode(part[:, :, ::-1])
    save_whole(path, tokens)


def tokenise_all(work: Path = WORK) -> None:
    """Tokenises all rendered shards with work/vq-codes.pt; resumable."""
    import torch

    from models.demo.training.vq_model import load_tokenizer, to_rgb

    model = load_tokenizer(work / "vq-codes.pt")

    @torch.inference_mode()
    def encode(images: np.ndarray) -> np.ndarray:
        rgb = to_rgb(torch.from_numpy(images.copy()))
        return model.encode(rgb).flatten(1).numpy().astype(np.uint16)

    for shard in image_shards(work):
        tokenise_shard(work, shard, encode)


def main() -> None:
    parser = argparse.ArgumentParser(description="Render or tokenise the demo data set")
    parser.add_argument("stage", choices=["render", "tokenise"])
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--shards", type=int, default=30)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--step", type=int, default=1)
    options = parser.parse_args()
    if options.stage == "render":
        render_all(options.work, options.shards, options.step, options.first)
    else:
        tokenise_all(options.work)


if __name__ == "__main__":
    main()
