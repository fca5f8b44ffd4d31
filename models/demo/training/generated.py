"""Images that a bundle generates, with their codes: codes-k.json as the engine writes it, images in the folder k."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from ...eagle.data import BUILD, demo_captions
from ...eagle.features import run_program
from ...progress import Progress
from ...scratch import images_folder
from .vq_model import to_rgb

SHARD = 256
HELD_OUT = 32  # the first images
SEED = 5_000_000  # image i of a data set has the seed SEED + i


def read_codes(path: Path) -> Tensor:
    """int64 [N, 16, 16]."""
    images = json.loads(path.read_text(encoding="utf-8"))["images"]
    return torch.tensor([image["codes"] for image in images]).view(len(images), 16, 16)


def generate_images(
    bundle: Path, folder: Path, shards: int, binary: Path = BUILD / "lamplighter"
) -> None:
    """Generates captions of the training at temperature 1, for the shards that are not there yet."""
    folder.mkdir(parents=True, exist_ok=True)
    captions, progress = demo_captions(shards * SHARD), Progress("images", shards)
    for shard in range(shards):
        done = folder / f"codes-{shard:05d}.json"
        first = shard * SHARD
        if not done.exists():
            with images_folder(done) as temporary:
                prompts = temporary / "prompts.txt"
                prompts.write_text("\n".join(captions[first : first + SHARD]) + "\n", "utf-8")
                part = done.with_suffix(".part")
                command = [binary, "generate", "-q", "-m", bundle, "--prompt-file", prompts]
                command += [
                    "-o",
                    f"{folder / f'{shard:05d}'}/",
                    "--save-codes",
                    part,
                    "--overwrite",
                ]
                command += ["--no-metadata", "--temperature", 1, "--seed", SEED + first]
                run_program([*command, "--batch-size", 8, "-t", 1])
                part.rename(done)
        progress.show(shard + 1)


def read_images(paths: Iterable[Path]) -> Tensor:
    """uint8 [N, h, w, 3]."""
    images = [np.asarray(Image.open(path).convert("RGB")) for path in paths]
    return torch.from_numpy(np.stack(images))


class Generated:
    """The images of a folder, in memory, and batches of those that are not held out."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = np.random.default_rng([37, seed])
        self.codes = torch.cat([read_codes(p) for p in sorted(folder.glob("codes-?????.json"))])
        places = [divmod(number, SHARD) for number in range(len(self.codes))]
        self.images = read_images(folder / f"{k:05d}" / f"{i:04d}.png" for k, i in places)

    def rows(self, rows: np.ndarray) -> tuple[Tensor, Tensor]:
        """rgb [B, 3, 256, 256] in [-1, 1] and codes [B, 16, 16]."""
        return to_rgb(self.images[rows]), self.codes[rows]

    def batch(self, count: int) -> tuple[Tensor, Tensor]:
        return self.rows(self.rng.integers(HELD_OUT, len(self.codes), count))

    def held_out(self) -> tuple[Tensor, Tensor]:
        return self.rows(np.arange(HELD_OUT))

    def known(self) -> tuple[Tensor, Tensor]:
        """As many that are trained on."""
        return self.rows(np.arange(HELD_OUT, 2 * HELD_OUT).clip(max=len(self.codes) - 1))
