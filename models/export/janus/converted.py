"""Janus-Pro in the layout of transformers (model_type janus, deepseek-community/Janus-Pro-1B).

The same tensors under other names; sizes that config.json leaves out are read off them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...janus.config import JanusConfig
from ..checkpoint import ExportError, State, count_blocks, shape_of
from ..config_file import Section, make_config

MODEL_TYPE = "janus"
ANCHORS, BASE = ("language_model.embed_tokens.weight",), "model."
# Beginning of a name -> beginning of DeepSeek's name.
PARTS = {
    "lm_head.": "language_model.lm_head.",
    "model.language_model.": "language_model.model.",
    "model.generation_embeddings.": "gen_embed.",
    "model.generation_aligner.fc1.": "gen_aligner.layers.0.",
    "model.generation_head.proj_out.": "gen_head.output_mlp_projector.",
    "model.generation_head.vision_head.": "gen_head.vision_head.",
    "model.vision_model.": "vision_model.",
    "model.aligner.": "aligner.",
}
ALIGNER = re.compile(r"model\.generation_aligner\.hidden_layers\.([0-9]{1,3})\.")
TOKENIZER = "model.vqmodel."
# Inside the image tokenizer.
BLOCKS = (
    (re.compile(r"^(encoder\.down|decoder\.up)\.(\d+)\.block\."), r"\1.\2.res."),
    (re.compile(r"^(encoder|decoder)\.(down|up)\."), r"\1.conv_blocks."),
    (re.compile(r"^(encoder|decoder)\.mid\.block_1\."), r"\1.mid.0."),
    (re.compile(r"^(encoder|decoder)\.mid\.attn_1\."), r"\1.mid.1."),
    (re.compile(r"^(encoder|decoder)\.mid\.block_2\."), r"\1.mid.2."),
)
FIXED = {"double_latent": False, "out_channels": 3, "hidden_act": "gelu"}


def original_name(name: str) -> str:
    """DeepSeek's name of a tensor; names of no known part stay, to be refused as unexpected."""
    if name.startswith(TOKENIZER):
        inner = name.removeprefix(TOKENIZER)
        for pattern, replacement in BLOCKS:
            inner = pattern.sub(replacement, inner)
        return f"gen_vision_model.{inner}"
    if match := ALIGNER.match(name):  # a GELU stands between two linear layers
        return f"gen_aligner.layers.{2 * int(match[1]) + 2}.{name[match.end() :]}"
    for start, other in PARTS.items():
        if name.startswith(start):
            return other + name.removeprefix(start)
    return name


def original_state(state: State, where: str) -> State:
    result = {original_name(name): tensor for name, tensor in state.items()}
    if len(result) != len(state):
        raise ExportError(f"{where}: two tensors have one name in DeepSeek's layout")
    return result


def janus_config(
    settings: Section, state: State, language_facts: Callable[[Section, Section], dict[str, Any]]
) -> JanusConfig:
    """Sizes by config.json and the tensors; they have to agree."""
    where = settings.where
    codes, code_dim = shape_of(state, "gen_embed.weight", 2, where)
    width = shape_of(state, "gen_head.output_mlp_projector.weight", 2, where)[0]
    linear = {key for key in state if key.startswith("gen_aligner.layers.")}
    depth = len({key.split(".")[2] for key in linear})
    part = settings.section("text_config")
    facts = {
        **language_facts(settings, part),
        "codes": codes,
        "code_dim": code_dim,
        "head_width": width,
        "aligner_depth": max(depth, 1),
    }
    config = make_config(JanusConfig, facts, where, part)
    part.fixed({"head_dim": config.head_dim})
    tokenizer = settings.section("vq_config")
    tokenizer.fixed(FIXED)
    tokenizer.fixed(
        {
            "num_embeddings": codes,
            "embed_dim": code_dim,
            "projection_dim": config.dim,
            "image_token_embed_dim": width,
            "num_hidden_layers": config.aligner_depth,
            "num_res_blocks": count_blocks(state, "gen_vision_model.decoder.conv_blocks.0.res.")
            - 1,
        }
    )
    return config
