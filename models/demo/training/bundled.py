"""The image decoder of a bundle as a network that gradients pass."""

from __future__ import annotations

from pathlib import Path

import torch

from ...archive import archived_state
from ...llamagen.vq import VQModel
from ...vq.blocks import AttnBlock
from ...vq.image_decoder_module import ImageDecoderModule, PixelMix
from .vq_model import CONFIG


def inner(name: str) -> str:
    """The name of a tensor of an attention block: archives may hold q, k, v and what follows beside the norm."""
    blocks, number, rest = name.split(".", 2)
    return f"{blocks}.{number}.mix.{rest}"


@torch.no_grad()
def load_decoder(bundle: Path) -> VQModel:
    """Codebook and decoder in fp32, frozen."""
    vq = VQModel(CONFIG, encoder=False)
    module = ImageDecoderModule(vq)  # shares the weights of vq
    state = archived_state(bundle / "image_decoder.pt")
    known = module.state_dict()
    placed = {
        name if name in known else inner(name): tensor.float() for name, tensor in state.items()
    }
    module.load_state_dict(placed)
    mixes = [block for block in module.modules() if isinstance(block, PixelMix)]
    blocks = [block for block in vq.decoder.blocks() if isinstance(block, AttnBlock)]
    for mix, block in zip(mixes, blocks, strict=True):
        for part, name in enumerate("qkv"):
            conv = getattr(block, name)
            conv.weight.copy_(mix.weight.chunk(3)[part])
            conv.bias.copy_(mix.bias.chunk(3)[part])
    return vq.requires_grad_(False).eval()
