"""The demo's image tokenizer: LlamaGen's decoder and codebook; pictures are encoded patch by patch."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.llamagen.config import VQConfig, as_json
from models.llamagen.vq import VQModel

CONFIG = VQConfig(
    ch=32,
    encoder_ch_mult=(1, 1, 2, 4),
    decoder_ch_mult=(1, 1, 2, 4),
    num_res_blocks=1,
    z_channels=64,
    codebook_size=1024,
    codebook_embed_dim=8,
)
PATCH = 8  # pixels per side of the square that one code stands for
FEATURES = 48  # width of the space in which patches are compared


class DemoTokenizer(nn.Module):
    """128x128 pictures <-> 16x16 codes. Only `vq` (codebook and decoder) is needed to draw.

    A patch gets the code whose centre is nearest in a linear feature space (patch_codes.py).
    """

    def __init__(self, config: VQConfig = CONFIG) -> None:
        super().__init__()
        self.vq = VQModel(config, encoder=False)
        self.register_buffer("projection", torch.zeros(3 * PATCH * PATCH, FEATURES))
        self.register_buffer("centres", torch.zeros(config.codebook_size, FEATURES))

    def encode(self, rgb: Tensor) -> Tensor:
        """rgb [B, 3, 128, 128] in [-1, 1] -> int64 codes [B, 16, 16]."""
        patches = F.pixel_unshuffle(rgb, PATCH).movedim(1, -1)
        half = self.centres.square().sum(1) / 2
        return (patches @ self.projection @ self.centres.T - half).argmax(-1)


def to_rgb(images: Tensor) -> Tensor:
    """uint8 [B, 128, 128, 3] -> float [B, 3, 128, 128] in [-1, 1].

    Contiguous, because training is two to three times slower in the channels-last layout.
    """
    return images.permute(0, 3, 1, 2).contiguous().float() / 127.5 - 1


def save_tokenizer(model: DemoTokenizer, path: Path) -> None:
    """{"model": decoder and codebook under the official keys in fp16, "encoder", "config"}."""
    state = {k: v.half() for k, v in model.vq.state_dict().items()}
    encoder = {k: v for k, v in model.state_dict().items() if not k.startswith("vq.")}
    part = path.with_suffix(".part")
    torch.save({"model": state, "encoder": encoder, "config": as_json(model.vq.config)}, part)
    part.rename(path)


def load_tokenizer(path: Path) -> DemoTokenizer:
    """The inverse of `save_tokenizer`; fp32."""
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model = DemoTokenizer(VQConfig(**saved["config"]))
    model.vq.load_state_dict({k: v.float() for k, v in saved["model"].items()})
    model.load_state_dict(saved["encoder"], strict=False)
    return model.eval()
