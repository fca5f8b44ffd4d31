"""Trains a refiner of stale drafts on the windows that it drafts itself.

    python -m models.heads.train_refiner --bundle DIR --captions FILE --out FILE --minutes 40

generates images of the captions (one a line, a number for a bundle of classes; `demo`: the demo's own) in
windows of --slots drafts at temperature 1, many images side by side. After every pass of the target the
refiner learns the distributions that its drafts are verified against. FILE is rewritten every few minutes;
the same command continues from it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor

from ..eagle.data import BUILD, captions_of
from ..eagle.features import Ids, TargetModel, load_target, prompt_ids
from ..eagle.losses import token_loss
from ..export.checkpoint import ExportError
from ..export.command import run_command
from ..progress import Progress
from . import saved
from .refine import Refiner, RefinerConfig
from .windows import WORD, Windows

RATE = 2e-3
SAVE_MINUTES = 3.0
ACCEPTANCE = 0.9  # share of the acceptance rate in the loss; the rest is cross entropy
DONE = 0.75  # share of images that are complete when the next ones begin
CAPTIONS = 8192  # most that are generated, again and again


def check(model: TargetModel) -> Tensor:
    """The target's head, where windows of this kind fit it."""
    if not isinstance(model.head, Tensor):
        raise ExportError(f"{model.bundle}: the target's head is no single product")
    if model.grid["row_end"]:
        raise ExportError(f"{model.bundle}: rows of its images end with a token")
    first, codes = int(model.manifest["tokens"]["first_image_id"]), model.manifest["target"]["head"]
    return model.head if len(model.head) == codes else model.head[first : first + codes]


def batches(
    model: TargetModel, captions: list[str], count: int, build: Path
) -> Iterator[list[list[Ids]]]:
    """Prompts of `count` images at a time, without end."""
    at = 0
    while True:
        part = [captions[(at + i) % len(captions)] for i in range(count)]
        at += count
        yield prompt_ids(model, part, build)


def losses(drafted: Tensor, target: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """The loss of the drafts of a pass, each counted as often as it would be reached, and how many of them
    would be accepted. Logits [n,L,V] of both; live: bool [n]."""
    total, reach, kept = drafted.new_zeros(()), live.float(), drafted.new_zeros(())
    for position in range(drafted.shape[1]):
        p, q = target[:, position], drafted[:, position]
        total = total + reach.mean() * token_loss(q, p, ACCEPTANCE, reach)
        rate = torch.minimum(p.softmax(-1), q.detach().softmax(-1)).sum(-1)
        reach = reach * rate
        kept = kept + reach.sum() / live.sum()
    return total, kept


class Training:
    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.model = load_target(options.bundle)
        self.head = check(self.model)
        codes, hidden = self.head.shape
        self.refiner = Refiner(RefinerConfig(hidden, codes, options.inner))
        self.optimizer = torch.optim.AdamW(
            self.refiner.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0
        )
        self.step, self.seconds = 0, 0.0
        if options.out.exists():
            where = (options.out, self.refiner, self.optimizer)
            self.step, self.seconds = saved.resume(*where)

    def report(self, kept: float, progress: Progress) -> None:
        done = {"step": self.step, "minutes": round(self.seconds / 60, 1)}
        progress.record({**done, "accepted": round(kept, 3)})
        saved.save(self.options.out, self.refiner, self.optimizer, self.step, self.seconds)

    def learn(self, windows: Windows) -> float:
        """One pass of the target."""
        share = max(1 - self.seconds / (60 * self.options.minutes), 0.01)
        self.optimizer.param_groups[0]["lr"] = RATE * min((self.step + 1) / 50, 1.0) * share
        self.optimizer.zero_grad()
        drafts, logits = windows.draft(self.refiner)
        hidden = windows.score(drafts)
        loss, kept = losses(logits, hidden[:, :-1] @ self.head.T, windows.live)
        loss.backward()
        self.optimizer.step()
        self.step += 1
        windows.accept(drafts, logits.detach(), hidden)
        return float(kept)

    def run(self, captions: list[str]) -> None:
        limit, last, kept = 60 * self.options.minutes, self.seconds, []
        progress = Progress(self.options.out.name, limit, self.seconds)
        prompts = batches(self.model, captions, self.options.batch, self.options.build)
        while self.seconds < limit:
            windows = Windows(self.model, self.head, next(prompts), self.options.slots)
            while float(windows.live.float().mean()) > 1 - DONE and self.seconds < limit:
                start = time.process_time()
                kept.append(self.learn(windows))
                self.seconds += (time.process_time() - start) / torch.get_num_threads()
                progress.show(self.seconds)
                if self.seconds - last > 60 * SAVE_MINUTES:
                    self.report(sum(kept) / len(kept), progress)
                    last, kept = self.seconds, []
        self.report(sum(kept) / max(len(kept), 1), progress)


def train(options: argparse.Namespace) -> None:
    for name, most in (("slots", WORD - 2), ("batch", 1 << 16), ("inner", 1 << 16)):
        if not 1 <= (got := getattr(options, name)) <= most:
            raise ExportError(f"--{name}: got {got}, expected 1 to {most}", 2)
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    captions = captions_of(options.captions, CAPTIONS)
    if not captions:
        raise ExportError(f"{options.captions}: got no captions")
    Training(options).run(captions)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.heads.train_refiner",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--captions", required=True, help="a file, or demo: the demo's own")
    parser.add_argument("--out", type=Path, required=True, help="file of the refiner")
    parser.add_argument(
        "--slots", type=int, default=6, help="drafts of a window (default: %(default)s)"
    )
    parser.add_argument(
        "--inner", type=int, default=256, help="inner width of the refiner (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=40.0,
        help="of processor time per thread (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=64, help="images side by side (default: %(default)s)"
    )
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    return run_command(lambda: train(parser.parse_args(arguments)))


if __name__ == "__main__":
    sys.exit(main())
