"""The text side of the demo model: tokenizer, text encoder, and its pre-training on captions alone.

The image loss says little about the caption, so the encoder first learns, without images, to put
every attribute of the scene into every position of the prefix that the image tokens will read.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import sentencepiece
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...llamagen.config import T5Config
from ...llamagen.gpt import CaptionProjection
from ...llamagen.t5 import T5Encoder
from ...progress import Progress
from ..render.captions import caption
from ..render.scene import Scene, sample_scene
from ..render.vocabulary import ATTRIBUTES, COLOURS, SIDES, SUBJECT_WORDS, SUBJECTS
from .data import WORK
from .vq_train import Clock, save_state

FEATURES = 128
PREFIX = 32  # text positions; captions of more pieces lose their end
PAD, EOS, UNK = 0, 1, 2
RATE = 2e-3
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SHARED = ("time", "ground", "background", "weather")
VALUES = [len(ATTRIBUTES[name]) for name in SHARED] + len(SUBJECTS) * [
    len(COLOURS) + 1,
    len(SIDES) + 1,
]


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
        self.nouns = [self._endings(words) for words in SUBJECT_WORDS.values()]

    def _endings(self, words: tuple[str, ...]) -> list[int]:
        """Last pieces of a subject's words."""
        return sorted({pieces[-1] for pieces in self.pieces.encode(list(words))})

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
        return self.phrase(scenes, rng.integers(1 << 32, size=len(scenes)))

    def phrase(self, scenes: list[Scene], seeds: np.ndarray) -> tuple[Tensor, Tensor]:
        """The same by seeds: scenes that differ in a value alone get captions that do so."""
        dice = [np.random.default_rng(int(seed)) for seed in seeds]
        return self.encode([perturb(caption(s, rng), rng) for s, rng in zip(scenes, dice)])

    def subjects(self, ids: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Row and position of every noun in ids [B, PREFIX] that names a subject of its scene, and which
        of the kinds x colours it is; labels are the scenes' facts."""
        named = torch.stack([torch.isin(ids, torch.tensor(nouns)) for nouns in self.nouns], 2)
        colour = labels[:, None, len(SHARED) :: 2] * named
        row, position, kind = colour.nonzero(as_tuple=True)
        return row, position, kind * len(COLOURS) + colour[row, position, kind] - 1


def facts(attributes: np.ndarray) -> np.ndarray:
    """Facts of scenes of attributes [B, 9], int64 [B, 24]: the values of SHARED, then the colour and
    side of every kind of subject, counted from one; zero where the scene has no subject of that kind.

    No fact depends on which subject is named first: learning that order, the encoder never leaves the
    saddle at which both are guessed.
    """
    column = {name: attributes[:, i].astype(np.int64) for i, name in enumerate(ATTRIBUTES)}
    rows = np.arange(len(attributes))
    kinds = np.zeros((len(attributes), len(SUBJECTS), 2), np.int64)
    kinds[rows, column["subject"]] = np.stack([column["colour"], column["side"]], 1) + 1
    pairs = np.flatnonzero(column["second"])
    # Both attributes of a second subject have "none" first.
    second = np.stack([column["second_colour"], len(SIDES) - column["side"]], 1)
    kinds[pairs, column["second"][pairs] - 1] = second[pairs]
    shared = np.stack([column[name] for name in SHARED], 1)
    return np.concatenate([shared, kinds.reshape(len(kinds), -1)], 1)


class FactHeads(nn.Module):
    """One linear classifier per fact; used in training only."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(dim, sum(VALUES))

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """Cross entropy of x [N, dim] against facts int64 [N, 24], summed, per attribute of a scene."""
        parts = self.linear(x).float().split(VALUES, -1)
        losses = [F.cross_entropy(p, labels[:, i]) for i, p in enumerate(parts)]
        return torch.stack(losses).sum() / len(ATTRIBUTES)

    @torch.no_grad()
    def accuracy(self, x: Tensor, labels: Tensor) -> dict[str, float]:
        """Shares of right answers; those for colour and side are of the subjects that there are."""
        answers = torch.stack([p.argmax(-1) for p in self.linear(x).split(VALUES, -1)], 1)
        right, there = (answers == labels).float(), labels > 0
        shares = {name: float(right[:, i].mean()) for i, name in enumerate(SHARED)}
        for i, name in enumerate(("colour", "side")):
            kinds = slice(len(SHARED) + i, None, 2)
            shares[name] = float(right[:, kinds][there[:, kinds]].mean())
        return shares


def look_back(encoder: T5Encoder) -> None:
    """Lets one head begin with the word before, another with the three before: an adjective's position.

    Adam moves a relative bias too slowly to find out within the training that colours precede nouns.
    """
    table = encoder.encoder.block[0].layer[0].SelfAttention.relative_attention_bias
    with torch.no_grad():
        table.weight[1, 0] += 5.0  # bucket = distance, for keys before the query
        table.weight[1:4, 1] += 3.0


class TextTraining:
    """State of the pre-training: encoder, projection and heads."""

    def __init__(self, work: Path, dim: int) -> None:
        torch.manual_seed(0)
        self.work, self.path = work, work / "text-state.pt"
        self.reader = CaptionReader(work / "text.model")
        self.nets = nn.ModuleDict(
            {
                "encoder": T5Encoder(text_config(len(self.reader.pieces)), dropout=0.0),
                "project": CaptionProjection(FEATURES, dim),
                "heads": FactHeads(dim),
                "own": nn.Linear(FEATURES, len(SUBJECTS) * len(COLOURS)),
            }
        )
        look_back(self.nets["encoder"])
        self.nets["encoder"].encoder.block[0].register_forward_hook(self._keep)
        for layer in (self.nets["project"].fc1, self.nets["project"].fc2):
            nn.init.normal_(layer.weight, std=layer.in_features**-0.5)
        self.weights = list(self.nets.parameters())
        self.optimizer = torch.optim.AdamW(self.weights, RATE, betas=(0.9, 0.98), weight_decay=0.01)
        self.step, self.spent = 0, 0.0
        if self.path.exists():
            state = torch.load(self.path, weights_only=True)
            self.nets.load_state_dict(state["nets"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.step, self.spent = state["step"], state["spent"]

    def _keep(self, _block: nn.Module, _inputs: tuple, rows: Tensor) -> None:
        self.first = rows

    def save(self, spent: float) -> None:
        state = {"nets": self.nets.state_dict(), "optimizer": self.optimizer.state_dict()}
        save_state(self.path, {**state, "step": self.step, "spent": spent})
        parts = {name: self.nets[name].state_dict() for name in ("encoder", "project")}
        save_state(self.work / "text.pt", parts)

    def losses(
        self, scenes: list[Scene], rng: np.random.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        """The loss: every position knows the facts of its scene, every noun its subject and colour after
        the first block, so that the second can name the others; and the shares of positions that know
        each fact."""
        ids, mask = self.reader.describe(scenes, rng)
        labels = torch.from_numpy(facts(np.stack([scene.indices() for scene in scenes])))
        rows = self.nets["project"](self.nets["encoder"](ids, mask))
        row, position, own = self.reader.subjects(ids, labels)
        nouns = F.rms_norm(self.first[row, position], (FEATURES,))
        named = F.cross_entropy(self.nets["own"](nouns).float(), own)
        rows, labels = rows[mask.bool()], labels.repeat_interleave(mask.sum(1), 0)
        loss = self.nets["heads"].loss(rows, labels) + named
        return loss, self.nets["heads"].accuracy(rows, labels)

    def update(self, scenes: list[Scene], rng: np.random.Generator) -> float:
        """One step; the loss."""
        loss = self.losses(scenes, rng)[0]
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        self.optimizer.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def accuracy(self, rng: np.random.Generator) -> str:
        """Shares of positions that know each fact, of scenes with two subjects."""
        self.nets.eval()
        shares = self.losses([sample_pair(rng) for _ in range(200)], rng)[1]
        self.nets.train()
        return " ".join(f"{name} {share:.2f}" for name, share in shares.items())


def sample_pair(rng: np.random.Generator) -> Scene:
    """A scene with two subjects."""
    while not (scene := sample_scene(rng)).pair:
        pass
    return scene


def pretrain_text(work: Path = WORK, dim: int = 192, minutes: float = 8.0) -> None:
    """Trains encoder and projection for minutes of processor time; writes text.model (tokenizer) and
    text.pt. Half of the scenes have two subjects: which colour is whose is learnt last."""
    work.mkdir(parents=True, exist_ok=True)
    if not (work / "text.model").exists():
        train_tokenizer(work / "text.model")
    training = TextTraining(work, dim)
    clock = Clock(max(60 * minutes, 1e-9), training.spent)
    rng = np.random.default_rng([12, training.step])
    total, share = 0.0, 0.0
    progress = Progress("text", clock.budget, training.spent)
    while share < 1:
        share = clock.progress
        scale = min((training.step + 1) / 50, 1.0) * max(1 - share, 0.02)
        training.optimizer.param_groups[0]["lr"] = RATE * scale
        scenes = [sample_pair(rng) if i % 5 < 2 else sample_scene(rng) for i in range(64)]
        total += training.update(scenes, rng)
        progress.show(clock.spent)
        if training.step % 200 == 0:
            text = f"{clock.spent:.0f} s loss {total / 200:.3f} pairs: {training.accuracy(rng)}"
            progress.log(f"text step {training.step} {text}")
            total = 0.0
        if clock.due():
            training.save(clock.spent)
    training.save(clock.spent)
