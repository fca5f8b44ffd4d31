"""Features of images in the Inception network, as clean-fid and pytorch-fid compute them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import torch
from PIL.Image import Image

from ..export.checkpoint import read_file
from .errors import EvaluationError, package, weights_file
from .images import batches

FLAG = "--inception-weights"
FILES = {"clean": "inception-2015-12-05.pt", "legacy": "pt_inception-2015-12-05-6726825d.pth"}
PACKAGES = {"clean": "clean-fid", "legacy": "pytorch-fid"}

Extract = Callable[[list[Image]], np.ndarray]


def check(protocol: str, weights: Path | None) -> Path:
    """The weights' file, when the protocol's package is there as well."""
    modules = {"clean": "cleanfid.inception_torchscript", "legacy": "pytorch_fid.inception"}
    package(modules[protocol], PACKAGES[protocol], "fid")
    file = weights_file(weights, FLAG, f"{FILES[protocol]} for {PACKAGES[protocol]}'s protocol")
    if protocol == "clean" and file.name != FILES[protocol]:
        raise EvaluationError(
            f"{FLAG}: got {file.name}, expected {FILES[protocol]}: clean-fid looks for that name"
        )
    return file


def extractor(protocol: str, weights: Path, device: torch.device) -> Extract:
    """A function from images to features fp32 [B, 2048]."""
    make = clean if protocol == "clean" else legacy
    run = make(weights, device)

    def extract(images: list[Image]) -> np.ndarray:
        with torch.inference_mode():
            return run(images).flatten(1).float().cpu().numpy()

    return extract


def clean(weights: Path, device: torch.device) -> Callable[[list[Image]], torch.Tensor]:
    """clean-fid's `clean` mode: every channel is resized in floats by Pillow's bicubic filter."""
    from cleanfid.inception_torchscript import InceptionV3W
    from cleanfid.resize import build_resizer

    network = InceptionV3W(str(weights.parent), download=False).to(device).eval()
    resize = build_resizer("clean")

    def run(images: list[Image]) -> torch.Tensor:
        arrays = np.stack([resize(np.asarray(image)) for image in images])
        return network(torch.from_numpy(arrays).permute(0, 3, 1, 2).to(device))

    return run


def legacy(weights: Path, device: torch.device) -> Callable[[list[Image]], torch.Tensor]:
    """pytorch-fid: the network resizes. All images of a batch have one size."""
    from pytorch_fid import inception

    # The package fetches its weights by address and takes no path.
    with mock.patch.object(
        inception, "load_state_dict_from_url", lambda *_, **__: read_file(weights)
    ):
        network = inception.InceptionV3().to(device).eval()

    def run(images: list[Image]) -> torch.Tensor:
        if len({image.size for image in images}) > 1:
            raise EvaluationError(
                "fid: got images of several sizes, expected one (hint: --resize 256)"
            )
        arrays = np.stack([np.asarray(image) for image in images])
        return network(torch.from_numpy(arrays).permute(0, 3, 1, 2).to(device).float() / 255)[0]

    return run


def features(extract: Extract, files: Sequence[Path], batch: int, side: int | None) -> np.ndarray:
    """fp32 [N, F] of files."""
    return np.concatenate([extract(images) for images in batches(files, batch, side)])
