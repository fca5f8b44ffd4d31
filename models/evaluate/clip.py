"""Embeddings of images and captions: CLIP, and HPSv2, which is a CLIP trained on preferences."""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL.Image import Image
from torch import Tensor

from ..export.checkpoint import read_file
from .errors import EvaluationError, package, weights_file

CLIP_FLAG, HPS_FLAG = "--clip-weights", "--hpsv2-weights"


@dataclass(frozen=True)
class Protocol:
    """How a CLIP score is computed: network, words before every caption, factor of the cosine."""

    model: str  # open-clip-torch's name
    weights: str
    prefix: str = ""
    scale: float = 1.0


PROTOCOLS = {
    "lantern": Protocol("ViT-B-32-quickgelu", "OpenAI's ViT-B-32.pt", "A photo depicts "),
    "b16": Protocol("ViT-B-16-quickgelu", "OpenAI's ViT-B-16.pt", scale=100.0),
}
HPS = Protocol("ViT-H-14", "HPS_v2.1_compressed.pt")


@dataclass(frozen=True)
class Embedder:
    """Embeddings [B, C] of images, and of their captions."""

    protocol: Protocol
    device: torch.device
    network: Any
    preprocess: Callable[[Image], Tensor]
    tokenize: Callable[[list[str]], Tensor]

    @torch.inference_mode()
    def images(self, images: list[Image]) -> np.ndarray:
        pixels = torch.stack([self.preprocess(image) for image in images]).to(self.device)
        return self.network.encode_image(pixels).float().cpu().numpy()

    @torch.inference_mode()
    def texts(self, captions: list[str]) -> np.ndarray:
        ids = self.tokenize([self.protocol.prefix + caption for caption in captions])
        return self.network.encode_text(ids.to(self.device)).float().cpu().numpy()


def offline() -> None:
    """Keeps every hub from being asked: weights come from paths alone."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE"):
        os.environ[name] = "1"


def check_clip(protocol: str, weights: Path | None) -> Path:
    package("open_clip", "open-clip-torch", "clip")
    return weights_file(weights, CLIP_FLAG, PROTOCOLS[protocol].weights)


def check_hps(weights: Path | None) -> Path:
    package("open_clip", "open-clip-torch", "hpsv2")
    try:
        package("hpsv2.src.open_clip", "hpsv2", "hpsv2")
    except FileNotFoundError as error:
        raise EvaluationError(
            f"hpsv2: its package lacks {error.filename} (hint: copy the file of that name from open_clip's)"
        ) from error
    return weights_file(weights, HPS_FLAG, HPS.weights)


def read_state(file: Path) -> dict[str, Tensor]:
    """Weights by name, of a checkpoint or of one of OpenAI's TorchScript archives."""
    if zipfile.is_zipfile(file):
        with zipfile.ZipFile(file) as archive:
            scripted = any(name.endswith("/constants.pkl") for name in archive.namelist())
        if scripted:
            state = torch.jit.load(str(file), map_location="cpu").state_dict()
            return {
                name: tensor
                for name, tensor in state.items()
                if name not in ("input_resolution", "context_length", "vocab_size")
            }
    state = read_file(file)
    return state.get("state_dict", state)


def fill(network: torch.nn.Module, file: Path, flag: str) -> None:
    try:
        network.load_state_dict(read_state(file))
    except RuntimeError as error:
        line = str(error).splitlines()[0]
        raise EvaluationError(f"{flag}: {file}: weights of another network ({line})") from error


def clip_embedder(name: str, weights: Path, device: torch.device) -> Embedder:
    import open_clip

    protocol = PROTOCOLS[name]
    logging.getLogger().setLevel(logging.ERROR)  # it warns of weights that are filled in below
    network, _, preprocess = open_clip.create_model_and_transforms(protocol.model)
    fill(network, weights, CLIP_FLAG)
    tokenize = open_clip.get_tokenizer(protocol.model)
    return Embedder(protocol, device, network.to(device).eval(), preprocess, tokenize)


def hps_embedder(weights: Path, device: torch.device) -> Embedder:
    """HPSv2's network and its preparation of images, as `hpsv2.score` uses them, without its downloads."""
    from hpsv2.src import open_clip

    network, _, preprocess = open_clip.create_model_and_transforms(
        HPS.model, None, light_augmentation=True, aug_cfg={}, output_dict=True
    )
    fill(network, weights, HPS_FLAG)
    tokenize = open_clip.get_tokenizer(HPS.model)
    return Embedder(HPS, device, network.to(device).eval(), preprocess, tokenize)
