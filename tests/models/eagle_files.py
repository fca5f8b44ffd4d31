"""Small EAGLE drafters as they are published, and an exporter run over them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.export.__main__ import main
from models.llamagen.config import GPTConfig
from models.llamagen.gpt import GPT

TARGET = GPTConfig(
    dim=32, n_layer=1, n_head=2, ffn_dim=48, vocab_size=40, grid=4, cls_token_num=6, caption_dim=16
)
LLAMAGEN = DrafterConfig(
    hidden=32, heads=4, ffn=24, vocabulary=40, max_length=22, grid=4, prompt_length=6
)
CHAMELEON = replace(
    LLAMAGEN, rotary="line", input_norm=True, qk_norm=True, norm_eps=1e-5, kv_heads=2
)
CONFIGS = {
    "llamagen": LLAMAGEN,
    "chameleon": CHAMELEON,
    "own": replace(LLAMAGEN, fc_bias=False, prefix_rotation="identity", input_norm=True),
}


def random_drafter(config: DrafterConfig) -> Drafter:
    torch.manual_seed(8)
    drafter = Drafter(config).eval().requires_grad_(False)
    for name, weight in drafter.named_parameters():
        weight.uniform_(0.5, 1.5) if "norm" in name else weight.normal_(std=0.2)
    return drafter


def published_settings(config: DrafterConfig) -> dict[str, Any]:
    line = config.rotary == "line"
    return {
        "model_type": "chameleon" if line else "llama",
        "hidden_size": config.hidden,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "intermediate_size": config.ffn,
        "rms_norm_eps": config.norm_eps,
        "rope_theta" if line else "rope_base": config.rope_base,
    }


class Files:
    """A bundle with a target alone, and drafters beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bundle, self.drafter = folder, folder / "bundle", folder / "drafter"
        torch.manual_seed(1)
        model = GPT(TARGET)
        torch.nn.init.normal_(model.output.weight)
        torch.save({"model": model.state_dict()}, folder / "gpt.pt")
        self.head = model.output.weight.detach()
        (folder / "shapes.json").write_text(json.dumps({"gpt": {"n_head": 2, "grid": 4}}))
        options = ["--gpt", "gpt.pt", "--config", "shapes.json", "--out", "bundle"]
        paths = [
            str(folder / word) if "." in word or word == "bundle" else word for word in options
        ]
        assert main(["llamagen", *paths]) == 0

    def save(
        self, settings: dict[str, Any], state: dict[str, Tensor], binary: bool = False
    ) -> None:
        self.drafter.mkdir(exist_ok=True)
        (self.drafter / "config.json").write_text(json.dumps(settings))
        if binary:
            torch.save(state, self.drafter / "pytorch_model.bin")
        else:
            save_file(state, self.drafter / "model.safetensors")

    def attach(self, *arguments: object, drafter: Path | None = None, name: str = "eagle") -> int:
        words = ["--bundle", self.bundle, "--name", name, "--drafter", drafter or self.drafter]
        return main(["drafter", *map(str, [*words, *arguments])])

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.bundle / "manifest.json").read_text())

    def content(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.bundle.iterdir()}

    def load(self, name: str = "eagle") -> torch.jit.ScriptModule:
        module = torch.jit.load(self.bundle / f"drafter-{name}.pt")
        module.prepare(torch.empty(0))
        return module
