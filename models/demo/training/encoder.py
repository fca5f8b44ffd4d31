"""Trains the image encoder for the codebook and the image decoder of a bundle, which stay as they are.

Images that the bundle generates have known codes; the loss is the cross entropy of these among all codes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...precision import mixed
from .bundled import load_decoder
from .generated import Generated, generate_images
from .vq_model import ImageEncoder
from .vq_train import Training, apply_gradients, optimisers, rate, save_state, set_rates

RATE = 0.02
IMAGES = 8  # of a step
SHARDS = 4  # of generated images
CONTRAST = 100.0  # factor on cosines at the start; it is learnt
PACE = 10.0  # how much faster its logarithm is learnt than a weight


class EncoderTraining(Training):
    name = "encoder"
    REPORT = 500

    def __init__(self, work: Path, bundle: Path, seed: int) -> None:
        torch.manual_seed(seed)
        self.vq = load_decoder(bundle)
        self.table = self.vq.quantize.table().detach()
        self.encoder = ImageEncoder()
        self.contrast = nn.Parameter(torch.tensor(CONTRAST).log() / PACE)
        nets = nn.ModuleDict({"encoder": self.encoder})
        nets.register_parameter("contrast", self.contrast)
        self.weights = list(nets.parameters())
        super().__init__(work, {"nets": nets}, optimisers(list(nets.named_parameters()), RATE))
        self.generated = Generated(work / "generated", seed + self.step)

    def batches(self, seed: int, workers: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Generated images and their codes."""
        while True:
            yield self.generated.batch(IMAGES)

    def cosines(self, rgb: Tensor) -> Tensor:
        """Of the latents with all codes, [B * h * w, codes]."""
        with mixed("cpu"):
            z = self.encoder(rgb)
        return F.normalize(z.float(), dim=1).movedim(1, -1).flatten(0, 2) @ self.table.T

    @torch.no_grad()
    def encode(self, rgb: Tensor) -> Tensor:
        return self.cosines(rgb).argmax(1).view(len(rgb), 16, 16)

    def reconstruct(self, rgb: Tensor) -> Tensor:
        with mixed("cpu"):
            return self.vq.decode_code(self.encode(rgb)).float()

    def update(self, rgb: Tensor, codes: Tensor) -> float:
        """One step; the loss."""
        logits = (PACE * self.contrast).exp() * self.cosines(rgb)
        loss = F.cross_entropy(logits, codes.flatten())
        loss.backward()
        apply_gradients(self.weights, self.optims)
        self.step += 1
        return loss.item()

    def advance(self, rgb: Tensor, codes: Tensor, progress: float) -> tuple[str, float]:
        set_rates(self.optims, rate(progress, self.step))
        return self.name, self.update(rgb, codes)

    def remark(self, images: Tensor) -> str:
        parts = (self.generated.held_out(), self.generated.known())
        shares = [100 * float((self.encode(rgb) == codes).float().mean()) for rgb, codes in parts]
        return " same codes %.2f %%, of trained images %.2f %%" % tuple(shares)


def train_encoder(work: Path, bundle: Path, seconds: float, seed: int = 3) -> None:
    """Generates work/generated and writes work/encoder.pt."""
    generate_images(bundle, work / "generated", SHARDS)
    training = EncoderTraining(work, bundle, seed)
    training.run(seconds, seed, workers=0)
    save_state(work / "encoder.pt", training.encoder.state_dict())
