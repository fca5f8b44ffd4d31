"""Reads the files of Tar's de-tokenizer: sizes from tensors and from the arguments beside them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from ...tar.config import DetokenizerConfig, TaTokConfig
from ...tar.ta_tok import TaTok
from ...transformer.plain import layer_shapes
from ...unfilled import unfilled
from ..checkpoint import (
    ExportError,
    State,
    count_blocks,
    load_strictly,
    read_file,
    shape_of,
    unwrap,
    usable,
    without,
)
from ..config_file import MOST, Section
from ..decoder_weights import DecoderWeights

ANCHOR, CODEBOOK = "tok_embeddings.weight", "bottleneck.regularizer.embedding.weight"
HEAD_DIM = 64  # of all sizes that the published program names
MODEL_TYPE = "clip_cond"  # its word for conditions that are features
BLOCK = "layers.{}."
NAMES = {
    "embedding": ("tok_embeddings.weight",),
    "norm": ("norm.weight",),
    "head": ("output.weight",),
    "wqkv": (BLOCK + "attention.wqkv.weight",),
    "wo": (BLOCK + "attention.wo.weight",),
    "w13": (BLOCK + "feed_forward.w1.weight", BLOCK + "feed_forward.w3.weight"),
    "w2": (BLOCK + "feed_forward.w2.weight",),
    "attention_norm": (BLOCK + "attention_norm.weight",),
    "ffn_norm": (BLOCK + "ffn_norm.weight",),
}
BESIDE = {
    "condition": "clip_proj.weight",
    "condition_bias": "clip_proj.bias",
    "places": "abs_pe",
}
# Tensors of the half of TA-Tok that reads images, and of heads that nothing reads.
UNUSED = (
    "encode_task_layer.", "bottleneck.in_linear.", "scale_layer.", "decoder.head.", "teacher.",
    "regularizer.stochastic_temperature_inv",
)  # fmt: skip


@dataclass
class Detokenizer:
    """The network's tensors; `beside` are those that no decoder has."""

    config: DetokenizerConfig
    weights: DecoderWeights
    beside: dict[str, Tensor]

    def read(self, name: str) -> Tensor:
        """One weight by the names of models.tar.target_module."""
        return self.beside[name] if name in self.beside else self.weights.read(name)


def arguments_of(content: Any, path: Path) -> Section:
    """How the published program makes the model: `args` beside the tensors."""
    model = content.get("model") if isinstance(content, Mapping) else None
    args = model.get("args") if isinstance(model, Mapping) else None
    if not isinstance(args, Mapping):
        raise ExportError(f"{path}: no model.args, expected a file of csuhan/TA-Tok")
    return Section(dict(args), str(path), "model.args.")


def tensors_of(content: Any, path: Path, anchor: str) -> State:
    """The tensors beside these arguments."""
    return unwrap(content["model"].get("sd"), path, (anchor,))


def read_network(path: Path, given: Section) -> Detokenizer:
    """ExportError: the file is no de-tokenizer's."""
    content = read_file(path)
    arguments = arguments_of(content, path)
    arguments.fixed({"model_type": MODEL_TYPE, "frame_prediction": False})
    state = tensors_of(content, path, ANCHOR)
    where = str(path)
    config = network_config(state, arguments, given, where)
    shapes = {
        "condition": [config.dim, config.features],
        "condition_bias": [config.dim],
        "places": [1, config.positions, config.dim],
    }
    beside = {}
    for name, source in BESIDE.items():
        if shape_of(state, source, len(shapes[name]), where) != shapes[name]:
            got = list(state[source].shape)
            raise ExportError(f"{where}: {source} has shape {got}, expected {shapes[name]}")
        beside[name] = usable(source, state.pop(source), where)
    beside["places"] = beside["places"][0]
    weights = DecoderWeights(state, config, NAMES, where, adjacent=True)
    ids = (config.vocab_size, config.dim)
    weights.require({"embedding": ids, **layer_shapes(config), "norm": ids[1:], "head": ids})
    return Detokenizer(config, weights, beside)


