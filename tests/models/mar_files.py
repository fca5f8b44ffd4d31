"""Small checkpoints as MAR publishes them, and an exporter run over them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from export_run import ExportRun
from torch import Tensor

from models.chameleon.vqgan import VQGANConfig
from models.export.__main__ import main
from models.mar.config import MARConfig, square_shape
from models.mar.kl import AutoencoderKL
from models.mar.network import MAR

SHAPE = MARConfig(
    positions=12, channels=4, classes=5, buffer=3, encoder=square_shape(24, 2, 2),
    decoder=square_shape(32, 1, 4), head_depth=2, head_width=40,
)  # fmt: skip
DRAFT_SHAPE = MARConfig(
    positions=12, channels=4, classes=5, buffer=2, encoder=square_shape(16, 1, 2),
    decoder=square_shape(16, 1, 2), head_depth=1, head_width=16,
)  # fmt: skip
KL_SHAPE = VQGANConfig(ch=32, ch_mult=(1, 2), num_res_blocks=1, z_channels=4)
State = dict[str, Tensor]


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def random_model(config: MARConfig, seed: int = 3) -> MAR:
    """Weights of sizes that keep every layer's output in range; the head predicts little noise."""
    torch.manual_seed(seed)
    model = MAR(config)
    for name, weight in model.named_parameters():
        if "norm" in name or "_ln" in name:
            weight.data += 0.1 * torch.randn_like(weight)
        else:
            weight.data = 0.1 * torch.randn_like(weight)
    return model.requires_grad_(False).eval()


def save_checkpoint(path: Path, model: MAR, **settings: Any) -> Path:
    """With the weights of training, which are others, and its command line beside the averaged ones."""
    state = model.state_dict()
    other = {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    torch.save({"model": other, "model_ema": state, "optimizer": {"state": {}}, "epoch": 7,
                "args": argparse.Namespace(**settings)}, path)  # fmt: skip
    return path


def save_kl(path: Path, config: VQGANConfig) -> Path:
    torch.manual_seed(5)
    state = AutoencoderKL(config).state_dict()
    torch.save({"model": {**state, "loss.logvar": torch.zeros(())}}, path)
    return path


class Files(ExportRun):
    """Published files and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.out = folder, folder / "bundle"
        self.model = save_checkpoint(folder / "checkpoint-last.pth", random_model(SHAPE),
                                     num_sampling_steps="7")  # fmt: skip
        self.drafter = save_checkpoint(folder / "draft.pth", random_model(DRAFT_SHAPE, 9))
        self.vae = save_kl(folder / "kl16.ckpt", KL_SHAPE)

    def export(self, *arguments: object) -> int:
        words = (
            "mar",
            "--model",
            self.model,
            "--vae",
            self.vae,
            "--grid",
            "3x4",
            "--out",
            self.out,
        )
        return main([*map(str, words), *map(str, arguments)])
