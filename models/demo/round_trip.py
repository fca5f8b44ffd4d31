"""Measures the image encoder of a demo bundle, with the engine's commands.

    python -m models.demo.round_trip models/demo/bundle -n 100

Images of held-out captions are generated and encoded: the share of codes that are the same again, and the PSNR between the
images and what their codes decode to. Held-out renderings are encoded and decoded: the PSNR. --search STEPS compares the
latter with the best codes that a search finds: STEPS of gradient descent on each image's latents, from the encoder's codes.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from ..eagle.features import run_program
from .evaluate import BINARY
from .render.captions import caption
from .training.bundled import load_decoder
from .training.classifier import held_out_scenes
from .training.generated import read_codes, read_images
from .training.vq_model import to_rgb
from .training.vq_train import validation

RATE = 0.05  # of the search, on latents of unit length
SEARCHED = 8  # renderings


def psnr(one: Tensor, other: Tensor) -> Tensor:
    """dB [N] of images in uint8; 99 for equal ones."""
    squared = (one.double() - other.double()).square().mean((1, 2, 3)) / 255**2
    return -10 * torch.log10(squared.clamp(min=10**-9.9))


class Engine:
    def __init__(self, binary: Path, bundle: Path, folder: Path) -> None:
        self.binary, self.bundle, self.folder = binary, bundle, folder

    def run(self, command: str, *words: object) -> None:
        run_program([self.binary, command, "-q", "-m", self.bundle, "-t", 1, *words])

    def generate(self, captions: list[str]) -> tuple[list[Path], Tensor]:
        prompts, codes = self.folder / "prompts.txt", self.folder / "generated.json"
        prompts.write_text("\n".join(captions) + "\n", encoding="utf-8")
        words = ("--prompt-file", prompts, "--save-codes", codes, "--batch-size", 8)
        self.run("generate", *words, "-o", f"{self.folder / 'generated'}/")
        return sorted((self.folder / "generated").glob("*.png")), read_codes(codes)

    def encode(self, images: list[Path]) -> tuple[Tensor, Tensor]:
        """Codes of the images, and the images of these codes."""
        codes = self.folder / "encoded.json"
        self.run("encode", *images, "-o", codes, "--overwrite")
        self.run("decode", codes, "-o", self.folder / "decoded-%d.png", "--overwrite")
        paths = [self.folder / f"decoded-{number}.png" for number in range(len(images))]
        return read_codes(codes), read_images(paths)


def searched(bundle: Path, image: Tensor, codes: Tensor, steps: int) -> float:
    """dB of the best codes on a descent from `codes`."""
    vq = load_decoder(bundle)
    table, target = vq.quantize.table(), to_rgb(image[None])
    latents = table[codes[None]].movedim(-1, 1).clone().requires_grad_()
    optimiser = torch.optim.Adam([latents], lr=RATE)
    best = 0.0
    for _ in range(steps):
        unit = F.normalize(latents, dim=1)
        chosen = torch.einsum("bdhw,kd->bhwk", unit.detach(), table).argmax(-1)
        hard = table[chosen].movedim(-1, 1)
        output = vq.decode(unit + (hard - unit).detach())
        shown = ((output.detach().clamp(-1, 1) + 1) * 127.5).round().permute(0, 2, 3, 1)
        best = max(best, float(psnr(shown, image[None])[0]))
        (output - target).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m models.demo.round_trip", description=__doc__.splitlines()[0]
    )
    parser.add_argument("bundle", type=Path)
    parser.add_argument(
        "-n", type=int, default=100, help="images of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--search",
        type=int,
        default=0,
        metavar="STEPS",
        help=f"for the first {SEARCHED} renderings",
    )
    parser.add_argument("--binary", type=Path, default=BINARY)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(2024)
    captions = [caption(scene, rng) for _, scene in held_out_scenes(0, options.n)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        engine = Engine(options.binary, options.bundle, folder)
        images, codes = engine.generate(captions)
        found, again = engine.encode(images)
        same = (found == codes).float().mean((1, 2))
        quality = psnr(read_images(images), again)
        print(
            f"generated: {100 * same.mean():.2f} % of the codes, at least {100 * same.min():.1f} % of an image's"
        )
        print(
            f"generated: PSNR {quality.mean():.2f} dB, median {quality.median():.2f}, least {quality.min():.2f}"
        )
        rendered = ((validation(options.n) + 1) * 127.5).round().byte().permute(0, 2, 3, 1)
        paths = [folder / f"rendered-{number}.png" for number in range(options.n)]
        for path, image in zip(paths, rendered):
            Image.fromarray(image.numpy()).save(path)
        found, again = engine.encode(paths)
        quality = psnr(rendered, again)
        print(
            f"rendered: PSNR {quality.mean():.2f} dB, median {quality.median():.2f}, least {quality.min():.2f}"
        )
        if options.search:
            first = range(min(SEARCHED, options.n))
            best = [searched(options.bundle, rendered[i], found[i], options.search) for i in first]
            print(
                f"the first {len(best)}: {quality[: len(best)].mean():.2f} dB, searched {np.mean(best):.2f} dB"
            )


if __name__ == "__main__":
    main()
