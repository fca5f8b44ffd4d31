"""Small official-looking Chameleon checkpoints and an exporter run over them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from export_run import ExportRun
from safetensors.torch import save_file
from torch import Tensor

from models.chameleon.config import ChameleonConfig
from models.chameleon.vqgan import VQGANConfig
from models.export.__main__ import main
from models.export.chameleon.weights import HUGGING_FACE, META
from models.transformer.config import DecoderConfig

SHAPE = ChameleonConfig(
    dim=32, n_layer=3, n_head=4, n_kv_head=2, ffn_dim=48, vocab_size=80, max_positions=64
)
VQ_SHAPE = VQGANConfig(
    ch=32, ch_mult=(1, 2), num_res_blocks=1, z_channels=6, embed_dim=5, n_embed=20, attn_levels=(1,)
)
IDS = {
    "codebook_size": 40, "end_of_image": 44, "begin_of_image": 45, "separator": 46, "row_end": 47,
    "size_base": 48,
}  # fmt: skip
CONFIG: dict[str, Any] = {"tokens": IDS, "sizes": ["64x64"], "text_length": 8}


def separate_halves(rows: Tensor, heads: int) -> Tensor:
    """Rows 2i and 2i + 1 of every head moved to i and i + D/2: Hugging Face's order."""
    return rows.unflatten(0, (heads, -1, 2)).transpose(1, 2).reshape(rows.shape).contiguous()


def official_parts(
    config: DecoderConfig, state: dict[str, Tensor]
) -> Iterator[tuple[str, list[Tensor]]]:
    """Weights of a decoder split into what official files keep apart."""
    queries, keys = config.n_head * config.head_dim, config.n_kv_head * config.head_dim
    for name, tensor in state.items():
        part = name.rpartition(".")[2]
        sizes = {
            "wqkv": [queries, keys, keys],
            "bqkv": [queries, keys, keys],
            "w13": [config.ffn_dim] * 2,
            "qk_norm_weight": [config.n_head, config.n_kv_head],
            "qk_norm_bias": [config.n_head, config.n_kv_head],
        }.get(part, [tensor.shape[0]])
        yield name, [t.clone() for t in tensor.split(sizes)]


def under_published_names(
    config: DecoderConfig, state: dict[str, Tensor], names: Mapping[str, tuple[str, ...]]
) -> dict[str, Tensor]:
    """The tensors of a Hugging Face folder; names: as in models.export.decoder_weights."""
    counts, result = (config.n_head, config.n_kv_head), {}
    for name, parts in official_parts(config, state):
        _, layer, part = name.split(".") if name.startswith("layers.") else ("", "", name)
        if part in ("wqkv", "bqkv"):
            parts[:2] = [separate_halves(t, n) for t, n in zip(parts, counts, strict=False)]
        for source, piece in zip(names[part], parts, strict=True):
            result[source.format(layer)] = piece
    return result


def official_state(
    config: ChameleonConfig, state: dict[str, Tensor], layout: str
) -> dict[str, Tensor]:
    """Layouts: meta, fork (one norm for all heads), lumina (one norm, halves), heads (D norms)."""
    names = META if layout == "meta" else HUGGING_FACE
    counts, result = (config.n_head, config.n_kv_head), {}
    for name, parts in official_parts(config, state):
        part = name.rpartition(".")[2]
        if part.startswith("qk_norm_") and layout != "heads":
            parts = [t[:1] for t in parts]
        if layout in ("lumina", "heads") and part == "wqkv":
            turned = [separate_halves(t, n) for t, n in zip(parts, counts, strict=False)]
            parts = [*turned, parts[2]]
        if layout in ("lumina", "heads") and part.startswith("qk_norm_"):
            parts = [separate_halves(t.flatten(), len(t)).view_as(t) for t in parts]
        elif part.startswith("qk_norm_"):
            parts = [t[0] for t in parts]
        layer = name.split(".")[1] if name.startswith("layers.") else ""
        for source, tensor in zip(names[part], parts, strict=True):
            result[source.format(layer)] = tensor.contiguous()
    return result


def settings(config: ChameleonConfig, layout: str) -> dict[str, Any]:
    """Content of params.json or config.json."""
    if layout == "meta":
        model = {"dim": config.dim, "n_layers": config.n_layer, "n_heads": config.n_head,
                 "n_kv_heads": config.n_kv_head, "norm_eps": config.norm_eps,
                 "rope_theta": config.rope_base, "swin_norm": config.swin_norm}  # fmt: skip
        return {"model": model}
    return {
        "model_type": "chameleon", "hidden_size": config.dim, "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head, "num_key_value_heads": config.n_kv_head,
        "intermediate_size": config.ffn_dim, "vocab_size": config.vocab_size, "hidden_act": "silu",
        "max_position_embeddings": config.max_positions, "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope_base, "rope_scaling": None, "swin_norm": config.swin_norm,
    }  # fmt: skip


def save_model(
    folder: Path, config: ChameleonConfig, state: dict[str, Tensor], layout: str, shards: int = 1
) -> Path:
    """A folder as it is published."""
    folder.mkdir(parents=True)
    official = official_state(config, state, layout)
    if layout == "meta":
        torch.save({**official, "rope.freqs": torch.zeros(4)}, folder / "consolidated.pth")
        (folder / "params.json").write_text(json.dumps(settings(config, layout)))
        return folder
    (folder / "config.json").write_text(json.dumps(settings(config, layout)))
    names = list(official)
    if shards == 1:
        save_file(official, folder / "model.safetensors")
        return folder
    files = {
        f"model-{i + 1:05d}-of-{shards:05d}.safetensors": names[i::shards] for i in range(shards)
    }
    for file, keys in files.items():
        save_file({key: official[key] for key in keys}, folder / file)
    index = {"weight_map": {key: file for file, keys in files.items() for key in keys}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


def piece_of_code(code: int) -> str:
    return "IMGIMG" + "".join("ABCDEFGHIJ"[int(digit)] for digit in str(code)) + "Z"


def tokenizer(folder: Path, added: dict[str, int] | None = None, **changes: int) -> Path:
    """A tokenizer.json of SHAPE's vocabulary; changes: ids of pieces."""
    pieces = {
        "<s>": 0,
        "</s>": 2,
        "<eoss>": 44,
        "<racm3:break>": 45,
        "<reserved08706>": 46,
        "a": 70,
    }
    pieces.update({piece_of_code(code): 4 + code for code in range(40)})
    pieces.update(changes)
    special = {"<s>": pieces.pop("<s>"), **(added or {})}
    path = folder / "tokenizer.json"
    content = {
        "model": {"type": "BPE", "vocab": pieces, "merges": []},
        "added_tokens": [{"content": text, "id": number} for text, number in special.items()],
    }
    path.write_text(json.dumps(content))
    return path


class Files(ExportRun):
    """A checkpoint in a folder and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        self.config = folder / "config.json"
        self.write_config(CONFIG)

    def write_config(self, value: Any) -> None:
        self.config.write_text(json.dumps(value))

    def export(self, family: str, *arguments: object) -> int:
        return main([family, "--out", str(self.out), *map(str, arguments)])

    def export_model(self, *arguments: object, family: str = "anole") -> int:
        return self.export(family, "--model", self.model, "--config", self.config, *arguments)
