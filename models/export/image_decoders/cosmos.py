"""Reads the published decoder.jit and encoder.jit of Cosmos' discrete tokenizer: their weights alone, none of
their code."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from ...archive import archived_state
from ...bundle import BundleModule
from ...cosmos.decoder import RGB, Cosmos, CosmosConfig, Quantizer
from ...cosmos.encoder import Bound, CosmosEncoder
from ...cosmos.encoder_module import FiniteEncoderModule
from ...cosmos.folding import fold, fold_encoder
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..common import decoder_part, encoder_part

# What follows from the quantizer and the patches.
IGNORED = ("inv_quant.", "decoder.unpatcher3d.", "quantizer.", "encoder.patcher3d.")
WAVELETS = 64  # channels of a colour in front of both inverse stages: 8 a stage
CONTENT, ENCODER = (f"{half}.jit of Cosmos' DV8x16x16" for half in ("a decoder", "an encoder"))


def cosmos_parts(model: Cosmos) -> dict[str, BundleModule]:
    """The image decoder, and the encoder where there is one, in fp32: folded weights are no numbers of the
    published precision."""
    downsample = model.config.downsample
    encoder = encoder_part(model, downsample, torch.float32, FiniteEncoderModule)
    return {"image_decoder": decoder_part(model, torch.float32), **encoder}


def load_cosmos(path: Path, codes: int = 0, text: int = 0, encoder: Path | None = None) -> Cosmos:
    """The tokenizer for one frame in fp32, with its encoder if that is given; codes and text as in Quantizer.

    ExportError: a file is no archive of this decoder or encoder, or its tensors are others.
    """
    state = read_archive(path, CONTENT)
    config = read_config(state, str(path))
    check(state, published_shapes(config), str(path))
    folded = fold(state, config)
    width = 0
    if encoder:
        state = read_archive(encoder, ENCODER)
        width = shape_of(state, "encoder.conv_in.0.conv3d.weight", 5, str(encoder))[0]
        check(state, encoder_shapes(config, width), str(encoder))
        folded |= fold_encoder(state, config)
    with unfilled():
        model = CosmosEncoder(config, width) if encoder else Cosmos(config)
    model.quantize = Quantizer(config.levels, codes or config.codes, text)
    folded |= model.quantize.state_dict(prefix="quantize.")
    if isinstance(model, CosmosEncoder):
        model.bound = Bound(config.levels)
        folded |= model.bound.state_dict(prefix="bound.")
    checkpoint.load_strictly(model, folded, str(path))
    return model


def read_archive(path: Path, content: str) -> State:
    """Tensors by the names of the published network."""
    if not path.is_file():
        raise ExportError(f"{path}: no such file")
    if not checkpoint.is_script(path):
        checkpoint.read_file(path)  # says what is wrong with files of other kinds
        raise ExportError(f"{path}: got a checkpoint, expected {content}, a TorchScript archive")
    try:
        state = archived_state(path)
    except RuntimeError as error:
        raise checkpoint.damaged(path, error) from error
    return {name: tensor for name, tensor in state.items() if not name.startswith(IGNORED)}


def read_config(state: State, where: str) -> CosmosConfig:
    levels = count_blocks(state, "decoder.up.")
    if not levels:
        raise ExportError(f"{where}: missing key decoder.up.0.*, expected {CONTENT}")
    widths = tuple(
        shape_of(state, f"decoder.up.{level}.block.0.conv2.0.conv3d.weight", 5, where)[0]
        for level in range(levels)
    )
    blocks = count_blocks(state, "decoder.up.0.block.")
    channels = shape_of(state, "post_quant_conv.conv3d.weight", 5, where)[0]
    config = CosmosConfig(widths, blocks - 1, channels)
    if config.downsample != CosmosConfig().downsample:
        raise ExportError(f"{where}: a cell has {config.downsample} pixels, expected {CONTENT}")
    return config


def conv_shapes(name: str, outputs: int, inputs: int, *kernel: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.conv3d.weight": (outputs, inputs, *kernel), f"{name}.conv3d.bias": (outputs,)}


def pair_shapes(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """A convolution within frames and one over time."""
    return conv_shapes(f"{name}.0", outputs, inputs, 1, 3, 3) | conv_shapes(
        f"{name}.1", outputs, outputs, 3, 1, 1
    )


def norm_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.norm.weight": (width,), f"{name}.norm.bias": (width,)}


def block_shapes(name: str, width: int, width_in: int) -> dict[str, tuple[int, ...]]:
    shapes = norm_shapes(f"{name}.norm1", width_in) | norm_shapes(f"{name}.norm2", width)
    shapes |= pair_shapes(f"{name}.conv1", width, width_in)
    shapes |= pair_shapes(f"{name}.conv2", width, width)
    if width != width_in:
        shapes |= conv_shapes(f"{name}.nin_shortcut", width, width_in, 1, 1, 1)
    return shapes


def middle_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """The blocks at the lowest resolution."""
    shapes = {}
    for block in ("block_1", "block_2"):
        shapes |= block_shapes(f"{name}.{block}", width, width)
    for axis in (0, 1):
        shapes |= norm_shapes(f"{name}.attn_1.{axis}.norm", width)
        for part in ("q", "k", "v", "proj_out"):
            shapes |= conv_shapes(f"{name}.attn_1.{axis}.{part}", width, width, 1, 1, 1)
    return shapes


def encoder_shapes(config: CosmosConfig, width: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the published encoder's weights; width: of its first convolution."""
    shapes = conv_shapes("quant_conv", len(config.levels), config.z_channels, 1, 1, 1)
    shapes |= pair_shapes("encoder.conv_in", width, RGB * WAVELETS)
    for level, wide in enumerate(config.widths):
        name = f"encoder.down.{level}"
        for block in range(config.num_res_blocks):
            shapes |= block_shapes(f"{name}.block.{block}", wide, width)
            width = wide
        if level < len(config.widths) - 1:
            shapes |= conv_shapes(f"{name}.downsample.conv1", wide, wide, 1, 3, 3)
            shapes |= conv_shapes(f"{name}.downsample.conv2", wide, wide, 3, 1, 1)
            shapes |= conv_shapes(f"{name}.downsample.conv3", wide, wide, 1, 1, 1)
    shapes |= middle_shapes("encoder.mid", width)
    shapes |= norm_shapes("encoder.norm_out", width)
    return shapes | pair_shapes("encoder.conv_out", config.z_channels, width)


