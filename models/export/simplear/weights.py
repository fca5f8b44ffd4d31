"""Reads a published SimpleAR folder: sizes from config.json, weights tensor by tensor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...simplear.config import SimpleARConfig
from ...simplear.network import weight_shapes
from .. import checkpoint
from ..checkpoint import ExportError
from ..decoder_weights import DecoderWeights, hugging_face_names

MODEL_TYPES = ("qwen2", "simpar_qwen2", "simpar")
# Names of Qwen2's configuration; keys that equal its defaults, those of SimpleARConfig, may be left out.
QWEN = {
    "vocab_size": "vocab_size", "dim": "hidden_size", "n_layer": "num_hidden_layers",
    "n_head": "num_attention_heads", "n_kv_head": "num_key_value_heads",
    "ffn_dim": "intermediate_size", "max_positions": "max_position_embeddings",
    "rope_base": "rope_theta", "norm_eps": "rms_norm_eps",
}  # fmt: skip
FIXED = {"hidden_act": "silu", "rope_scaling": None, "use_sliding_window": False}
HEAD = "lm_head.weight"


@dataclass
class Weights(DecoderWeights):
    """The tensors of a folder."""

    config: SimpleARConfig

    def __post_init__(self) -> None:
        """ExportError: tensors are missing, unknown, or contradict the configuration."""
        self.state = checkpoint.without(self.state, ("rotary_emb.inv_freq",))
        self.require(weight_shapes(self.config))


def read_folder(folder: Path) -> Weights:
    """ExportError: no SimpleAR folder, or its files contradict each other."""
    if not folder.is_dir():
        raise ExportError(f"{folder}: no such folder")
    where = folder / "config.json"
    settings = checkpoint.read_json(where)
    config = simplear_config(settings, where)
    state, names = checkpoint.read_folder(folder), hugging_face_names()
    if settings.get("tie_word_embeddings", False):
        names["head"] = names["embedding"]
        state.pop(HEAD, None)  # a second copy
    return Weights(state, config, names, str(folder))


def simplear_config(settings: Mapping[str, Any], where: Path) -> SimpleARConfig:
    """Sizes by config.json."""
    kind = settings.get("model_type")
    if kind not in MODEL_TYPES:
        raise ExportError(f"{where}: model_type is {kind}, expected {MODEL_TYPES[0]}")
    for name, expected in FIXED.items():
        if settings.get(name, expected) != expected:
            raise ExportError(f"{where}: {name} is {settings[name]}, expected {expected}")
    facts = {new: settings[old] for new, old in QWEN.items() if settings.get(old) is not None}
    if "n_head" in facts and settings.get("num_key_value_heads", 0) is None:
        facts["n_kv_head"] = facts["n_head"]  # what the library takes null for
    if "vocab_size" not in facts:
        raise ExportError(f"{where}: vocab_size is missing, expected ids of text and codes")
    for name, value in facts.items():
        kinds = (int, float) if name in ("rope_base", "norm_eps") else (int,)
        if isinstance(value, bool) or not isinstance(value, kinds) or value <= 0:
            raise ExportError(f"{where}: {name} is {value}, expected a positive number")
    try:
        config = SimpleARConfig(**facts)
    except ValueError as error:
        raise ExportError(f"{where}: {error}") from error
    if settings.get("head_dim") not in (None, config.head_dim):
        raise ExportError(
            f"{where}: head_dim is {settings['head_dim']}, expected {config.head_dim}"
        )
    return config
