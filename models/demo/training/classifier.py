"""A small classifier of demo images: which subjects, colours, time of day, ground and weather they show.

It is trained on renderings alone, withheld combinations included, and measures generated
images: its answers against the caption, and a Frechet distance in its features.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, IterableDataset

from ...precision import mixed
from ...progress import Progress
from ..render.scene import Scene, sample_any, sample_withheld
from ..render.vocabulary import ATTRIBUTES
from ..render.world import render
from .data import HELD_OUT, held_out, scene_of
from .vq_model import to_rgb
from .vq_train import Clock

CLASSIFIED = (
    "subject",
    "colour",
    "time",
    "ground",
    "background",
    "weather",
    "second",
    "second_colour",
)
COLUMNS = [list(ATTRIBUTES).index(name) for name in CLASSIFIED]
VALUES = [len(ATTRIBUTES[name]) for name in CLASSIFIED]
FEATURES = 128
CLASSIFIER = Path(__file__).resolve().parents[1] / "classifier.pt"


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1, bias=False),
            nn.BatchNorm2d(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x + self.body(x))


class SceneClassifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (48, 80, 128)
        layers: list[nn.Module] = [nn.PixelUnshuffle(8)]
        before = 192
        for i, width in enumerate(widths):
            layers += [
                nn.Conv2d(before, width, 3, 1 if i == 0 else 2, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(),
                Residual(width),
            ]
            before = width
        self.trunk = nn.Sequential(*layers)
        self.embed = nn.Linear(2 * before, FEATURES)
        self.heads = nn.Linear(FEATURES, sum(VALUES))

    def features(self, rgb: Tensor) -> Tensor:
        """[B, FEATURES] of rgb [B, 3, 256, 256] in [-1, 1]."""
        x = self.trunk(rgb).float()
        return F.relu(self.embed(torch.cat([x.mean((2, 3)), x.amax((2, 3))], 1))).float()

    def split(self, features: Tensor) -> list[Tensor]:
        """Logits of every classified attribute."""
        return list(self.heads(features).split(VALUES, -1))


def pixels(images: np.ndarray) -> Tensor:
    """uint8 [B, 256, 256, 3] -> fp32 [B, 3, 256, 256] in [-1, 1]."""
    return to_rgb(torch.from_numpy(np.ascontiguousarray(images)))


def disturb(rgb: Tensor, rng: np.random.Generator) -> Tensor:
    """Shifts and mirrors, and sometimes blurs, so that a decoder's small faults do not matter."""
    shift = [int(s) for s in rng.integers(-12, 13, size=2)]
    rgb = torch.roll(rgb, shift, (2, 3))
    if rng.random() < 0.5:
        rgb = rgb.flip(3)
    if rng.random() < 0.5:
        share = float(rng.random())
        rgb = rgb.lerp(F.avg_pool2d(rgb, 3, 1, 1), share)
    return rgb + 0.04 * float(rng.random()) * torch.randn(rgb.shape)


@torch.inference_mode()
def classify(model: SceneClassifier, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Answers int64 [N, 8] in the order of CLASSIFIED, and features fp32 [N, FEATURES]."""
    answers, features = [], []
    for i in range(0, len(images), 50):
        x = model.features(pixels(images[i : i + 50]))
        answers.append(torch.stack([p.argmax(-1) for p in model.split(x)], 1))
        features.append(x)
    return torch.cat(answers).numpy(), torch.cat(features).numpy()


def held_out_scenes(first: int, count: int) -> list[tuple[int, Scene]]:
    """Seeds and scenes first, first + 1, ... of those that nothing is trained on."""
    seeds = [HELD_OUT * (first + i) for i in range(count)]
    assert held_out(np.array(seeds)).all()
    return [(seed, scene_of(seed)) for seed in seeds]


def withheld_scenes(count: int) -> list[tuple[int, Scene]]:
    """Seeds and scenes of combinations that nothing is trained on."""
    return [(seed, sample_withheld(np.random.default_rng([8, seed]))) for seed in range(count)]


class Examples(IterableDataset):
    """Endless images uint8 [48, 256, 256, 3] and their values int64 [48, 8]."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def __iter__(self):
        rng = np.random.default_rng([41, self.seed])
        while True:
            scenes = [
                sample_withheld(rng) if rng.random() < 0.1 else sample_any(rng) for _ in range(48)
            ]
            images = np.stack([render(s, int(rng.integers(10**9))) for s in scenes])
            yield images, np.stack([s.indices()[COLUMNS] for s in scenes]).astype(np.int64)


def train_classifier(
    seconds: float = 240.0, seed: int = 3, path: Path = CLASSIFIER, workers: int = 1
) -> None:
    """Writes the weights and the accuracy on held-out renderings."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    examples = iter(DataLoader(Examples(seed), batch_size=None, num_workers=workers))
    model = SceneClassifier()
    optimizer = torch.optim.AdamW(model.parameters(), weight_decay=0.01)
    clock, step = Clock(seconds), 0
    progress = Progress("classifier", seconds)
    while (share := clock.progress) < 1:
        optimizer.param_groups[0]["lr"] = 3e-3 * min((step + 1) / 50, 1) * (1 - share) + 1e-5
        images, target = next(examples)
        with mixed("cpu"):
            x = model.features(disturb(to_rgb(images), rng))
        losses = [F.cross_entropy(p, target[:, i]) for i, p in enumerate(model.split(x))]
        loss = torch.stack(losses).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        progress.show(clock.spent)
        if step % 50 == 0:
            progress.log(f"classifier step {step} {clock.spent:.0f} s loss {loss.item():.3f}")
        step += 1
    scenes = [*held_out_scenes(0, 500), *withheld_scenes(100)]
    answers, _ = classify(model.eval(), np.stack([render(scene, seed) for seed, scene in scenes]))
    truth = np.stack([scene.indices()[COLUMNS] for _, scene in scenes])
    accuracy = dict(zip(CLASSIFIED, (answers == truth).mean(0).tolist()))
    print("classifier on held-out renderings:", accuracy, flush=True)
    state = {k: v.half() if v.is_floating_point() else v for k, v in model.state_dict().items()}
    torch.save({"model": state, "accuracy": accuracy}, path)


def load_classifier(path: Path = CLASSIFIER) -> tuple[SceneClassifier, dict[str, float]]:
    """The classifier and its accuracy on held-out renderings."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model = SceneClassifier()
    model.load_state_dict(saved["model"])
    return model.eval(), saved["accuracy"]
