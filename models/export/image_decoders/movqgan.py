"""Reads MoVQGAN's checkpoints, bare state dicts without a configuration, for the decoder of a bundle."""

from __future__ import annotations

from pathlib import Path

import torch

from ...bundle import BundleModule
from ...chameleon.vqgan import VQGANConfig
from ...lumina2.movqgan import MoVQGAN
from ...vq.spatial_decoder_module import SpatialDecoderModule
from .. import checkpoint
from ..checkpoint import ExportError
from ..common import decoder_part
from .vqgan import ANCHORS, tokenizer_state, vqgan_config

KEY = "decoder.norm_out.conv_y.weight"  # that other tokenizers lack


def movqgan_part(model: MoVQGAN) -> BundleModule:
    """The image decoder, in fp32 as the published program runs it."""
    return decoder_part(model.float(), torch.float32, SpatialDecoderModule)


def load_movqgan(path: Path, encoder: bool = False) -> MoVQGAN:
    """The tokenizer in a file, with its encoder if that is wanted; shapes are read off the tensors.

    ExportError: it is not there, or is none.
    """
    state = checkpoint.unwrap(checkpoint.read_file(path), path, ANCHORS)
    state = tokenizer_state(state, path)
    if KEY not in state:
        raise ExportError(
            f"{path}: missing key {KEY}: this tokenizer's norms do not follow the latent, expected "
            "movqgan_270M.ckpt"
        )
    config: VQGANConfig = vqgan_config(state, {}, str(path))
    if not encoder:
        state = {k: v for k, v in state.items() if not k.startswith(("encoder.", "quant_conv."))}
    with torch.device("meta"):
        model = MoVQGAN(config, encoder)
    checkpoint.load_strictly(model, state, str(path))
    return model
