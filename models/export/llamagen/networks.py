"""LlamaGen's networks from official checkpoints."""

from __future__ import annotations

from pathlib import Path

from ...llamagen.gpt import GPT
from ...llamagen.t5 import T5Encoder
from ...llamagen.vq import VQModel
from ...unfilled import unfilled
from .. import checkpoint
from ..checkpoint import ExportError
from ..config_file import Section
from ..messages import note
from ..shards import same
from .config import Hints, gpt_config, t5_config, vq_config
from .folder import read_converted

GPT_ANCHORS = ("tok_embeddings.weight",)
VQ_ANCHORS = ("quantize.embedding.weight",)
T5_ANCHORS = ("encoder.block.0.layer.0.SelfAttention.q.weight",)


def load_gpt(path: Path, block: Section, hints: Hints) -> GPT:
    if path.is_dir():
        state, found = read_converted(path)
        where = f"{block.where} over {found.where}" if block.values else found.where
        block = Section({**found.values, **block.values}, where, block.prefix, block.exit_code)
    else:
        content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, GPT_ANCHORS)
        hints.training_args = content.get("args")
    config = gpt_config(state, block, hints, str(path))
    with unfilled():
        model = GPT(config)
    checkpoint.load_strictly(
        model, checkpoint.without(state, ("freqs_cis", ".kv_cache.")), str(path)
    )
    return model


def load_vq(path: Path, block: Section) -> VQModel:
    state = checkpoint.unwrap(checkpoint.read_file(path), path, VQ_ANCHORS)
    state = checkpoint.without(state, ("quantize.codebook_used",))
    config = vq_config(state, block, str(path))
    has_encoder = any(key.startswith(("encoder.", "quant_conv.")) for key in state)
    with unfilled():
        model = VQModel(config, encoder=has_encoder)
    checkpoint.load_strictly(model, state, str(path))
    return model


def load_t5(folder: Path, block: Section) -> T5Encoder:
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    state = checkpoint.read_folder(folder, T5_ANCHORS)
    config = t5_config(Section.read(folder / "config.json"), state, block)
    alias = state.pop("encoder.embed_tokens.weight", None)
    if alias is not None and not same(state.setdefault("shared.weight", alias), alias):
        note(f"{folder}: encoder.embed_tokens.weight differs from shared.weight, which is taken")
    state = {k: v for k, v in state.items() if not k.startswith(("decoder.", "lm_head."))}
    with unfilled():
        model = T5Encoder(config)
    checkpoint.load_strictly(model, state, str(folder))
    return model
