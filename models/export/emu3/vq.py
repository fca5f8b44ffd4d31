"""Reads image tokenizers for a bundle: Emu3's, a network of videos, and the decoder of Emu3.5's, of images."""

from __future__ import annotations

from pathlib import Path

import torch

from ...bundle import BundleModule
from ...chameleon.vqgan import VQGAN
from ...emu3.decoder import Emu3VQ
from ...emu3.folding import FRAMES, HALVING_FRAMES, TIME, fold
from ...emu3.frame_module import time_module
from ...unfilled import unfilled
from ...vq.blocks import ImageTokenizer
from ...vq.image_encoder_module import ImageEncoderModule
from ...vq.spatial_decoder_module import SpatialDecoderModule
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..common import decoder_part, encoder_part
from ..config_file import Section
from ..image_decoders.vqgan import ALIASES, load_vqgan, vqgan_config
from .names import VQ, original_state

ANCHORS = ("quantize.embedding.weight",)
WEIGHTS_35, SETTINGS_35 = "model.ckpt", "config.yaml"  # files of Emu3.5's tokenizer
NAMES = {**ALIASES, "codebook_size": "n_embed"}


def vq_parts(model: VQGAN) -> dict[str, BundleModule]:
    """The image decoder, and the encoder where there is one, in fp32: folded weights are no numbers of the
    published precision."""
    if not isinstance(model, Emu3VQ):
        return {"image_decoder": decoder_part(model, torch.float32)}
    encoder = encoder_part(model, model.config.downsample, torch.float32, encoder_module)
    return {"image_decoder": decoder_part(model, torch.float32, frame_module), **encoder}


def frame_module(model: ImageTokenizer) -> SpatialDecoderModule:
    assert isinstance(model, Emu3VQ)
    return SpatialDecoderModule(model, map(time_module, model.over_time))


def encoder_module(model: ImageTokenizer) -> ImageEncoderModule:
    assert isinstance(model, Emu3VQ)
    return ImageEncoderModule(model, map(time_module, model.encoder_over_time))


def read_tokenizer(folder: Path) -> VQGAN:
    """The image tokenizer in a folder of its own. ExportError: it is none."""
    if any((folder / name).is_file() for name in (WEIGHTS_35, SETTINGS_35)):
        # Without the half that reads images: its codes are rows of the largest products, no nearest ones.
        return load_vqgan(folder / WEIGHTS_35, folder / SETTINGS_35, encoder=False)
    settings = Section.read(folder / "config.json")
    if "vq_config" in settings:
        settings = settings.section("vq_config")
    state = checkpoint.read_folder(folder, ANCHORS)
    state = original_state({VQ + name: tensor for name, tensor in state.items()}, str(folder))
    return load_vq(state, settings, str(folder))


def load_vq(state: State, settings: Section, where: str) -> Emu3VQ:
    """The tokenizer for one frame, of a state by the official names behind VQ; its encoder where there is one.

    ExportError: tensors are missing, unknown, or contradict the configuration.
    """
    found = {k.removeprefix(VQ): v for k, v in state.items() if k.startswith(VQ)}
    found = checkpoint.without(found, ("num_batches_tracked",))
    if ANCHORS[0] not in found:
        raise ExportError(f"{where}: no image tokenizer, missing key {ANCHORS[0]}")
    blocks = count_blocks(found, "decoder.time_res_stack.")
    doublings = count_blocks(found, "decoder.time_conv.")
    encoder = any(name.startswith("encoder.") for name in found)
    check_time(found, blocks, doublings, encoder, where)
    folded = fold(found, blocks, doublings, encoder)
    config = vqgan_config(folded, settings.renamed(NAMES), where)
    settings.fixed(
        {
            "num_attention_heads": 1,
            "temporal_downsample_factor": 2**doublings,
            "num_res_blocks": blocks,
            "attn_resolutions": list(config.attn_levels),
        }
    )
    if config.embed_dim != config.z_channels:
        raise ExportError(
            f"{where}: codes have {config.embed_dim} numbers and latents {config.z_channels}, "
            "expected as many"
        )
    with unfilled():
        model = Emu3VQ(config, blocks, doublings, encoder)
    checkpoint.load_strictly(model, folded, where)
    return model


def check_time(state: State, blocks: int, doublings: int, encoder: bool, where: str) -> None:
    """What `fold` reads is there, in the shapes that it needs."""
    width = shape_of(state, ANCHORS[0], 2, where)[1]
    shapes: dict[str, tuple[int, ...]] = {}

    def conv(name: str, *kernel: int) -> None:
        shapes[f"{name}.conv.weight"] = (width, width, *kernel)
        shapes[f"{name}.conv.bias"] = (width,)

    def half(name: str, quantisation: str, frames: int) -> None:
        conv(quantisation, FRAMES, 1, 1)
        for block in (f"{name}.time_res_stack.{number}" for number in range(blocks)):
            for number in (1, 2):
                conv(f"{block}.conv{number}", FRAMES, 3, 3)
                for part in ("weight", "bias", "running_mean", "running_var"):
                    shapes[f"{block}.norm{number}.{part}"] = (width,)
        for number in range(doublings):
            conv(f"{name}.time_conv.{number}.conv", frames, 3, 3)

    half("decoder", "post_quant_conv", FRAMES)
    if encoder:
        half("encoder", "quant_conv", HALVING_FRAMES)
    over_time = [n for n in state if n.startswith((*TIME, "quant_conv.", "post_quant_conv."))]
    checkpoint.check_keys(shapes, over_time, where)
    for name, shape in shapes.items():
        got = shape_of(state, name, len(shape), where)
        if got != list(shape):
            raise ExportError(f"{where}: {name} has shape {got}, expected {list(shape)}")
        checkpoint.check_form(name, state[name], where)
