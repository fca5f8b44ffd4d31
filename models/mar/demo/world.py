"""Classes of the demo's images, one subject at one time of day, and their latents on disk.

Files of SHARD images each, latents-00000.pt and so on in the work folder:

    mean, deviation  fp16 [SHARD, 2, 64, 16]  of the latents; [:, 1] is the mirror image
    classes          int64 [SHARD]

The seed of image i of shard k is k * SHARD + i. A shard is complete as soon as it exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...demo.render.scene import Scene, sample_any
from ...demo.render.vocabulary import SUBJECTS, TIMES
from ...demo.render.world import render
from ...demo.training.vq_model import to_rgb

CLASSES = len(SUBJECTS) * len(TIMES)
SHARD = 500
Moments = Callable[[Tensor], tuple[Tensor, Tensor]]


def class_of(scene: Scene) -> int:
    return SUBJECTS.index(scene.subject) * len(TIMES) + TIMES.index(scene.time)


def class_name(number: int) -> tuple[str, str]:
    """Subject and time of day."""
    return SUBJECTS[number // len(TIMES)], TIMES[number % len(TIMES)]


def halved(rgb: Tensor) -> Tensor:
    """[B,C,256,256] -> [B,C,128,128]."""
    return F.avg_pool2d(rgb, 2)


def scene_of(seed: int) -> Scene:
    """A random scene of one subject."""
    rng = np.random.default_rng([17, seed])
    while (scene := sample_any(rng)).pair:
        pass
    return scene


def shards(work: Path) -> list[Path]:
    return sorted(work.glob("latents-?????.pt"))


def write_shard(work: Path, number: int, moments: Moments) -> None:
    """Renders and encodes a shard, unless it exists. moments: rgb [B,3,h,w] -> mean, log var [B,C,h,w]."""
    path = work / f"latents-{number:05d}.pt"
    if path.exists():
        return
    seeds = range(number * SHARD, (number + 1) * SHARD)
    scenes = [scene_of(seed) for seed in seeds]
    parts = []
    for first in range(0, SHARD, 10):
        images = [render(scenes[i], seeds[i]) for i in range(first, first + 10)]
        rgb = halved(to_rgb(torch.from_numpy(np.stack(images))))
        both = torch.stack([rgb, rgb.flip(3)], 1).flatten(0, 1)
        mean, log_variance = (t.flatten(2).mT.unflatten(0, (-1, 2)) for t in moments(both))
        parts.append((mean.half(), (0.5 * log_variance).exp().half()))
    mean, deviation = (torch.cat(column) for column in zip(*parts, strict=True))
    classes = torch.tensor([class_of(scene) for scene in scenes])
    part = path.with_suffix(".part")
    torch.save({"mean": mean, "deviation": deviation, "classes": classes}, part)
    part.rename(path)


@dataclass
class Latents:
    """Images [N,L,C] and their mirror images as rows of their own, and classes [N]."""

    mean: Tensor
    deviation: Tensor
    classes: Tensor

    @classmethod
    def load(cls, work: Path) -> Latents:
        files = [torch.load(path, weights_only=True) for path in shards(work)]
        mean, deviation = (
            torch.cat([f[k].flatten(0, 1) for f in files]) for k in ("mean", "deviation")
        )
        return cls(mean, deviation, torch.cat([f["classes"] for f in files]).repeat_interleave(2))

    def scale(self) -> tuple[Tensor, Tensor]:
        """Mean and deviation of every channel, fp32 [C]."""
        flat = self.mean.float().flatten(0, 1)
        spread = (flat.var(0) + self.deviation.float().square().mean((0, 1))).sqrt()
        return flat.mean(0), spread

    def batch(self, count: int, scale: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Tokens of unit scale [B,L,C], sampled anew every time, and their classes."""
        rows = torch.randint(len(self.classes), (count,))
        mean, deviation = self.mean[rows].float(), self.deviation[rows].float()
        sampled = mean + deviation * torch.randn_like(mean)
        return (sampled - scale[0]) / scale[1], self.classes[rows]
