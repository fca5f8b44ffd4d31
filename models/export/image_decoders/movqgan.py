"""Reads MoVQGAN's checkpoints, bare state dicts without a configuration, for the decoder and encoder of a bundle."""

from __future__ import annotations

from pathlib import Path

import torch

from ...bundle import BundleModule
from ...chameleon.vqgan import VQGANConfig
from ...lumina2.movqgan import MoVQGAN
from ...unfilled import unfilled
from ...vq.spatial_decoder_module import SpatialDecoderModule
from .. import checkpoint
from ..checkpoint import ExportError
from ..common import decoder_part, encoder_part
from ..config_file import Section
from .vqgan import ANCHORS, tokenizer_state, vqgan_config

KEY = "decoder.norm_out.conv_y.weight"  # that other tokenizers lack


def movqgan_parts(model: MoVQGAN) -> dict[str, BundleModule]:
    """The image decoder, and the encoder where there is one, in fp32 as the official program runs them."""
    decoder = decoder_part(model.float(), torch.float32, SpatialDecoderModule)
    encoder = encoder_part(model, model.config.downsample, torch.float32)
    return {"image_decoder": decoder, **encoder}


def load_movqgan(path: Path) -> MoVQGAN:
    """The tokenizer in a file, its encoder too where there is one; shapes are read off the tensors.

    ExportError: it is not there, or is none.
    """
    state = checkpoint.unwrap(checkpoint.read_file(path), path, ANCHORS)
    state = tokenizer_state(state, path)
    if KEY not in state:
        raise ExportError(
            f"{path}: missing key {KEY}: this tokenizer's norms do not follow the latent, expected "
            "movqgan_270M.ckpt"
        )
    config: VQGANConfig = vqgan_config(state, Section({}, str(path)), str(path))
    with unfilled():
        model = MoVQGAN(config, encoder=any(key.startswith("encoder.") for key in state))
    checkpoint.load_strictly(model, state, str(path))
    return model
