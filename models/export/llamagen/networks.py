"""LlamaGen's networks from official checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ...llamagen.gpt import GPT
from ...llamagen.t5 import T5Encoder
from ...llamagen.vq import VQModel
from .. import checkpoint
from ..checkpoint import ExportError
from .config import Hints, gpt_config, t5_config, vq_config
from .folder import read_converted

GPT_CONTAINERS = ("model", "module", "state_dict")
VQ_CONTAINERS = ("model", "ema", "state_dict")


def load_gpt(path: Path, block: dict[str, Any], hints: Hints) -> GPT:
    if path.is_dir():
        state, told = read_converted(path)
        block = {**told, **block}
    else:
        content = checkpoint.read_file(path)
        state = checkpoint.unwrap(content, path, GPT_CONTAINERS)
        hints.training_args = content.get("args")
    config = gpt_config(state, block, hints, str(path))
    with torch.device("meta"):
        model = GPT(config)
    checkpoint.load_strictly(
        model, checkpoint.without(state, ("freqs_cis", ".kv_cache.")), str(path)
    )
    model.reset_rotation()
    return model


def load_vq(path: Path, block: dict[str, Any]) -> VQModel:
    state = checkpoint.unwrap(checkpoint.read_file(path), path, VQ_CONTAINERS)
    state = checkpoint.without(state, ("quantize.codebook_used",))
    config = vq_config(state, block, str(path))
    has_encoder = any(key.startswith(("encoder.", "quant_conv.")) for key in state)
    with torch.device("meta"):
        model = VQModel(config, encoder=has_encoder)
    checkpoint.load_strictly(model, state, str(path))
    return model


def load_t5(folder: Path, block: dict[str, Any]) -> T5Encoder:
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    settings = checkpoint.read_json(folder / "config.json")
    config = t5_config(settings, block, str(folder))
    state = checkpoint.read_folder(folder)
    alias = state.pop("encoder.embed_tokens.weight", None)
    if alias is not None:
        state.setdefault("shared.weight", alias)
    state = {k: v for k, v in state.items() if not k.startswith(("decoder.", "lm_head."))}
    with torch.device("meta"):
        model = T5Encoder(config)
    checkpoint.load_strictly(model, state, str(folder))
    return model
