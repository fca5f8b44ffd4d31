"""Small official-looking LlamaGen files and an exporter run over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun
from safetensors.torch import save_file

from models.export.__main__ import main
from models.llamagen.config import GPTConfig, T5Config, VQConfig

GPT_SHAPE = GPTConfig(
    dim=32, n_layer=2, n_head=2, ffn_dim=48, vocab_size=40, grid=4, cls_token_num=6, caption_dim=16
)
VQ_SHAPE = VQConfig(
    ch=32, encoder_ch_mult=(1, 1), decoder_ch_mult=(1, 1), num_res_blocks=0, z_channels=32,
    codebook_size=40,
)  # fmt: skip
T5_SHAPE = T5Config(d_model=16, d_kv=8, num_heads=2, d_ff=24, num_layers=2, vocab_size=160)
CONFIG: dict[str, Any] = {"gpt": {"n_head": 2, "grid": 4}}


class Files(ExportRun):
    """Checkpoints in a folder and a call of the exporter."""

    def __init__(self, folder: Path, states: dict[str, dict[str, torch.Tensor]]) -> None:
        self.folder, self.states = folder, states
        self.gpt, self.vq, self.t5 = folder / "gpt.pt", folder / "vq.pt", folder / "t5"
        self.config, self.out = folder / "config.json", folder / "bundle"
        self.save_gpt()
        torch.save({"model": states["vq"]}, self.vq)
        self.write_config(CONFIG)

    def save_gpt(self, container: str | None = "model", **more: Any) -> None:
        state = dict(self.states["gpt"])
        torch.save({container: state, **more} if container else {**state, **more}, self.gpt)

    def write_config(self, value: Any) -> None:
        self.config.write_text(json.dumps(value))

    def save_t5(self, spiece: Path | None, **tensors: torch.Tensor) -> None:
        self.t5.mkdir()
        if spiece:
            (self.t5 / "spiece.model").write_bytes(spiece.read_bytes())
        settings = {**T5_SHAPE.__dict__, "feed_forward_proj": "gated-gelu"}
        (self.t5 / "config.json").write_text(json.dumps(settings))
        (self.t5 / "tokenizer_config.json").write_text('{"extra_ids": 7}')
        if tensors:
            save_file(tensors, self.t5 / "model.safetensors")

    def export(self, *arguments: object) -> int:
        return main(["llamagen", "--out", str(self.out), *map(str, arguments)])

    def export_gpt(self, *arguments: object) -> int:
        return self.export("--gpt", self.gpt, "--config", self.config, *arguments)


def failure(files: Files, capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """The one error line of an export that must fail and leave nothing behind."""
    assert files.export(*arguments) == code
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    assert not list(files.folder.glob("*bundle*"))
    return text
