"""Trains Medusa heads, an MLP speculator or a FLASH drafter on a data set of `models.eagle.data`.

    python -m models.heads.train medusa --bundle DIR --data FOLDER --out FILE --minutes 20

Guess i learns the target's guided distribution of the token i + 1 positions behind the next one, by the
acceptance rate of lossless verification. `flash --recipe published` is the published recipe: regression of
the features and 0.1 soft cross entropy of every row's own distribution. FILE is rewritten every few minutes;
the same command continues from it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ..eagle.answers import load_for
from ..eagle.batch import BEHIND, Batch
from ..eagle.data import Images
from ..eagle.features import TargetModel
from ..eagle.losses import (
    accepted,
    chain_compression,
    filtered,
    guided,
    per_sequence,
    token_loss,
)
from ..eagle.parts import distribution_parts, summed
from ..eagle.train import drafter_config
from ..export.checkpoint import ExportError
from ..export.command import run_command
from ..precision import mixed
from ..progress import Progress
from ..transformer.head import codes_of, logits_of
from . import saved
from .flash import Flash, FlashConfig, published_loss
from .medusa import Heads, HeadsConfig
from .mlp import Speculator, SpeculatorConfig

RATE = 2e-3
SAVE_MINUTES = 3.0
DECAY = 0.8  # a head counts so much less than the one before it, as published


Guesser = Heads | Speculator | Flash


def distribution_of(model: TargetModel, batch: Batch, logits: Tensor) -> Tensor:
    """Guided logits fp32 [B,R,V] of the codes, from the logits of all sequences [S,R,V or all tokens]."""
    codes, first = codes_of(model.head), int(model.manifest["tokens"]["first_image_id"])
    if logits.shape[-1] != codes:
        logits = logits[..., first : first + codes]
    return guided(logits, batch.pairs, model.guidance)


def published_objective(flash: Flash, model: TargetModel, batch: Batch) -> Tensor:
    """Over the rows from which drafts start; the targets of row j are the features of row j + 1."""
    target = F.pad(batch.targets(1), (0, 0, 0, 1))
    there = per_sequence(batch.codes[:, : batch.roots] != BEHIND, batch.pairs)
    mask = F.pad(there.float(), (0, 1))
    return published_loss(flash.ahead(batch), model.head, target, mask)[2]


def objective(heads: Guesser, model: TargetModel, batch: Batch) -> Tensor:
    states = list(heads.states(batch))
    scale = sum(DECAY**head for head in range(len(states)))

    def terms(states: Sequence[Tensor]) -> Iterator[Tensor]:
        for head, rows, logits, distribution in distribution_parts(
            batch,
            states,
            codes_of(model.head),
            lambda features: distribution_of(model, batch, logits_of(features, model.head)),
            lambda state, head: distribution_of(model, batch, heads.logits(state, head)),
        ):
            marks = batch.drafted(head + 1)
            loss = token_loss(logits, distribution, 0.9, marks[:, rows], marks.sum())
            yield DECAY**head / scale * loss

    return summed(terms, states, heads.parameters())


@torch.no_grad()
def evaluate(heads: Guesser, model: TargetModel, images: Images) -> dict[str, Any]:
    """Acceptance by depth and tokens per target pass of chains, lossless, temperature 1."""
    parts = [acceptance(heads, model, batch) for batch in images.held_out_batches()]
    rates, kept = (torch.cat(part) for part in zip(*parts))
    by_head = rates.flatten(0, 1).nanmean(0).tolist()
    chains = {n: round(chain_compression(kept[..., :n]), 3) for n in range(1, len(by_head) + 1)}
    return {"rates": [round(rate, 4) for rate in by_head], "chains": chains}


def acceptance(heads: Guesser, model: TargetModel, batch: Batch) -> tuple[Tensor, Tensor]:
    """As models.eagle.losses.acceptance."""
    top_k = int(model.manifest["sampling"]["top_k"])

    def distribution(logits: Tensor) -> Tensor:
        return filtered(distribution_of(model, batch, logits), top_k)

    return accepted(
        batch,
        list(heads.states(batch)),
        codes_of(model.head),
        lambda features: distribution(logits_of(features, model.head)),
        lambda state, head: distribution(heads.logits(state, head)),
    )


def new_heads(options: argparse.Namespace, model: TargetModel) -> Guesser:
    """The network that training starts from."""
    codes, hidden = codes_of(model.head), model.embedding.shape[1]
    head, heads = model.head, None
    if options.kind == "medusa":
        heads = Heads(HeadsConfig(hidden, codes, options.heads, options.blocks))
    elif options.kind == "mlp":
        first, size = int(model.manifest["tokens"]["first_image_id"]), len(model.embedding)
        heads = Speculator(SpeculatorConfig(hidden, size, options.heads, options.inner))
        if isinstance(head, Tensor):
            head = F.pad(head, (0, 0, first, size - first - codes))
    else:
        layer = replace(drafter_config(model, options.inner or 4 * hidden), qk_norm=False)
        layer = replace(layer, kv_heads=options.groups or layer.heads)
        heads = Flash(FlashConfig(layer, options.heads, options.queries, options.window))
    heads.begin(model.embedding, head)
    return heads


def train(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = load_for(options.bundle, options.data)
    if model.texts and options.kind != "flash":
        raise ExportError(
            f"{options.data}: holds texts, expected flash for them, not {options.kind}", 2
        )
    images = Images(options.data, drafter_config(model), options.held_out)
    heads = new_heads(options, model)
    optimizer = torch.optim.AdamW(heads.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0)
    step, seconds = 0, 0.0
    if options.out.exists():
        step, seconds = saved.resume(options.out, heads, optimizer)

    def report(loss: float) -> None:
        done = {"step": step, "minutes": round(seconds / 60, 1), "loss": round(loss, 4)}
        progress.record({**done, **evaluate(heads, model, images)})
        saved.save(options.out, heads, optimizer, step, seconds)

    loss_of: Any = published_objective if options.recipe == "published" else objective
    batches = images.batches(options.batch, torch.Generator().manual_seed(step))
    limit, last, loss = 60 * options.minutes, seconds, float("nan")
    progress = Progress(options.out.name, limit, seconds)
    while seconds < limit:
        start = time.process_time()
        share = max(1 - seconds / limit, 0.01)
        optimizer.param_groups[0]["lr"] = RATE * min((step + 1) / 50, 1.0) * share
        optimizer.zero_grad()
        with mixed("cpu"):
            total = loss_of(heads, model, next(batches))
        total.backward()
        optimizer.step()
        loss = float(total.detach())
        step += 1
        seconds += (time.process_time() - start) / torch.get_num_threads()
        progress.show(seconds)
        if seconds - last > 60 * SAVE_MINUTES:
            last = seconds
            report(loss)
    report(loss)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.heads.train", description=__doc__.splitlines()[0]
    )
    parser.add_argument("kind", choices=("medusa", "mlp", "flash"))
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument(
        "--data",
        type=Path,
        required=True,
        help="folder of models.eagle.data or models.eagle.answers",
    )
    parser.add_argument("--out", type=Path, required=True, help="file of the heads")
    parser.add_argument(
        "--heads", type=int, default=4, help="tokens that are drafted ahead (default: %(default)s)"
    )
    parser.add_argument(
        "--blocks",
        type=int,
        default=1,
        help="residual blocks of a head of medusa (default: %(default)s)",
    )
    parser.add_argument(
        "--inner",
        type=int,
        default=0,
        help="inner width of mlp and flash (default: the hidden width, flash four times)",
    )
    parser.add_argument(
        "--groups",
        type=int,
        default=0,
        help="flash: groups of keys and values (default: one for each head)",
    )
    parser.add_argument(
        "--queries",
        type=int,
        default=0,
        help="flash: rows that older ones are compressed to (default: none are compressed)",
    )
    parser.add_argument(
        "--window",
        type=int,
        default=64,
        help="flash: newest rows, which are not compressed (default: %(default)s)",
    )
    parser.add_argument("--recipe", choices=("guided", "published"), default="guided")
    parser.add_argument(
        "--minutes",
        type=float,
        default=20.0,
        help="of processor time per thread (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="images of a step (default: %(default)s)"
    )
    parser.add_argument(
        "--held-out",
        type=int,
        default=64,
        help="images of the first shard that are kept for the report (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    return run_command(lambda: train(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
