"""A bundle of continuous tokens whose networks are closed forms: small, fast, and of random look."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from models.bundle import Bundle, BundleModule
from models.recording import Call

CHANNELS, SIDE, STEPS, CLASSES = 4, 4, 5, 7
PIXELS = 8  # a side of a token


class Network(nn.Module):
    """Tokens lean towards the mean of those that are seen, and to what class and position say."""

    def __init__(self, seed: int, shift: float) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.shift = shift
        self.register_buffer("labels", torch.randn(CLASSES + 1, CHANNELS, generator=random))
        self.register_buffer("places", torch.randn(SIDE * SIDE, CHANNELS, generator=random))

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.labels = self.labels.to(like.device)
        self.places = self.places.to(like.device)

    @torch.jit.export
    def context(self, latents: Tensor, visible: Tensor, classes: Tensor) -> Tensor:
        seen = visible.unsqueeze(-1)
        mean = torch.where(seen, latents, torch.zeros_like(latents)).sum(1, keepdim=True)
        mean = mean / seen.sum(1, keepdim=True).clamp_min(1)
        return mean + self.labels[classes].unsqueeze(1) + 0.5 * self.places + self.shift

    @torch.jit.export
    def denoise(
        self, z: Tensor, unconditional: Tensor, scale: Tensor, start: Tensor, noise: Tensor,
        temperature: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
        if unconditional.size(0) > 0:
            z = unconditional + scale.unsqueeze(1) * (z - unconditional)
        x, mean, deviation = start, start, start
        sums = torch.zeros(start.shape, dtype=torch.double, device=start.device)
        for back in range(noise.size(1)):
            i = noise.size(1) - 1 - back
            mean = 0.6 * x + 0.4 * torch.tanh(z)
            log_deviation = torch.cos(x) * 0.1 - (1.0 if i > 0 else 2.0)
            deviation = temperature.unsqueeze(1) * log_deviation.exp()
            if i > 0:
                sums += log_deviation
                x = mean + deviation * noise[:, i]
        return mean, deviation, sums


class ImageDecoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pixels: int = PIXELS

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        pass

    @torch.jit.export
    def decode(self, latents: Tensor) -> Tensor:
        pixels = torch.tanh(latents[:, :3])
        return pixels.repeat_interleave(self.pixels, 2).repeat_interleave(self.pixels, 3)


def write_continuous(folder: Path, steps: int = STEPS) -> Path:
    """With a drafter `small` that is near the target, and one `twin` that is the target."""
    latents = torch.randn(2, SIDE * SIDE, CHANNELS, generator=torch.Generator().manual_seed(1))
    visible = torch.arange(SIDE * SIDE) % 3 == torch.tensor([[0], [1]])
    call = Call("context", [latents, visible, torch.tensor([2, CLASSES])])
    bundle = Bundle("tiny-mar", "mar", "none", "closed forms")
    bundle.modules = {
        "target": BundleModule(Network(3, 0.0), torch.float32, [call]),
        "image_decoder": BundleModule(ImageDecoder(), torch.float32),
    }
    bundle.drafters = {
        name: BundleModule(Network(3, shift), torch.float32, entries={"kind": "continuous"})
        for name, shift in (("small", 0.05), ("twin", 0.0))
    }
    grid = {"width": SIDE * PIXELS, "height": SIDE * PIXELS, "rows": SIDE, "columns": SIDE}
    bundle.entries = {
        "tokens": {"kind": "continuous", "channels": CHANNELS},
        "diffusion": {"steps": steps, "respacing": str(steps)},
        "prompt": {"kind": "class", "length": 1, "align": "end", "classes": CLASSES},
        "grids": [grid],
        "sampling": {"cfg_scale": 2.0, "temperature": 1.0, "schedule": {"kind": "linear"}},
        "target": {"hidden": CHANNELS},
        "decoder": {"downsample": PIXELS, "pixels": "round"},
    }
    bundle.write(folder)
    return folder
