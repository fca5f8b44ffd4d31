"""Trains the EAGLE drafter of a bundle on a data set of `models.eagle.data`.

    python -m models.eagle.train --bundle DIR --data FOLDER --out FILE --minutes 60

`--recipe published` is the published recipe: feature regression and 0.1 soft cross entropy of every
row's own distribution, one step. The default takes the guided distributions, and for the second half trains
several steps on the drafter's own features and the acceptance rate itself. `--recipe eagle-3` is a drafter
that reads inner layers of the target, whose features the data must hold (`--layers`), and has its own head;
all its steps are trained from the beginning, on the distributions alone. FILE is rewritten every few
minutes; the same command continues from it.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..export import checkpoint
from ..export.checkpoint import ExportError
from ..export.command import run_command
from ..precision import mixed
from ..progress import Progress
from ..transformer.head import codes_of
from .answers import load_for
from .config import DrafterConfig
from .data import Images
from .drafter import Drafter, rotary_table
from .eagle3 import Eagle3Config, Eagle3Drafter
from .features import TargetModel
from .files import save_whole
from .losses import AnyDrafter, acceptance, chain_compression, objective
from .recipes import PUBLISHED_NOISE, RECIPES, Options, Phase


def drafter_config(model: TargetModel, ffn: int = 0, input_norm: bool = False) -> DrafterConfig:
    """A drafter that fits the target, with the options of the published ones for its kind of prompts.

    ffn: 0 takes twice the hidden width.
    """
    manifest = model.manifest
    cache, hidden = manifest["cache"], int(manifest["target"]["features"])
    line = model.counts_from_prompt
    heads, kv_heads = heads_of(hidden, int(cache["head_dim"]), int(cache["kv_heads"]))
    config = DrafterConfig(
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn or 2 * hidden,
        vocabulary=int(model.embedding.shape[0]),
        max_length=int(cache["max_length"]),
        input_norm=input_norm,
        qk_norm=model.prompt_kind == "tokens",
        norm_eps=float(model.target.eps),
        rotary="line" if line else "grid",
        grid=int(model.grid["columns"]),
        prompt_length=model.prompt_length,
    )
    return config if line else with_rotations(config, model)


def heads_of(hidden: int, head_dim: int, kv_heads: int) -> tuple[int, int]:
    """Heads and key heads for that width, as near the target's as divides it.

    The heads of some targets (Emu3.5) are together wider or narrower than the target.
    """
    most = max(1, hidden // head_dim)
    heads = next((n for n in range(most, 1, -1) if hidden % (2 * n) == 0), 1)
    return heads, next(n for n in range(min(kv_heads, heads), 0, -1) if heads % n == 0)


def with_rotations(config: DrafterConfig, model: TargetModel) -> DrafterConfig:
    """The kind of rotation "grid" that the target has; ExportError if it has another one."""
    table = dict(model.target.named_buffers())["rotary"]
    identity = bool((table[0, :, 0] == 1).all())
    config = replace(config, prefix_rotation="identity" if identity else "zero")
    rows = config.prompt_length - 1 + model.tokens
    if not torch.allclose(rotary_table(config)[:rows], table[1 : rows + 1].float(), atol=1e-6):
        raise ExportError(f"{model.bundle}: the target's rotations are not LlamaGen's")
    return config


class Optimizers:
    """Muon for the layer's matrices, AdamW for the embedding, norms and biases."""

    def __init__(self, drafter: Drafter, options: Options) -> None:
        matrices, others = [], []
        drafter.embed_tokens.weight.requires_grad_(options.train_embedding)
        for name, weight in drafter.named_parameters():
            if weight.requires_grad:
                matrix = name.endswith(("fc.weight", "_proj.weight"))
                (matrices if matrix else others).append(weight)
        self.all = matrices + others
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=options.muon_rate, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(others, lr=options.rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        self.rates = [options.muon_rate, options.rate]

    def step(self, loss: Tensor, factor: float) -> None:
        for part, rate in zip(self.parts, self.rates):
            part.param_groups[0]["lr"] = rate * factor
            part.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.all, 1.0)
        for part in self.parts:
            part.step()


def new_drafter(
    recipe: str, model: TargetModel, config: DrafterConfig, images: Images
) -> AnyDrafter:
    """The network that training starts from: for eagle-3 one that reads the data's inner layers, with the target's head if
    that is one product."""
    if recipe != "eagle-3":
        return Drafter(config)
    shard = images.shards[0]
    if "inner" not in shard:
        raise ExportError(f"{images.folder}: got no inner features; make the data with --layers")
    codes, first = codes_of(model.head), int(model.manifest["tokens"]["first_image_id"])
    layers = tuple(shard["layers"].tolist())
    features = shard["inner"].shape[-1]
    drafter = Eagle3Drafter(Eagle3Config(replace(config, qk_norm=False), features, codes, layers))
    with torch.no_grad():
        if isinstance(model.head, Tensor):
            drafter.lm_head.weight.copy_(model.head)
        drafter.d2t += first
        drafter.t2d[:] = False
        drafter.t2d[first : first + codes] = True
    return drafter


