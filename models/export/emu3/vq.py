"""Reads Emu3's image tokenizer, a network of videos, for the decoder of a bundle."""

from __future__ import annotations

from pathlib import Path

import torch

from ...bundle import BundleModule
from ...emu3.decoder import Emu3VQ
from ...emu3.folding import FRAMES, fold
from ...emu3.frame_module import time_module
from ...vq.blocks import ImageTokenizer
from ...vq.spatial_decoder_module import SpatialDecoderModule
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..common import decoder_part
from ..config_file import Section
from ..image_decoders.vqgan import ALIASES, vqgan_config
from .names import VQ, original_state

ANCHORS = ("quantize.embedding.weight",)
IGNORED = ("encoder.", "quant_conv.")
NAMES = {**ALIASES, "codebook_size": "n_embed"}


def vq_part(model: Emu3VQ) -> BundleModule:
    """The image decoder, in fp32: folded weights are no numbers of the published precision."""
    return decoder_part(model, torch.float32, frame_module)


def frame_module(model: ImageTokenizer) -> SpatialDecoderModule:
    assert isinstance(model, Emu3VQ)
    return SpatialDecoderModule(model, map(time_module, model.over_time))


def read_tokenizer(folder: Path) -> Emu3VQ:
    """The image tokenizer in a folder of its own. ExportError: it is none."""
    settings = Section.read(folder / "config.json")
    if "vq_config" in settings:
        settings = settings.section("vq_config")
    state = checkpoint.read_folder(folder, ANCHORS)
    state = original_state({VQ + name: tensor for name, tensor in state.items()}, str(folder))
    return load_vq(state, settings, str(folder))


def load_vq(state: State, settings: Section, where: str) -> Emu3VQ:
    """The decoder of one frame, of a state by the authors' names behind VQ.

    ExportError: tensors are missing, unknown, or contradict the configuration.
    """
    found = {k.removeprefix(VQ): v for k, v in state.items() if k.startswith(VQ)}
    found = {k: v for k, v in found.items() if not k.startswith(IGNORED)}
    found = checkpoint.without(found, ("num_batches_tracked",))
    if ANCHORS[0] not in found:
        raise ExportError(f"{where}: no image tokenizer, missing key {ANCHORS[0]}")
    blocks = count_blocks(found, "decoder.time_res_stack.")
    doublings = count_blocks(found, "decoder.time_conv.")
    check_time(found, blocks, doublings, where)
    folded = fold(found, blocks, doublings)
    known = {NAMES.get(k, k): v for k, v in settings.values.items() if v is not None}
    config = vqgan_config(folded, known, f"{where} with {settings.where}")
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
    with torch.device("meta"):
        model = Emu3VQ(config, blocks, doublings)
    checkpoint.load_strictly(model, folded, where)
    return model


def check_time(state: State, blocks: int, doublings: int, where: str) -> None:
    """What `fold` reads is there, in the shapes that it needs."""
    width = shape_of(state, ANCHORS[0], 2, where)[1]
    shapes: dict[str, tuple[int, ...]] = {}

    def conv(name: str, *kernel: int) -> None:
        shapes[f"{name}.conv.weight"] = (width, width, FRAMES, *kernel)
        shapes[f"{name}.conv.bias"] = (width,)

    conv("post_quant_conv", 1, 1)
    for block in (f"decoder.time_res_stack.{number}" for number in range(blocks)):
        for number in (1, 2):
            conv(f"{block}.conv{number}", 3, 3)
            for part in ("weight", "bias", "running_mean", "running_var"):
                shapes[f"{block}.norm{number}.{part}"] = (width,)
    for number in range(doublings):
        conv(f"decoder.time_conv.{number}.conv", 3, 3)
    over_time = [n for n in state if n.startswith(("decoder.time_", "post_quant_conv."))]
    checkpoint.check_keys(shapes, over_time, where)
    for name, shape in shapes.items():
        got = shape_of(state, name, len(shape), where)
        if got != list(shape):
            raise ExportError(f"{where}: {name} has shape {got}, expected {list(shape)}")
        checkpoint.check_form(name, state[name], where)
