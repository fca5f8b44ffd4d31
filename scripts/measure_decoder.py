"""Measures time and memory of image decoders with published sizes and random weights.

scripts/measure_decoder.py llamagen --pixels 256 prints a line of JSON. The first image is a warm-up. Memory is the
host memory of the whole process in GiB.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from comparison import PROGRAM
from torch import nn

from models.chameleon.vqgan import VQGAN, VQGANConfig
from models.export.__main__ import main as export
from models.llamagen.config import VQConfig
from models.llamagen.vq import VQModel
from models.lumina2.movqgan import MoVQGAN

MOVQGAN = VQGANConfig(
    ch=256, ch_mult=(1, 2, 2, 4), z_channels=4, embed_dim=4, n_embed=16384, attn_levels=(3,)
)
# The export command of a family, and its tokenizer.
FAMILIES: dict[str, Callable[[], nn.Module]] = {
    "llamagen": lambda: VQModel(VQConfig(), encoder=False),
    "lumina-mgpt": lambda: VQGAN(VQGANConfig(), encoder=False),
    "lumina-mgpt-2": lambda: MoVQGAN(MOVQGAN, encoder=False),
}


def write_bundle(family: str, folder: Path) -> tuple[int, int]:
    """Writes a bundle with only the decoder; returns its number of codes, and the pixels per code on either axis."""
    torch.manual_seed(0)
    model = FAMILIES[family]()
    codes, width = model.quantize.embedding.weight.shape
    with torch.no_grad():
        model.quantize.embedding.weight.copy_(torch.randn(codes, width))
    checkpoint = folder / "vq.pt"
    torch.save(model.state_dict(), checkpoint)
    if export([family, "--vq", str(checkpoint), "--out", str(folder / "bundle")]) != 0:
        raise SystemExit(1)
    checkpoint.unlink()
    return codes, model.config.downsample


def decode(command: list[str | Path]) -> tuple[list[float], float]:
    """Runs the program; returns the milliseconds of every image as it reports them, and its peak memory in GiB."""
    most = 0
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        status = Path(f"/proc/{process.pid}/status")
        while process.poll() is None:
            found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text(encoding="utf-8"))
            most = max(most, int(found[1])) if found else most
            time.sleep(0.02)
        assert process.stderr
        text = process.stderr.read().decode()
    if process.returncode != 0:
        raise SystemExit(text)
    return [float(value) for value in re.findall(r"image ([\d.]+) ms", text)], most / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--pixels", type=int, default=256)
    parser.add_argument("--images", type=int, default=4, help="2 or more")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--program", type=Path, default=PROGRAM, help="program of the engine")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        codes, downsample = write_bundle(options.family, folder)
        side = options.pixels // downsample
        images = [
            {"rows": side, "columns": side, "codes": torch.randint(codes, (side * side,)).tolist()}
            for _ in range(max(2, options.images))
        ]
        content = {"format": "lamplighter codes", "schema": 1, "images": images}
        (folder / "codes.json").write_text(json.dumps(content), encoding="utf-8")
        times, most = decode(
            [
                options.program,
                "decode",
                folder / "codes.json",
                "-m",
                folder / "bundle",
                "-v",
                "-o",
                folder / "%d.png",
                "--device",
                options.device,
                "--dtype",
                options.dtype,
                "-t",
                str(options.threads),
            ]
        )
    result = {"family": options.family, "pixels": options.pixels, "device": options.device}
    result |= {"first_ms": times[0], "image_ms": statistics.median(times[1:]), "gib": most}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
