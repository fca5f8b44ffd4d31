"""What `lamplighter decode` makes of codes, and how float pixels become bytes."""

from __future__ import annotations

import json
from pathlib import Path

import golden_engine as engine
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

from models.bundle import Bundle, BundleModule


def decode(bundle: Path, folder: Path, *grids: Tensor) -> list[Tensor]:
    """What `lamplighter decode` makes of codes [rows, columns] -> uint8 [h, w, 3] each."""
    images = [
        {"rows": g.shape[0], "columns": g.shape[1], "codes": g.flatten().tolist()} for g in grids
    ]
    saved = {"format": "lamplighter codes", "schema": 1, "images": images}
    (folder / "codes.json").write_text(json.dumps(saved), encoding="utf-8")
    words = ("decode", folder / "codes.json", "-m", bundle, "-o", folder / "%d.png", "--overwrite")
    engine.run(engine.BUILD / "lamplighter", *words, "--threads", 1, "--device", "cpu")
    return [read_png(folder / f"{i}.png") for i in range(len(grids))]


def read_png(path: Path) -> Tensor:
    """uint8 [h, w, 3]."""
    return torch.from_numpy(np.array(Image.open(path)))


def assert_truncated(what: str, got: Tensor, expected: Tensor, image: Tensor, edge: float) -> None:
    """Bytes [h, w, 3] of (x + 1) / 2 * 255, cut; one off where `image` [3, h, w] makes it a near thing.

    edge: how near to an integer, in levels.
    """
    assert_steps(what, got, expected, image, edge, 0.0)


def assert_rounded(what: str, got: Tensor, expected: Tensor, image: Tensor, edge: float) -> None:
    """The same for bytes rounded to the nearest."""
    assert_steps(what, got, expected, image, edge, 0.5)


def assert_steps(
    what: str, got: Tensor, expected: Tensor, image: Tensor, edge: float, added: float
) -> None:
    assert got.shape == expected.shape
    level = (image.permute(1, 2, 0).double().clamp(-1, 1) + 1) / 2 * 255 + added
    near = (level - level.round()).abs() <= edge
    off = (got.int() - expected.int()).abs()
    assert int(off.max()) <= 1, f"{what}: off by {int(off.max())}"
    assert not (off.bool() & ~near).any(), f"{what}: off by one where nothing rounds"


class Flat(nn.Module):
    """An image decoder of pixels with one given level each."""

    def __init__(self, levels: Tensor) -> None:
        super().__init__()
        self.register_buffer("table", levels[:, None])

    @torch.jit.export
    def prepare(self, like: Tensor) -> None:
        self.table = self.table.to(like)

    @torch.jit.export
    def decode(self, codes: Tensor) -> Tensor:
        return F.embedding(codes, self.table).permute(0, 3, 1, 2).repeat(1, 3, 1, 1)


def bytes_of(levels: Tensor, rule: str, folder: Path) -> Tensor:
    """What the program saves for grey levels [n] under a rule of the manifest: uint8 [n]."""
    engine.operators()
    bundle = Bundle("levels", "anole", "none", "made by a test")
    bundle.modules["image_decoder"] = BundleModule(Flat(levels), torch.float32)
    bundle.entries["decoder"] = {"codebook_size": len(levels), "downsample": 1, "pixels": rule}
    bundle.write(folder / "bundle")
    (got,) = decode(folder / "bundle", folder, torch.arange(len(levels))[None])
    assert torch.equal(got, got[..., :1].expand_as(got))
    return got[..., 0].flatten()
