"""The demo's networks and what is known about them: GPT, text encoder, the worth of a caption."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.demo.render.captions import caption
from models.demo.render.scene import ATTRIBUTES, Scene
from models.demo.training.data import WORK, held_out, load_tokens
from models.demo.training.text import FEATURES, PREFIX, CaptionReader, text_config
from models.llamagen.config import GPTConfig
from models.llamagen.gpt import GPT, pad_left
from models.llamagen.t5 import T5Encoder


def gpt_config() -> GPTConfig:
    return GPTConfig(
        dim=192,
        n_layer=8,
        n_head=3,
        ffn_dim=512,
        vocab_size=1024,
        grid=16,
        cls_token_num=PREFIX,
        caption_dim=FEATURES,
        prefix_rotation="identity",
    )


class DemoModel(nn.Module):
    """Text encoder and GPT."""

    def __init__(self, pieces: int, config: GPTConfig | None = None) -> None:
        super().__init__()
        self.text = T5Encoder(text_config(pieces))
        self.gpt = GPT(config or gpt_config())

    def condition(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Left-padded text features [B, T, C] and their mask."""
        return pad_left(self.text(ids, mask), mask)


def load_pretrained_text(model: DemoModel, path: Path) -> None:
    saved = torch.load(path, map_location="cpu", weights_only=True)
    model.text.load_state_dict(saved["encoder"])
    model.gpt.cls_embedding.cap_proj.load_state_dict(saved["project"])


def start_from_codes(model: DemoModel, centres: Tensor) -> None:
    """Gives similar codes similar embeddings from the start; centres [codes, width] of the patches."""
    weight = model.gpt.tok_embeddings.weight
    spread = centres - centres.mean(0)
    spread = spread / spread.square().sum(1).mean().clamp(min=1e-12).sqrt()
    with torch.no_grad():
        weight.copy_(0.02 * spread @ torch.randn(centres.shape[1], weight.shape[1]) + 0.5 * weight)


def load_average(work: Path = WORK) -> DemoModel:
    """The averaged weights of the newest checkpoint."""
    saved = torch.load(work / "ar.pt", map_location="cpu", weights_only=True)
    model = DemoModel(len(CaptionReader(work / "text.model").pieces))
    model.load_state_dict(saved["average"])
    return model.eval()


@torch.no_grad()
def caption_gaps(model: DemoModel, work: Path = WORK, count: int = 96) -> dict[str, float]:
    """Nats per token on held-out pictures, and what a wrong caption costs, attribute by attribute."""
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    rows = np.flatnonzero(held_out(data.seeds) & ~data.mirrored)[:count]
    truth = [Scene.from_indices(a) for a in data.attributes[rows]]
    tokens = torch.from_numpy(data.tokens[rows].astype(np.int64))

    def loss(scenes: list[Scene], null: bool = False) -> float:
        rng = np.random.default_rng(5)
        total = 0.0
        for i in range(0, len(rows), 24):
            ids, mask = reader.encode([caption(s, rng) for s in scenes[i : i + 24]])
            features, left = model.condition(ids, mask)
            drop = torch.full((len(ids),), null)
            part = tokens[i : i + 24]
            with torch.autocast("cpu", torch.bfloat16):
                logits = model.gpt(part[:, :-1], features, left, drop)
            total += float(
                F.cross_entropy(logits.float().flatten(0, 1), part.flatten(), reduction="sum")
            )
        return total / tokens.numel()

    result = {"held-out": loss(truth)}
    result["null"] = loss(truth, null=True) - result["held-out"]
    for name, values in ATTRIBUTES.items():
        turned = [Scene(**{**vars(s), name: values[(values.index(getattr(s, name)) + 1) % len(values)]})
                  for s in truth]  # fmt: skip
        result[name] = loss(turned) - result["held-out"]
    return result
