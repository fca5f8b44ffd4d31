"""Small folders as SimpleAR is published, a decoder of Cosmos, and an exporter run over them."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from chameleon_files import under_published_names
from export_run import PublishedFiles, save_container
from random_weights import random_weights
from torch import Tensor, nn

from models.cosmos.decoder import CosmosConfig
from models.export.__main__ import main
from models.export.decoder_weights import hugging_face_names
from models.export.image_decoders.cosmos import published_shapes
from models.simplear.config import SimpleARConfig
from models.simplear.network import weight_shapes

FILES = Path(__file__).parents[1] / "golden/cases/simplear/simplear_prompts"
TEXT_IDS = 475
SHAPE = SimpleARConfig(
    vocab_size=TEXT_IDS + 40, dim=32, n_layer=3, n_head=4, n_kv_head=2, ffn_dim=48,
    max_positions=128, rope_base=500.0, norm_eps=1e-3,
)  # fmt: skip
DECODER = CosmosConfig(widths=(4, 8, 8), num_res_blocks=1, z_channels=6)
CONFIG: dict[str, Any] = {"sizes": ["64x64"], "text_length": 48}
State = dict[str, Tensor]


def random_state(config: SimpleARConfig, tied: bool = True, seed: int = 7) -> State:
    """Weights by their names in models.simplear."""
    state = random_weights(weight_shapes(config), seed, 0.5, ("embedding",))
    if tied:
        state["head"] = state["embedding"]
    return state


def published_state(config: SimpleARConfig, state: State, tied: bool) -> State:
    """The same under the published names."""
    own = {name: tensor for name, tensor in state.items() if name != "head" or not tied}
    return under_published_names(config, own, hugging_face_names())


def settings(config: SimpleARConfig, tied: bool) -> dict[str, Any]:
    """Content of config.json."""
    return {
        "architectures": ["SimpARForCausalLM"], "model_type": "qwen2", "vocab_size": config.vocab_size,
        "hidden_size": config.dim, "num_hidden_layers": config.n_layer,
        "num_attention_heads": config.n_head, "num_key_value_heads": config.n_kv_head,
        "intermediate_size": config.ffn_dim, "max_position_embeddings": config.max_positions,
        "rms_norm_eps": config.norm_eps, "rope_theta": config.rope_base,
        "tie_word_embeddings": tied, "use_sliding_window": False, "sliding_window": 64,
    }  # fmt: skip


def save_model(
    folder: Path, config: SimpleARConfig, state: State, container: str, tied: bool = True
) -> Path:
    """A published folder; containers as in save_container."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(settings(config, tied)))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(FILES / name, folder / name)
    save_container(folder, published_state(config, state, tied), container)
    return folder


def decoder_state(config: CosmosConfig) -> State:
    return random_tensors(published_shapes(config), seed=3)


def random_tensors(shapes: Mapping[str, tuple[int, ...]], seed: int) -> State:
    """Random weights under the published names, in their precision."""
    random = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        noise = torch.randn(shape, generator=random)
        state[name] = noise * (math.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.2)
        if name.endswith("norm.weight"):
            state[name] += 1
    return {name: tensor.bfloat16() for name, tensor in state.items()}


def save_decoder(path: Path, state: State) -> Path:
    """A TorchScript archive of modules with these tensors."""
    root = nn.Module()
    for name, tensor in state.items():
        *path_of, last = name.split(".")
        owner = root
        for part in path_of:
            if part not in owner._modules:
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        owner.register_parameter(last, nn.Parameter(tensor, requires_grad=False))
    quantizer = nn.Module()
    quantizer.register_buffer("_levels", torch.tensor([8, 8, 8, 5, 5, 5]))
    root.add_module("inv_quant", nn.Module())
    root.inv_quant.add_module("quantizer", quantizer)
    torch.jit.script(root).save(str(path))
    return path


class Files(PublishedFiles):
    """A published folder with a decoder, and a call of the exporter."""

    def __init__(self, folder: Path, state: State, container: str = "shards") -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        save_model(self.model, SHAPE, state, container)
        self.decoder = save_decoder(folder / "decoder.jit", decoder_state(DECODER))
        self.config = folder / "sizes.json"
        self.config.write_text(json.dumps(CONFIG))

    def export(self, *arguments: object) -> int:
        words = ("simplear", "--model", self.model, "--decoder", self.decoder)
        words = (*words, "--config", self.config, "--out", self.out)
        return main([*map(str, words), *map(str, arguments)])