def evaluate(
    drafter: AnyDrafter, model: TargetModel, images: Images, steps: int = 5
) -> dict[str, Any]:
    """Acceptance by depth and tokens per target pass of chains, lossless, temperature 1."""
    drafter.eval()
    top_k = int(model.manifest["sampling"]["top_k"])
    parts = [
        acceptance(drafter, batch, model.head, model.guidance, top_k, steps)
        for batch in images.held_out_batches()
    ]
    rates, kept = (torch.cat(part) for part in zip(*parts))
    drafter.train()
    by_depth = rates.flatten(0, 1).nanmean(0)
    return {
        "images": len(rates),
        "rates": [round(rate, 4) for rate in by_depth[~by_depth.isnan()].tolist()],
        "chains": {n: round(chain_compression(kept[..., :n]), 3) for n in range(1, steps + 1)},
    }


class Trainer:
    """One training run: drafter, optimisers, clock, and the file they are kept in."""

    def __init__(
        self, model: TargetModel, drafter: AnyDrafter, options: Options, out: Path
    ) -> None:
        torch.manual_seed(options.seed)
        self.model, self.options, self.out, self.drafter = model, options, out, drafter
        with torch.no_grad():
            self.drafter.embed_tokens.weight.copy_(model.embedding)
        self.optimizers = Optimizers(self.drafter, options)
        self.step, self.seconds = 0, 0.0
        self.reports: list[dict[str, Any]] = []
        if out.exists():
            self.resume()

    def resume(self) -> None:
        saved = checkpoint.read_file(self.out)
        known = isinstance(saved, dict) and "optimizers" in saved
        if not known or type(self.drafter.config)(**saved["config"]) != self.drafter.config:
            raise ExportError(f"{self.out}: holds another drafter; name a new file", 7)
        self.drafter.load_state_dict(saved["model"])
        for part, state in zip(self.optimizers.parts, saved["optimizers"]):
            part.load_state_dict(state)
        self.step, self.seconds = saved["step"], saved["seconds"]
        self.reports = saved["reports"]

    def save(self) -> None:
        """Rewrites the file: config, model (published weight names), and what resuming needs."""
        content = {
            "config": asdict(self.drafter.config),
            "model": self.drafter.state_dict(),
            "optimizers": [part.state_dict() for part in self.optimizers.parts],
            "options": asdict(self.options),
            "step": self.step,
            "seconds": self.seconds,
            "reports": self.reports,
        }
        save_whole(content, self.out)

    def schedule(self) -> tuple[float, Phase]:
        """Factor of the learning rates, and the phase, at this time."""
        share = min(self.seconds / (60 * self.options.minutes), 1.0)
        factor = min((self.step + 1) / self.options.warm_up, 1.0) * max(1 - share, 0.01)
        return factor, self.options.phase(share)

    def report(self, images: Images, loss: float, parts: list[float], progress: Progress) -> None:
        result = {
            "step": self.step,
            "minutes": round(self.seconds / 60, 1),
            "training images": len(images),
            "loss": round(loss, 4),
            "token loss by step": [round(part, 4) for part in parts],
            **evaluate(self.drafter, self.model, images),
        }
        self.reports.append(result)
        progress.record(result)

    def run(self, images: Images) -> None:
        options = self.options
        generator = torch.Generator().manual_seed(options.seed + self.step)
        batches = images.batches(options.batch, generator)
        limit, saved = 60 * options.minutes, self.seconds
        loss, parts = float("nan"), []
        progress = Progress(self.out.name, limit, self.seconds)
        while self.seconds < limit:
            start = time.process_time()
            factor, phase = self.schedule()
            batch = next(batches)
            noise = phase.noise * PUBLISHED_NOISE * 512 / batch.features.shape[1]
            with mixed("cpu"):
                total, parts = objective(
                    self.drafter,
                    batch,
                    self.model.head,
                    self.model.guidance,
                    phase.weights,
                    phase.steps,
                    noise,
                )
            self.optimizers.step(total, factor)
            loss = float(total.detach())
            self.step += 1
            self.seconds += (time.process_time() - start) / torch.get_num_threads()
            progress.show(self.seconds)
            if self.seconds - saved > 60 * options.save_minutes:
                saved = self.seconds
                self.report(images, loss, parts, progress)
                self.save()
        self.report(images, loss, parts, progress)
        self.save()


def train(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    options = replace(RECIPES[arguments.recipe], minutes=arguments.minutes, batch=arguments.batch)
    model = load_for(arguments.bundle, arguments.data)
    config = drafter_config(model, arguments.ffn, arguments.input_norm)
    images = Images(arguments.data, config, arguments.held_out)
    torch.manual_seed(options.seed)
    drafter = new_drafter(arguments.recipe, model, config, images)
    Trainer(model, drafter, options, arguments.out).run(images)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.eagle.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder of models.eagle.data or models.eagle.answers",
    )
    parser.add_argument("--out", type=Path, required=True, help="file of the drafter")
    parser.add_argument(
        "--recipe", choices=RECIPES, default="multi-step", help="default: %(default)s"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=30.0,
        help="of processor time per thread (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="images of a step (default: %(default)s)"
    )
    parser.add_argument("--ffn", type=int, default=0, help="default: twice the hidden width")
    parser.add_argument("--input-norm", action="store_true", help="norm before the attention")
    parser.add_argument(
        "--held-out",
        type=int,
        default=64,
        help="images of the first shard that are kept for the report (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args(arguments)
    return run_command(lambda: train(options))


if __name__ == "__main__":
    sys.exit(main())
