"""Trains the demo's image tokenizer: first encoder, codebook and decoder; then the decoder alone.

Schedules follow the wall clock, so the budget holds on a busy machine. Every stage writes a checkpoint
every three minutes and continues from it.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models.demo.data import SHARD, WORK, held_out, image_shards, load_images, shard_path
from models.demo.muon import Muon
from models.demo.vq_model import DemoTokenizer, save_tokenizer, to_rgb

CHECKPOINT_SECONDS = 180.0
SUBJECT_WEIGHT = 1.5  # extra weight of the subject's pixels in the loss
NIGHT_WEIGHT = 1.8  # dark pictures have small differences
_TIME_COLUMN, _NIGHT = 2, 3


class Batches:
    """Random training pictures with their loss weights; sees shards as they appear on disk."""

    def __init__(self, work: Path, seed: int) -> None:
        self.work, self.rng = work, np.random.default_rng(seed)
        self.shards: list[int] = []
        self.refresh()

    def refresh(self) -> None:
        shards = image_shards(self.work)
        if shards == self.shards:
            return
        self.shards, self.images = shards, load_images(self.work, shards)
        self.cells = [np.load(shard_path(self.work, "cells", k)) for k in shards]
        self.nights = [
            np.load(shard_path(self.work, "attributes", k))[:, _TIME_COLUMN] == _NIGHT for k in shards
        ]

    def draw(self, count: int, crop: int = 0) -> tuple[Tensor, Tensor]:
        """rgb [B, 3, s, s] and weights [B, 1, s, s]; crop > 0 cuts squares of that many pixels."""
        pictures, weights = [], []
        while len(pictures) < count:
            k, i = int(self.rng.integers(len(self.shards))), int(self.rng.integers(SHARD))
            if held_out(np.array(self.shards[k] * SHARD + i)):
                continue
            weight = 1 + SUBJECT_WEIGHT * self.cells[k][i].reshape(16, 16).astype(np.float32)
            weight *= NIGHT_WEIGHT if self.nights[k][i] else 1.0
            weight = weight.repeat(8, 0).repeat(8, 1)
            picture = self.images[k][i]
            if self.rng.random() < 0.5:
                picture, weight = picture[:, ::-1], weight[:, ::-1]
            if crop:
                y, x = (int(v) * 8 for v in self.rng.integers((128 - crop) // 8 + 1, size=2))
                picture, weight = picture[y : y + crop, x : x + crop], weight[y : y + crop, x : x + crop]
            pictures.append(np.ascontiguousarray(picture))
            weights.append(np.ascontiguousarray(weight))
        return to_rgb(torch.from_numpy(np.stack(pictures))), torch.from_numpy(np.stack(weights))[:, None]


def validation(work: Path, count: int = 48) -> Tensor:
    """Held-out pictures of the first shard, rgb [count, 3, 128, 128]; at most SHARD / 50 of them."""
    images = np.load(shard_path(work, "images", 0), mmap_mode="r")
    chosen = np.flatnonzero(held_out(np.arange(SHARD)))[:count]
    return to_rgb(torch.from_numpy(images[chosen]))


def reconstruction_loss(output: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    """Weighted L1 + L2 + half of the L1 of gradients at three scales."""
    difference = output - target
    loss = (weight * (difference.abs() + difference.square())).mean()
    for _ in range(3):
        dx = (difference[..., 1:] - difference[..., :-1]).abs() * weight[..., 1:]
        dy = (difference[..., 1:, :] - difference[..., :-1, :]).abs() * weight[..., 1:, :]
        loss = loss + 0.5 * (dx.mean() + dy.mean())
        difference, weight = F.avg_pool2d(difference, 2), F.avg_pool2d(weight, 2)
    return loss


def optimisers(parameters: list[tuple[str, nn.Parameter]], lr: float) -> list[torch.optim.Optimizer]:
    """Muon for wide convolutions (relative lr), AdamW at lr / 20 for the rest."""
    wide = [p for _, p in parameters if p.ndim == 4 and min(p.shape[0], p[0].numel()) >= 16]
    chosen = {id(p) for p in wide}
    rest = [p for _, p in parameters if id(p) not in chosen]
    adam = torch.optim.AdamW(rest, lr=lr / 20, betas=(0.9, 0.98), weight_decay=0.0)
    return [Muon(wide, lr=lr), adam]


def set_rates(optimisers_: list[torch.optim.Optimizer], factor: float) -> None:
    for optimiser in optimisers_:
        for group in optimiser.param_groups:
            group.setdefault("initial_lr", group["lr"])
            group["lr"] = group["initial_lr"] * factor


class CodebookAverage:
    """Codes as unit running means of the latents assigned to them (van den Oord et al. 2017, appendix)."""

    def __init__(self, codebook: nn.Embedding) -> None:
        self.codebook = codebook
        size, width = codebook.weight.shape
        self.counts = torch.ones(size)
        self.sums = F.normalize(codebook.weight.data, dim=-1).clone()
        self.width = width

    @torch.no_grad()
    def start(self, latents: Tensor, seed: int, rounds: int = 12) -> None:
        """Spherical k-means over latents [N, width]."""
        generator = torch.Generator().manual_seed(seed)
        codes = latents[torch.randperm(len(latents), generator=generator)[: len(self.counts)]]
        for _ in range(rounds):
            nearest = (latents @ codes.T).argmax(-1)
            sums = torch.zeros_like(codes).index_add_(0, nearest, latents)
            counts = torch.bincount(nearest, minlength=len(codes))
            spare = latents[torch.randint(len(latents), (len(codes),), generator=generator)]
            codes = F.normalize(torch.where(counts[:, None] > 0, sums, spare), dim=-1)
        self.counts = counts.float().clamp(min=0.1) * (len(codes) / len(latents))
        self.sums = codes * self.counts[:, None]
        self.codebook.weight.data.copy_(codes)

    @torch.no_grad()
    def update(self, latents: Tensor, nearest: Tensor, decay: float) -> None:
        sums = torch.zeros_like(self.sums).index_add_(0, nearest, latents)
        counts = torch.bincount(nearest, minlength=len(self.counts)).float()
        self.counts.lerp_(counts, 1 - decay)
        self.sums.lerp_(sums, 1 - decay)
        self.codebook.weight.data.copy_(F.normalize(self.sums, dim=-1))

    @torch.no_grad()
    def revive(self, latents: Tensor, share: float = 0.05) -> int:
        """Moves codes used less than `share` of the mean onto random latents; how many."""
        dead = torch.nonzero(self.counts < share * self.counts.mean()).flatten()
        chosen = latents[torch.randint(len(latents), (len(dead),))]
        self.counts[dead] = self.counts.mean() * 0.5
        self.sums[dead] = chosen * self.counts[dead][:, None]
        self.codebook.weight.data[dead] = chosen
        return len(dead)


class Clock:
    """Wall time spent in a stage, across interruptions."""

    def __init__(self, budget: float, spent: float = 0.0) -> None:
        self.budget, self.start, self.saved = budget, time.monotonic() - spent, time.monotonic()

    @property
    def spent(self) -> float:
        return time.monotonic() - self.start

    @property
    def progress(self) -> float:
        return self.spent / self.budget

    def due(self) -> bool:
        """Whether a checkpoint is due; restarts its interval."""
        if time.monotonic() - self.saved < CHECKPOINT_SECONDS:
            return False
        self.saved = time.monotonic()
        return True


def log(work: Path, text: str) -> None:
    line = f"{time.strftime('%H:%M:%S', time.gmtime())} {text}"
    print(line, flush=True)
    with (work / "vq.log").open("a") as stream:
        stream.write(line + "\n")


def save_state(path: Path, state: dict[str, Any]) -> None:
    part = path.with_suffix(".part")
    torch.save(state, part)
    part.rename(path)


@torch.no_grad()
def evaluate(model: DemoTokenizer, pictures: Tensor, quantise: bool = True) -> tuple[float, int, float]:
    """PSNR in dB over the pictures, number of codes used, perplexity of the codes."""
    model.eval()
    squared, codes = [], []
    for part in pictures.split(8):
        with torch.autocast("cpu", torch.bfloat16):
            latents = model.latents(part)
        if quantise:
            chosen = model.vq.quantize.indices(latents)
            codes.append(chosen.flatten())
            latents = model.vq.quantize.lookup(chosen)
        with torch.autocast("cpu", torch.bfloat16):
            output = model.vq.decode(latents).float().clamp(-1, 1)
        squared.append(((output - part) / 2).square().mean((1, 2, 3)))
    model.train()
    psnr = float((-10 * torch.log10(torch.cat(squared))).mean())
    if not quantise:
        return psnr, 0, 0.0
    share = torch.bincount(torch.cat(codes), minlength=len(model.vq.quantize.embedding.weight)).float()
    share = share / share.sum()
    entropy = -(share * share.clamp(min=1e-12).log()).sum()
    return psnr, int((share > 0).sum()), float(entropy.exp())


def rate(progress: float, step: int) -> float:
    """Warm-up over 40 steps, constant, then linear decay over the second half."""
    return min(1.0, (step + 1) / 40) * float(np.clip((1.0 - progress) / 0.5, 0.03, 1.0))


def train_codes(work: Path = WORK, seconds: float = 1500.0, seed: int = 1) -> None:
    """Encoder, codebook and decoder. Writes work/vq-codes.pt, whose codes are final."""
    torch.manual_seed(seed)
    model, path = DemoTokenizer(), work / "vq-codes-state.pt"
    named = [(n, p) for n, p in model.named_parameters() if "embedding" not in n]
    optims = optimisers(named, 0.02)
    average = CodebookAverage(model.vq.quantize.embedding)
    step, spent, quantised = 0, 0.0, False
    if path.exists():
        state = torch.load(path, weights_only=False)
        model.load_state_dict(state["model"])
        for optimiser, saved in zip(optims, state["optimisers"]):
            optimiser.load_state_dict(saved)
        average.counts, average.sums = state["counts"], state["sums"]
        step, spent, quantised = state["step"], state["spent"], state["quantised"]
    clock, batches, pictures = Clock(seconds, spent), Batches(work, seed + step), validation(work)
    total = 0.0
    while (progress := clock.progress) < 1:
        set_rates(optims, rate(progress, step))
        crops = progress < 0.3
        rgb, weight = batches.draw(16, 64) if crops else batches.draw(4)
        with torch.autocast("cpu", torch.bfloat16):
            latents = model.latents(rgb)
        flat = latents.detach().movedim(1, -1).reshape(-1, average.width)
        loss = torch.zeros(())
        inputs = latents
        if quantised:
            chosen = model.vq.quantize.indices(latents.detach())
            codes = model.vq.quantize.lookup(chosen)
            loss = 0.5 * (1 - (latents * codes).sum(1)).mean()
            inputs = latents + (codes - latents).detach()
            if progress < 0.9:
                average.update(flat, chosen.flatten(), 0.98 if progress < 0.6 else 0.995)
            if progress < 0.7 and step % 15 == 0:
                average.revive(flat)
        elif progress > 0.07:
            with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                many = [model.latents(batches.draw(16)[0]) for _ in range(8)]
            average.start(torch.cat(many).movedim(1, -1).reshape(-1, average.width), seed)
            quantised = True
        with torch.autocast("cpu", torch.bfloat16):
            output = model.vq.decode(inputs)
        loss = loss + reconstruction_loss(output.float(), rgb, weight)
        loss.backward()
        nn.utils.clip_grad_norm_([p for _, p in named], 5.0)
        for optimiser in optims:
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
        total, step = total + loss.item(), step + 1
        if step % 100 == 0:
            batches.refresh()
            psnr, used, perplexity = evaluate(model, pictures, quantised)
            log(work, f"codes step {step} {clock.spent:.0f} s loss {total / 100:.4f} psnr {psnr:.2f} used {used} perplexity {perplexity:.0f}")
            total = 0.0
        if clock.due():
            save_state(path, {
                "model": model.state_dict(), "optimisers": [o.state_dict() for o in optims],
                "counts": average.counts, "sums": average.sums, "step": step, "spent": clock.spent,
                "quantised": quantised,
            })  # fmt: skip
    psnr, used, perplexity = evaluate(model, pictures)
    log(work, f"codes done: {step} steps psnr {psnr:.2f} used {used} perplexity {perplexity:.0f}")
    save_tokenizer(model, work / "vq-codes.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=["codes", "decoder"])
    parser.add_argument("--work", type=Path, default=WORK)
    parser.add_argument("--seconds", type=float, default=1500.0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.stage == "codes":
        train_codes(options.work, options.seconds)
    else:
        from models.demo.vq_decoder import train_decoder

        train_decoder(options.work, options.seconds)


if __name__ == "__main__":
    main()
