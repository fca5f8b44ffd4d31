"""Small folders as DeepSeek publishes Janus-Pro, and an exporter run over them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from chameleon_files import under_published_names
from export_run import PublishedFiles, save_container
from random_weights import random_weights
from torch import Tensor

from models.export.__main__ import main
from models.export.janus.weights import weight_names
from models.janus.config import JanusConfig
from models.janus.network import weight_shapes
from models.llamagen.config import VQConfig
from models.llamagen.vq import VQModel

TOKENIZER = Path(__file__).parents[1] / "golden/cases/janus/janus_prompts/model/tokenizer.json"
SHAPE = JanusConfig(
    text_ids=640, codes=40, code_dim=8, head_width=48, dim=32, n_layer=3, n_head=4, n_kv_head=2,
    ffn_dim=48, max_positions=128, rope_base=500.0, norm_eps=1e-3,
)  # fmt: skip
VQ_SHAPE = VQConfig(
    ch=32, encoder_ch_mult=(1, 1, 1, 1, 2), decoder_ch_mult=(1, 1, 1, 1, 2), num_res_blocks=1,
    z_channels=32, codebook_size=40,
)  # fmt: skip
CONFIG: dict[str, Any] = {"sizes": ["64x64"], "text_length": 32}
State = dict[str, Tensor]


def random_state(config: JanusConfig, seed: int = 7) -> State:
    """Weights by their names in models.janus."""
    return random_weights(weight_shapes(config), seed, 0.3, ("embedding", "codes"))


def published_state(config: JanusConfig, state: State) -> State:
    """The same under the published names, with parts that do not generate beside them."""
    result = under_published_names(config, state, weight_names(config))
    result["language_model.lm_head.weight"] = torch.zeros(config.text_ids, config.dim)
    result["language_model.model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.zeros(4)
    result["vision_model.vision_tower.norm.weight"] = torch.zeros(3)
    result["aligner.layers.0.weight"] = torch.zeros(3, 3)
    torch.manual_seed(4)
    vq = VQModel(VQ_SHAPE).state_dict()
    result |= {f"gen_vision_model.{key}": tensor.clone() for key, tensor in vq.items()}
    result["gen_vision_model.quantize.codebook_used"] = torch.zeros(16)
    return result


def part(cls: str, **params: Any) -> dict[str, Any]:
    return {"cls": cls, "model_type": "part", "params": params}


def settings(config: JanusConfig) -> dict[str, Any]:
    """Content of config.json."""
    width = config.dim
    return {
        "model_type": "multi_modality",
        "gen_vision_config": part("VQ-16", image_token_size=config.codes, n_embed=config.code_dim),
        "gen_aligner_config": part("MlpProjector", projector_type="mlp_gelu", n_embed=width,
                                   depth=config.aligner_depth, input_dim=config.code_dim),
        "gen_head_config": part("vision_head", n_embed=width, image_token_embed=config.head_width,
                                image_token_size=config.codes),
        "aligner_config": part("MlpProjector", projector_type="mlp_gelu"),
        "language_config": {
            "model_type": "llama", "hidden_size": width, "num_hidden_layers": config.n_layer,
            "num_attention_heads": config.n_head, "num_key_value_heads": config.n_kv_head,
            "intermediate_size": config.ffn_dim, "vocab_size": config.text_ids,
            "max_position_embeddings": config.max_positions, "rms_norm_eps": config.norm_eps,
            "rope_theta": config.rope_base,
        },
    }  # fmt: skip


def save_model(folder: Path, config: JanusConfig, state: State, container: str) -> Path:
    """A published folder; containers as in save_container."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings(config)))
    (folder / "processor_config.json").write_text(json.dumps({"sft_format": "deepseek"}))
    shutil.copyfile(TOKENIZER, folder / "tokenizer.json")
    save_container(folder, published_state(config, state), container)
    return folder


class Files(PublishedFiles):
    """A published folder and a call of the exporter."""

    def __init__(self, folder: Path, state: State, container: str = "bin shards") -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        save_model(self.model, SHAPE, state, container)
        self.config = folder / "sizes.json"
        self.config.write_text(json.dumps(CONFIG))

    def export(self, *arguments: object) -> int:
        words = ("janus", "--model", self.model, "--config", self.config, "--out", self.out)
        return main([*map(str, words), *map(str, arguments)])
