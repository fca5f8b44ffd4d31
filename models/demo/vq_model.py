"""The demo's image tokenizer: LlamaGen's decoder and codebook behind a light encoder."""

from __future__ import annotations

from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.llamagen.config import VQConfig, as_json
from models.llamagen.vq import Encoder, VQModel

CONFIG = VQConfig(
    ch=32,
    encoder_ch_mult=(1, 1, 2, 4),
    decoder_ch_mult=(1, 1, 2, 4),
    num_res_blocks=1,
    z_channels=64,
    codebook_size=1024,
    codebook_embed_dim=8,
)
PATCH = 4  # pixels per side that the encoder folds into channels first


class DemoTokenizer(nn.Module):
    """128x128 pictures <-> 16x16 codes. Only `vq` (codebook and decoder) is needed to draw."""

    def __init__(self, config: VQConfig = CONFIG) -> None:
        super().__init__()
        light = VQConfig(ch=64, encoder_ch_mult=(1, 2), num_res_blocks=1, z_channels=64)
        self.encoder = Encoder(light, in_channels=3 * PATCH * PATCH)
        self.quant_conv = nn.Conv2d(64, config.codebook_embed_dim, 1)
        self.vq = VQModel(config, encoder=False)

    def latents(self, rgb: Tensor) -> Tensor:
        """rgb [B, 3, 128, 128] in [-1, 1] -> unit latents [B, 8, 16, 16]."""
        z = self.quant_conv(self.encoder(F.pixel_unshuffle(rgb, PATCH)))
        return F.normalize(z.float(), dim=1)

    def encode(self, rgb: Tensor) -> Tensor:
        """rgb [B, 3, 128, 128] in [-1, 1] -> int64 codes [B, 16, 16]."""
        return self.vq.quantize.indices(self.latents(rgb))


def to_rgb(images: Tensor) -> Tensor:
    """uint8 [B, 128, 128, 3] -> float [B, 3, 128, 128] in [-1, 1]."""
    return images.permute(0, 3, 1, 2).float() / 127.5 - 1


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
