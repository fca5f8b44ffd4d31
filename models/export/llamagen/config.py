"""Finds the shapes of LlamaGen checkpoints: from tensors, published sizes and a JSON file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...llamagen.config import GPT_SIZES, PUBLISHED_DOWNSAMPLE, GPTConfig, T5Config, VQConfig
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..common import check_block
from ..config_file import MOST, Section, refuse_quantised
from ..messages import note

STAGES = {1: 256, 2: 512}
T5_SIZES = ("d_model", "d_kv", "num_heads", "d_ff", "vocab_size")
PUBLISHED_DISTANCE, MOST_BUCKETS = 128, 4096
MOST_SIDE = 1 << 16  # pixels or codes
PUBLISHED_FILE = re.compile(
    r"(t2i_XL_stage[12]|c2i_(?:B|L|XL|XXL|3B))_(?P<image>256|384|512)\.pt(?:h)?$"
)


@dataclass
class Hints:
    """Sources of the grid besides the tensors."""

    size: str | None = None
    image_size: int | None = None
    downsample: int | None = None
    file_name: str = ""
    training_args: Any = None


def split_config(whole: Section) -> dict[str, Section]:
    """The blocks gpt, vq, t5 and sampling of a configuration, which may be a single block."""
    names = ("gpt", "vq", "t5", "sampling")
    value, where = whole.values, whole.where
    empty = Section({}, where, exit_code=2)
    if any(name in value for name in names):
        unknown = sorted(set(value) - set(names) - {"kind"})
        if unknown:
            raise ExportError(f"{where}: unknown key {unknown[0]}, expected {', '.join(names)}", 2)
        return {name: whole.section(name) if name in whole else empty for name in names}
    kind = value.get("kind", "")
    if kind == "llamagen_vq" or "decoder_ch_mult" in value:
        block = "vq"
    elif kind == "t5_encoder" or "d_model" in value:
        block = "t5"
    elif kind == "llamagen_gpt" or "n_head" in value:
        block = "gpt"
    else:
        raise ExportError(f"{where}: expected blocks gpt, vq or t5, got {', '.join(value)}", 2)
    return {name: whole if name == block else empty for name in names}


def agree(where: str, name: str, found: Mapping[str, Any]) -> Any:
    """The one value that all sources with a value give; sources are named in the error."""
    known = {source: value for source, value in found.items() if value is not None}
    values = list(known.values())
    if any(value != values[0] for value in values):
        said = ", ".join(f"{source} says {value}" for source, value in known.items())
        raise ExportError(f"{where}: {name} disagrees: {said}")
    return values[0] if values else None


def heads_of(
    state: State, block: Section, hints: Hints, dim: int, layers: int, where: str
) -> tuple[int, int]:
    """Numbers of query and of key/value heads."""
    if hints.size is not None:
        published = GPT_SIZES[hints.size]
        if (published["dim"], published["n_layer"]) != (dim, layers):
            raise ExportError(
                f"{where}: got dim {dim} and {layers} layers, size {hints.size} has dim "
                f"{published['dim']} and {published['n_layer']} layers"
            )
    by_shape = [
        s["n_head"] for s in GPT_SIZES.values() if (s["dim"], s["n_layer"]) == (dim, layers)
    ]
    heads = by_shape[0] if by_shape else None
    if "n_head" in block:
        heads = block.integer("n_head", most=MOST["n_head"])
    if heads is None:
        raise ExportError(
            f"{where}: dim {dim} with {layers} layers is no published size; "
            "give n_head in --config FILE.json"
        )
    name = "layers.0.attention.wqkv.weight"
    rows, columns = shape_of(state, name, 2, where)
    if columns != dim:
        expected = f"[{columns}, {dim}], its transpose" if rows == dim else f"[rows, {dim}]"
        raise ExportError(
            f"{where}: {name} has shape {[rows, columns]}, expected {expected}: tok_embeddings.weight has "
            f"{dim} columns"
        )
    head_dim, rest = divmod(dim, heads)
    kv_heads, odd = divmod(rows - dim, 2 * max(head_dim, 1))
    if rest or odd or kv_heads < 1:
        wrong = f"does not fit dim {dim} and {rows} qkv rows"
        if "n_head" in block:
            raise ExportError(f"{block.where}: {block.prefix}n_head {heads} {wrong} of {where}")
        raise ExportError(f"{where}: n_head {heads} of the published size {wrong}")
    return heads, kv_heads


def grid_of(state: State, block: Section, hints: Hints, prefix: int, where: str) -> int:
    """Side of the token grid; every source that names it must agree."""
    args = hints.training_args
    downsample = agree(
        where,
        "downsample factor",
        {
            "the image tokenizer": hints.downsample,
            "the training command line": trained_size(args, "downsample_size", where),
        },
    )
    downsample = downsample or PUBLISHED_DOWNSAMPLE
    published = PUBLISHED_FILE.search(hints.file_name)
    images = {
        "--image-size": hints.image_size,
        "the training command line": trained_size(args, "image_size", where),
        "the published file name": int(published["image"]) if published else None,
    }
    grids: dict[str, int | None] = {
        f"{source} ({size} px)": int(size) // downsample
        for source, size in images.items()
        if size is not None
    }
    if "block_size" in block:
        grids[f"{block.prefix}block_size of {block.where}"] = math.isqrt(
            block.integer("block_size")
        )
    grids[f"{block.prefix}grid of {block.where}"] = square(block)
    if "freqs_cis" in state:
        rows = shape_of(state, "freqs_cis", 3, where)[0]
        grids["freqs_cis"] = math.isqrt(max(rows - prefix, 0))
    grid = agree(where, "grid", grids)
    if not grid:
        raise ExportError(
            f"{where}: the grid is unknown; give --image-size (stage 1: 256, stage 2: 512)", 2
        )
    if grid < 2:
        raise ExportError(f"{where}: a grid of {grid} x {grid} codes, expected 2 x 2 or more", 2)
    return int(grid)


def trained_size(args: Any, name: str, where: str) -> int | None:
    """A size that the training command line names."""
    value = getattr(args, name, None)
    if value is not None and (type(value) is not int or not 0 < value <= MOST_SIDE):
        raise ExportError(f"{where}: {name} of the training command line is {value!r}")
    return value


def square(block: Section) -> int | None:
    """The key `grid`: a side, or [rows, columns], which must be equal."""
    value = block.values.get("grid")
    if isinstance(value, (list, tuple)):
        if len(value) != 2 or value[0] != value[1]:
            raise block.error("grid", "a square")
        block = Section({"grid": value[0]}, block.where, block.prefix, block.exit_code)
    return block.integer("grid", most=MOST_SIDE) if "grid" in block else None


def gpt_config(state: State, block: Section, hints: Hints, where: str) -> GPTConfig:
    vocabulary, dim = shape_of(state, "tok_embeddings.weight", 2, where)
    layers = count_blocks(state, "layers.")
    heads, kv_heads = heads_of(state, block, hints, dim, layers, where)
    facts: dict[str, Any] = {
        "dim": dim,
        "n_layer": layers,
        "n_head": heads,
        "n_kv_head": kv_heads,
        "ffn_dim": shape_of(state, "layers.0.feed_forward.w1.weight", 2, where)[0],
        "vocab_size": vocabulary,
    }
    extra: dict[str, Any] = {"head_dim": dim // heads}
    if "cls_embedding.embedding_table.weight" in state:
        rows = shape_of(state, "cls_embedding.embedding_table.weight", 2, where)[0]
        facts.update(model_type="c2i", cls_token_num=1, num_classes=rows - 1)
        extra["null_class"] = rows - 1
    else:
        length, width = shape_of(state, "cls_embedding.uncond_embedding", 2, where)
        facts.update(model_type="t2i", cls_token_num=length, caption_dim=width)
    grid = grid_of(state, block, hints, facts["cls_token_num"], where)
    free: dict[str, Any] = {}
    if "rope_base" in block:
        free["rope_base"] = block.rotary_base("rope_base")
    if "norm_eps" in block:
        free["norm_eps"] = block.number("norm_eps", 0.1)
    if "prefix_rotation" in block:
        free["prefix_rotation"] = block.text("prefix_rotation")
    extra.update(free, grid=block.values.get("grid"), block_size=grid * grid, multiple_of=256)
    try:
        config = GPTConfig(**facts, **free, grid=grid)
    except ValueError as error:
        raise ExportError(f"{block.where}: {error}", 2) from error
    check_block(block, {**facts, **extra}, where)
    return config


def vq_config(state: State, block: Section, where: str) -> VQConfig:
    """All of it is in the tensors; without `ch` multipliers are as small as they can be."""
    codes, width = shape_of(state, "quantize.embedding.weight", 2, where)
    levels = count_blocks(state, "decoder.conv_blocks.")
    if not levels:
        raise ExportError(f"{where}: missing key decoder.conv_blocks.0.res.0.conv1.weight")
    blocks = count_blocks(state, "decoder.conv_blocks.0.res.")
    widths = [
        shape_of(state, f"decoder.conv_blocks.{i}.res.0.conv2.weight", 4, where)[0]
        for i in reversed(range(levels))
    ]
    ch = block.integer("ch", math.gcd(*widths), most=min(widths))
    if any(width % ch for width in widths):
        raise block.error("ch", f"a divisor of {', '.join(map(str, widths))}")
    facts: dict[str, Any] = {
        "ch": ch,
        "decoder_ch_mult": tuple(w // ch for w in widths),
        "num_res_blocks": blocks - 1,
        "z_channels": shape_of(state, "post_quant_conv.weight", 4, where)[0],
        "codebook_size": codes,
        "codebook_embed_dim": width,
    }
    facts["encoder_ch_mult"] = facts["decoder_ch_mult"]
    if any(key.startswith("encoder.") for key in state):
        facts["encoder_ch_mult"] = tuple(
            shape_of(state, f"encoder.conv_blocks.{i}.res.0.conv2.weight", 4, where)[0] // ch
            for i in range(count_blocks(state, "encoder.conv_blocks."))
        )
        facts["encoder_res_blocks"] = count_blocks(state, "encoder.conv_blocks.0.res.")
        if len(facts["encoder_ch_mult"]) != levels:
            raise ExportError(
                f"{where}: the encoder has {len(facts['encoder_ch_mult'])} levels, the decoder {levels}"
            )
    side = square(block)
    fixed = {"codebook_l2_norm": True, "norm_groups": 32, "norm_eps": 1e-6}
    extra = {**fixed, "downsample": 2 ** (levels - 1), "grid": side and block.values["grid"]}
    if not any(key.startswith("encoder.") for key in state):
        extra["encoder_ch_mult"] = None  # of no use to the decoder
    check_block(block, {**facts, **extra}, where)
    return VQConfig(**facts)


def t5_config(file: Section, state: State, block: Section) -> T5Config:
    """From the folder's config.json and the table of distances; `block` may only repeat it."""
    activation = file.text("feed_forward_proj", "relu")
    if activation != "gated-gelu":
        raise ExportError(f"{file.where}: feed_forward_proj is {activation}, expected gated-gelu")
    refuse_quantised(file)
    table = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    buckets = shape_of(state, table, 2, file.where)[0]
    file.fixed({"relative_attention_num_buckets": buckets})
    facts: dict[str, Any] = {name: file.integer(name, most=1 << 20) for name in T5_SIZES}
    facts["num_layers"] = file.integer("num_layers", most=1000)
    facts["layer_norm_epsilon"] = file.number("layer_norm_epsilon", 0.1)
    # Files of the first releases leave this one out, whose value the library had in its code.
    key = "relative_attention_max_distance"
    distance = file.integer(key, PUBLISHED_DISTANCE, most=1 << 20)
    if key not in file:
        note(f"{file.where}: leaves out {key}, takes {distance} as the library does")
    config = T5Config(
        **facts,
        relative_attention_num_buckets=buckets,
        relative_attention_max_distance=distance,
    )
    if not 4 <= buckets <= MOST_BUCKETS or distance <= buckets // 4:
        raise ExportError(f"{file.where}: {buckets} buckets do not fit distances up to {distance}")
    extra = {
        "feed_forward": "gated-gelu",
        "rel_buckets": config.relative_attention_num_buckets,
        "rel_max_distance": config.relative_attention_max_distance,
        "layer_norm_eps": config.layer_norm_epsilon,
        "max_length": block.values.get("max_length"),
        "sentencepiece_pieces": None,
        "extra_ids": None,
        "pad": None,
        "eos": None,
        "unk": None,
    }
    check_block(block, {**facts, **extra}, file.where)
    return config
