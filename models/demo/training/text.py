"""The text side of the demo model: tokenizer, text encoder, and its pre-training on captions alone.

The image loss says little about the caption, so the encoder first learns, without pictures, to put
every attribute of the scene into every position of the prefix that the image tokens will read.
"""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.demo.render.captions import caption
from models.demo.render.scene import Scene, sample_scene
from models.demo.render.vocabulary import ATTRIBUTES
from models.demo.training.data import WORK
from models.llamagen.config import T5Config
from models.llamagen.gpt import CaptionProjection, pad_left
from models.llamagen.t5 import T5Encoder

FEATURES = 128
PREFIX = 32  # text positions; captions of more pieces lose their end
PAD, EOS, UNK = 0, 1, 2
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VALUES = [len(values) for values in ATTRIBUTES.values()]


def text_config(pieces: int) -> T5Config:
    return T5Config(
        d_model=FEATURES, d_kv=32, num_heads=4, d_ff=256, num_layers=2, vocab_size=pieces
    )


def train_tokenizer(path: Path, captions: int = 20000) -> None:
    """Writes a SentencePiece unigram model: whole caption words, and letters for other words."""
    rng = np.random.default_rng(11)
    lines = [caption(sample_scene(rng), rng) for _ in range(captions)]
    words = sorted({word for line in lines for word in line.replace(",", " ").split()})
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        model_type="unigram",
        vocab_size=len(words) + 60,
        hard_vocab_limit=False,
        user_defined_symbols=["\u2581" + word for word in words],
        pad_id=PAD,
        eos_id=EOS,
        unk_id=UNK,
        bos_id=-1,
        required_chars=LETTERS + "0123456789,.-'",
        num_threads=1,
        minloglevel=2,
    )
    path.write_bytes(model.getvalue())


def perturb(text: str, rng: np.random.Generator) -> str:
    """Sometimes adds a meaningless word or a full stop, so that unknown words do no harm."""
    if rng.random() < 0.1:
        words = text.split(" ")
        letters = rng.choice(list(LETTERS), size=int(rng.integers(3, 8)))
        words.insert(int(rng.integers(len(words) + 1)), "".join(letters))
        text = " ".join(words)
    return text + "." if rng.random() < 0.05 else text


class CaptionReader:
    """Turns captions into padded ids."""

    def __init__(self, path: Path) -> None:
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=str(path))

    def encode(self, captions: list[str]) -> tuple[Tensor, Tensor]:
        """Right-padded ids int64 [B, PREFIX], each ending with EOS, and their mask."""
        ids = torch.full((len(captions), PREFIX), PAD)
        mask = torch.zeros(len(captions), PREFIX, dtype=torch.int64)
        for row, pieces in enumerate(self.pieces.encode(captions)):
            pieces = [*pieces[: PREFIX - 1], EOS]
            ids[row, : len(pieces)] = torch.tensor(pieces)
            mask[row, : len(pieces)] = 1
        return ids, mask

    def describe(self, scenes: list[Scene], rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Ids and mask of one random caption per scene."""
        return self.encode([perturb(caption(scene, rng), rng) for scene in scenes])


class AttributeHeads(nn.Module):
    """One linear classifier per attribute; used in training only."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, sum(VALUES))

    def loss(self, x: Tensor, attributes: Tensor) -> Tensor:
        """Mean cross entropy of x [N, dim] against attributes int64 [N, 9]."""
        parts = self.linear(x).float().split(VALUES, -1)
        losses = [F.cross_entropy(p, attributes[:, i]) for i, p in enumerate(parts)]
        return torch.stack(losses).mean()

    @torch.no_grad()
    def accuracy(self, x: Tensor, attributes: Tensor) -> list[float]:
        parts = self.linear(x).split(VALUES, -1)
        return [
            float((p.argmax(-1) == attributes[:, i]).float().mean()) for i, p in enumerate(parts)
        ]


def pretrain_text(work: Path = WORK, dim: int = 192, minutes: float = 5.0) -> None:
    """Trains encoder and projection for minutes of processor time; writes text.model (tokenizer) and text.pt."""
    work.mkdir(parents=True, exist_ok=True)
    train_tokenizer(work / "text.model")
    torch.manual_seed(0)
    rng = np.random.default_rng(12)
    reader = CaptionReader(work / "text.model")
    encoder = T5Encoder(text_config(len(reader.pieces)), dropout=0.05)
    project, heads = CaptionProjection(FEATURES, dim), AttributeHeads(dim)
    for layer in (project.fc1, project.fc2):
        nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
    weights = [*encoder.parameters(), *project.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(weights, 2e-3, betas=(0.9, 0.98), weight_decay=0.01)
    start, step, share = time.process_time(), 0, 0.0
    while share < 1:
        share = (time.process_time() - start) / max(60 * minutes, 1e-9)
        optimizer.param_groups[0]["lr"] = 2e-3 * min((step + 1) / 50, 1.0) * max(1 - share, 0.02)
        scenes = [sample_scene(rng) for _ in range(64)]
        ids, mask = reader.describe(scenes, rng)
        features, valid = pad_left(encoder(ids, mask), mask)
        rows = project(features)[valid.bool()]
        labels = torch.from_numpy(np.stack([s.indices() for s in scenes])).long()
        labels = labels.repeat_interleave(mask.sum(1), 0)
        loss = heads.loss(rows, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if step % 100 == 0 or share >= 1:
            shares = " ".join(f"{a:.2f}" for a in heads.accuracy(rows, labels))
            print(f"text step {step} loss {loss.item():.3f} accuracy {shares}", flush=True)
        step += 1
    torch.save({"encoder": encoder.state_dict(), "project": project.state_dict()}, work / "text.pt")
