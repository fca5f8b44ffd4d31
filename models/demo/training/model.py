"""The demo's networks and what is known about them: GPT, text encoder, the worth of a caption."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...llamagen.config import GPTConfig
from ...llamagen.gpt import GPT, pad_left
from ...llamagen.t5 import T5Encoder
from ...precision import mixed
from ..render.captions import caption
from ..render.scene import Scene, mirror
from ..render.vocabulary import ATTRIBUTES, NONE
from .data import WORK, held_out, load_tokens
from .text import FEATURES, PREFIX, CaptionReader, text_config


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
    """Gives similar codes similar embeddings from the start; centres [codes, width] on the sphere."""
    weight = model.gpt.tok_embeddings.weight
    spread = centres - centres.mean(0)
    spread = spread / spread.square().sum(1).mean().clamp(min=1e-12).sqrt()
    with torch.no_grad():
        weight.copy_(0.02 * spread @ torch.randn(centres.shape[1], weight.shape[1]) + 0.5 * weight)


def load_average(work: Path = WORK) -> DemoModel:
    """The averaged weights of the second run if it belongs to the first one, else of the first."""
    saved = torch.load(work / "ar.pt", map_location="cpu", weights_only=True)
    cooled = work / "ar-cooled.pt"
    if cooled.exists():
        newer = torch.load(cooled, map_location="cpu", weights_only=True)
        saved = newer if newer["origin"] == saved["step"] else saved
    model = DemoModel(len(CaptionReader(work / "text.model").pieces))
    model.load_state_dict(saved["average"])
    return model.eval()


def turned(scene: Scene, name: str) -> Scene:
    """The scene with another value of one attribute; the same where it has no second subject to change."""
    if scene.pair and name == "side":
        return mirror(scene)
    if name.startswith("second") and not scene.pair:
        return scene
    values = [v for v in ATTRIBUTES[name] if v != NONE or name == "background"]
    after = values[(values.index(getattr(scene, name)) + 1) % len(values)]
    return replace(scene, **{name: after})


@torch.no_grad()
def caption_gaps(model: DemoModel, work: Path = WORK, count: int = 96) -> dict[str, float]:
    """Nats per token on held-out images, and what a wrong caption costs, attribute by attribute."""
    data, reader = load_tokens(work), CaptionReader(work / "text.model")
    rows = np.flatnonzero(held_out(data.seeds) & ~data.mirrored)[:count]
    truth = [Scene.from_indices(a) for a in data.attributes[rows]]
    tokens = torch.from_numpy(data.tokens[rows].astype(np.int64))

    def losses(scenes: list[Scene], null: bool = False) -> np.ndarray:
        """Nats per token of every image."""
        rng, parts = np.random.default_rng(5), []
        for i in range(0, len(rows), 24):
            ids, mask = reader.encode([caption(s, rng) for s in scenes[i : i + 24]])
            features, left = model.condition(ids, mask)
            part = tokens[i : i + 24]
            with mixed("cpu"):
                logits = model.gpt(part[:, :-1], features, left, torch.full((len(ids),), null))
            loss = F.cross_entropy(logits.float().mT, part, reduction="none")
            parts.append(loss.mean(1))
        return torch.cat(parts).numpy()

    right = losses(truth)
    result = {
        "held-out": float(right.mean()),
        "null": float((losses(truth, null=True) - right).mean()),
    }
    for name in ATTRIBUTES:
        wrong = [turned(scene, name) for scene in truth]
        changed = np.array([a != b for a, b in zip(truth, wrong)])
        gaps = (losses(wrong) - right)[changed]
        result[name] = float(gaps.mean()) if len(gaps) else 0.0
    return result
