"""Reads the published decoder.jit of Cosmos' discrete tokenizer: its weights alone, none of its code."""

from __future__ import annotations

from pathlib import Path

import torch

from ...archive import archived_state
from ...cosmos.decoder import RGB, Cosmos, CosmosConfig, Quantizer
from ...cosmos.folding import fold
from .. import checkpoint
from ..checkpoint import ExportError, State, count_blocks, shape_of

IGNORED = ("inv_quant.", "decoder.unpatcher3d.")  # what follows from the quantizer and the patches
WAVELETS = 64  # channels of a colour in front of both inverse stages: 8 a stage
CONTENT = "a decoder.jit of Cosmos' DV8x16x16"


def load_decoder(path: Path, codes: int = 0, text: int = 0) -> Cosmos:
    """The decoder for one frame in fp32; codes and text as in Cosmos.

    ExportError: the file is no archive of this decoder, or its tensors are others.
    """
    state = read_archive(path)
    config = read_config(state, str(path))
    check(state, config, str(path))
    with torch.device("meta"):
        model = Cosmos(config)
    model.quantize = Quantizer(config.levels, codes or config.codes, text)
    table = model.quantize.state_dict(prefix="quantize.")
    checkpoint.load_strictly(model, fold(state, config) | table, str(path))
    return model


def read_archive(path: Path) -> State:
    """Tensors by the names of the published network."""
    if not path.is_file():
        raise ExportError(f"{path}: no such file")
    if not checkpoint.is_script(path):
        checkpoint.read_file(path)  # says what is wrong with files of other kinds
        raise ExportError(f"{path}: got a checkpoint, expected {CONTENT}, a TorchScript archive")
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


def published_shapes(config: CosmosConfig) -> dict[str, tuple[int, ...]]:
    """Names and shapes of the published network's weights."""
    widths, last = config.widths, config.widths[-1]
    shapes = conv_shapes("post_quant_conv", config.z_channels, len(config.levels), 1, 1, 1)
    shapes |= pair_shapes("decoder.conv_in", last, config.z_channels)
    for block in ("block_1", "block_2"):
        shapes |= block_shapes(f"decoder.mid.{block}", last, last)
    for axis in (0, 1):
        name = f"decoder.mid.attn_1.{axis}"
        shapes |= norm_shapes(f"{name}.norm", last)
        for part in ("q", "k", "v", "proj_out"):
            shapes |= conv_shapes(f"{name}.{part}", last, last, 1, 1, 1)
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


def check(state: State, config: CosmosConfig, where: str) -> None:
    shapes = published_shapes(config)
    checkpoint.check_keys(shapes, state, where)
    for name, shape in shapes.items():
        if state[name].shape != shape:
            got = list(state[name].shape)
            raise ExportError(f"{where}: {name} has shape {got}, expected {list(shape)}")
        if not state[name].is_floating_point():
            raise ExportError(f"{where}: {name} is {state[name].dtype}, expected floating point")