def network_config(
    state: State, arguments: Section, given: Section, where: str
) -> DetokenizerConfig:
    """Sizes; the condition's and the image's share the learned positions."""
    vocabulary, dim = shape_of(state, ANCHOR, 2, where)
    heads = given.integer("n_head", dim // HEAD_DIM or 1, most=MOST["n_head"])
    rows = shape_of(state, "layers.0.attention.wqkv.weight", 2, where)[0]
    head_dim, rest = divmod(dim, heads)
    kv_heads, odd = divmod(rows - dim, 2 * max(head_dim, 1))
    if rest or odd or kv_heads < 1:
        raise ExportError(
            f"{where}: {heads} heads do not fit a width of {dim} and {rows} rows of wqkv; give n_head in "
            "--config FILE"
        )
    side = square_of(arguments, "max_seq_len")
    positions = shape_of(state, BESIDE["places"], 3, where)[1]
    prompt = positions + 1 - side**2
    if prompt < 1 or math.isqrt(prompt) ** 2 != prompt:
        raise ExportError(
            f"{where}: abs_pe has {positions} positions, which leave {prompt} to codes of TA-Tok beside "
            f"{side} x {side} codes of the image, expected a square"
        )
    arguments.fixed({"cls_token_num": prompt})
    try:
        return DetokenizerConfig(
            dim=dim,
            n_layer=count_blocks(state, "layers."),
            n_head=heads,
            n_kv_head=kv_heads,
            ffn_dim=shape_of(state, "layers.0.feed_forward.w1.weight", 2, where)[0],
            vocab_size=vocabulary,
            norm_eps=arguments.number("norm_eps", 0.1, 1e-5),
            features=shape_of(state, BESIDE["condition"], 2, where)[1],
            prompt_side=math.isqrt(prompt),
            side=side,
        )
    except ValueError as error:
        raise ExportError(f"{where}: {error}") from error


def square_of(section: Section, name: str) -> int:
    """Side of a square; the argument is the number of its codes."""
    side = math.isqrt(section.integer(name, least=4))
    if side**2 != section.integer(name):
        raise section.error(name, "a square")
    return side


def read_ta_tok(path: Path) -> TaTok:
    """ExportError: the file is none of TA-Tok."""
    content = read_file(path)
    bottleneck = arguments_of(content, path).section("bottleneck").section("args")
    regularizer = bottleneck.section("regularizer")
    if regularizer.text("name") != "simvq":
        raise regularizer.error("name", "simvq")
    unit = regularizer.section("args").flag("l2_normalized", False)
    state = decoding_half(tensors_of(content, path, CODEBOOK))
    config = ta_tok_config(state, unit, str(path))
    with unfilled():
        model = TaTok(config)
    load_strictly(model, state, str(path))
    return model


def decoding_half(state: State) -> State:
    """Its tensors; transformers 4 has one more word in their names than transformers 5."""
    kept = {k: v for k, v in state.items() if not k.startswith("encoder.")}
    named = {k.replace("decoder.vision_model.", "decoder.", 1): v for k, v in kept.items()}
    return without(named, UNUSED)


def ta_tok_config(state: State, unit_codes: bool, where: str) -> TaTokConfig:
    codes, width = shape_of(state, CODEBOOK, 2, where)
    embeddings, blocks = "decoder.embeddings.", "decoder.encoder.layers."
    places, dim = shape_of(state, f"{embeddings}position_embedding.weight", 2, where)
    layers = count_blocks(state, blocks)
    if dim % TaTokConfig.HEADS or math.isqrt(places) ** 2 != places:
        raise ExportError(
            f"{where}: got features of width {dim} and {places} positions, expected a width for "
            f"{TaTokConfig.HEADS} heads and a square"
        )
    ffn = shape_of(state, f"{blocks}0.mlp.fc1.weight", 2, where)[0] if layers else 1
    return TaTokConfig(
        codes=codes,
        code_width=width,
        dim=dim,
        layers=layers,
        ffn=ffn,
        places=places,
        unit_codes=unit_codes,
    )