def published_shapes(config: CosmosConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the published decoder's weights."""
    widths, last = config.widths, config.widths[-1]
    shapes = conv_shapes("post_quant_conv", config.z_channels, len(config.levels), 1, 1, 1)
    shapes |= pair_shapes("decoder.conv_in", last, config.z_channels)
    shapes |= middle_shapes("decoder.mid", last)
    for level, (width, width_in) in enumerate(zip(widths, (*widths[1:], last), strict=True)):
        for block in range(config.num_res_blocks + 1):
            inputs = width if block else width_in
            shapes |= block_shapes(f"decoder.up.{level}.block.{block}", width, inputs)
        if level > 0:
            name = f"decoder.up.{level}.upsample"
            shapes |= conv_shapes(f"{name}.conv1", width, width, 3, 1, 1)
            shapes |= conv_shapes(f"{name}.conv2", width, width, 1, 3, 3)
            shapes |= conv_shapes(f"{name}.conv3", width, width, 1, 1, 1)
    shapes |= norm_shapes("decoder.norm_out", widths[0])
    return shapes | pair_shapes("decoder.conv_out", RGB * WAVELETS, widths[0])


def check(state: State, shapes: Mapping[str, tuple[int, ...]], where: str) -> None:
    checkpoint.check_keys(shapes, state, where)
    for name, shape in shapes.items():
        if state[name].shape != shape:
            got = list(state[name].shape)
            raise ExportError(f"{where}: {name} has shape {got}, expected {list(shape)}")
        if not state[name].is_floating_point():
            raise ExportError(f"{where}: {name} is {state[name].dtype}, expected floating point")
