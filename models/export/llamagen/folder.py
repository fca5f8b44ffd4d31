"""LANTERN's layout of LlamaGen: a Hugging Face folder with Llama names and q, k, v split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..checkpoint import ExportError, State, check_form, count_blocks, read_folder, shape_of
from ..config_file import Section, language, refuse_quantised, rope_base
from ..decoder_weights import ANCHORS, BASE, hugging_face_names, tie

ROPE_BASE = 10000.0  # a constant of the official code

# Folder name -> official name; the rotation stays interleaved, so no rows are permuted.
OUTER = {
    "model.embed_tokens.": "tok_embeddings.",
    "model.cls_embedding.": "cls_embedding.",
    "model.norm.": "norm.",
    "lm_head.": "output.",
}
INNER = {
    "self_attn.o_proj": "attention.wo",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.up_proj": "feed_forward.w3",
    "mlp.down_proj": "feed_forward.w2",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
}


def official_state(state: State, where: str) -> State:
    """The same tensors under the official names, q, k and v joined; other keys stay as they are."""
    rest = dict(state)
    result: State = {}
    for layer in range(count_blocks(state, "model.layers.")):
        prefix = f"model.layers.{layer}."
        names = [f"{prefix}self_attn.{part}_proj.weight" for part in "qkv"]
        result[f"layers.{layer}.attention.wqkv.weight"] = joined(rest, names, where)
        for old, new in INNER.items():
            key = f"{prefix}{old}.weight"
            if key in rest:
                result[f"layers.{layer}.{new}.weight"] = rest.pop(key)
    for key, tensor in rest.items():
        for old, new in OUTER.items():
            if key.startswith(old):
                key = new + key[len(old) :]
                break
        result[key] = tensor
    return result


def joined(rest: State, names: Sequence[str], where: str) -> Tensor:
    """The rows of these tensors, which are taken out of `rest`, in one table."""
    missing = [name for name in names if name not in rest]
    if missing:
        raise ExportError(f"{where}: missing keys: {', '.join(missing)}")
    width = shape_of(rest, names[0], 2, where)[1]
    for name in names:
        rows, columns = shape_of(rest, name, 2, where)
        if columns != width:
            raise ExportError(
                f"{where}: {name} has shape {[rows, columns]}, expected [{rows}, {width}] as {names[0]}"
            )
        check_form(name, rest[name], where)
    return torch.cat([rest.pop(name) for name in names])


def require_sizes(settings: Section, state: State) -> None:
    """ExportError: sizes of config.json are not the sizes of the weights.

    The program that people run builds its networks by these values.
    """
    tables = {
        "vocab_size": ("model.embed_tokens.weight", 0),
        "hidden_size": ("model.embed_tokens.weight", 1),
        "intermediate_size": ("model.layers.0.mlp.gate_proj.weight", 0),
        "cls_token_num": ("model.cls_embedding.uncond_embedding", 0),
        "caption_dim": ("model.cls_embedding.uncond_embedding", 1),
    }
    for name, (table, side) in tables.items():
        if table in state:
            settings.fixed({name: shape_of(state, table, 2, settings.where)[side]})
    settings.fixed({"num_hidden_layers": count_blocks(state, "model.layers.")})
    keys = "model.layers.0.self_attn.k_proj.weight"
    heads = settings.values.get("num_attention_heads")
    if keys in state and isinstance(heads, int) and "hidden_size" in settings and heads > 0:
        rows = shape_of(state, keys, 2, settings.where)[0]
        width = max(settings.values["hidden_size"] // heads, 1)
        settings.fixed({"num_key_value_heads": rows // width})


def read_converted(folder: Path) -> tuple[State, Section]:
    """Official state dict of the folder, and what its config.json says about shapes.

    Its rms_norm_eps is not used: the weights were trained with the official 1e-5, whatever the
    conversion wrote.
    """
    settings = language(Section.read(folder / "config.json"))
    refuse_quantised(settings)
    settings.fixed({"hidden_act": "silu"})
    block: dict[str, Any] = {"rope_base": rope_base(settings, "rope_base", ROPE_BASE)}
    for name, key in (("n_head", "num_attention_heads"), ("block_size", "block_size")):
        if key in settings:
            block[name] = settings.integer(key)
    state, where = read_folder(folder, ANCHORS, BASE), str(folder)
    tie(hugging_face_names(), state, settings, where)
    require_sizes(settings, state)
    if "model.embed_tokens.weight" in state:
        state.setdefault("lm_head.weight", state["model.embed_tokens.weight"])
    return official_state(state, where), Section(block, settings.where, settings.prefix)
