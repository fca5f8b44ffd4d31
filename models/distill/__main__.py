"""Trains a small target to draft for a bundle's own, on a data set of `models.eagle.data`.

    python -m models.eagle.data --bundle DIR --captions FILE --out FOLDER --images 4096
    python -m models.distill --bundle DIR --data FOLDER --out student.pt --divergence tvd --minutes 20
    python -m models.export llamagen --gpt student.pt --config student.json --out STUDENT --dtype bf16
    python -m models.export draft-model --model DIR --from STUDENT --name small

DistillSpec (Zhou et al. 2024): the student's distributions approach the target's on its own images,
after guidance, as they are drafted and verified. FILE is rewritten every few minutes; the same command
continues from it. Beside it lies the description that the exporter asks for.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..eagle.data import BUILD, SHARD, Images
from ..eagle.features import TargetModel, load_target
from ..eagle.files import read_lines, save_whole
from ..eagle.losses import chain_compression, filtered, guided_logits
from ..eagle.train import drafter_config
from ..export import checkpoint
from ..export.checkpoint import ExportError
from ..export.command import run_command
from ..llamagen.config import GPTConfig
from ..precision import mixed
from ..progress import Progress
from .student import (
    Conditions,
    Size,
    chain_tests,
    divergence,
    new_student,
    student_config,
    student_logits,
)

DIVERGENCES = ("forward-kl", "reverse-kl", "tvd")
STEPS = 5  # longest chain of the reports
Row = tuple[int, int]  # shard and row of an image


@dataclass
class Options:
    """How to train; `minutes` is the whole schedule's, in processor time per thread."""

    divergence: str = "forward-kl"
    minutes: float = 20.0
    batch: int = 8
    rate: float = 3e-3
    muon_rate: float = 2e-2
    warm_up: int = 50
    save_minutes: float = 3.0
    seed: int = 0


class Distillation:
    """One training run: student, optimisers, clock, and the file they are kept in."""

    def __init__(
        self,
        model: TargetModel,
        config: GPTConfig,
        options: Options,
        images: Images,
        conditions: Conditions,
        out: Path,
    ) -> None:
        torch.manual_seed(options.seed)
        self.model, self.options, self.out = model, options, out
        self.images, self.conditions = images, conditions
        self.student = new_student(config, model)
        matrices = [w for w in self.student.layers.parameters() if w.dim() == 2]
        known = {id(weight) for weight in matrices}
        others = [w for w in self.student.parameters() if id(w) not in known]
        self.parts: list[torch.optim.Optimizer] = [
            torch.optim.Muon(matrices, lr=options.muon_rate, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(others, lr=options.rate, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        self.step, self.seconds = 0, 0.0
        if out.exists():
            self.resume()

    def resume(self) -> None:
        saved = checkpoint.read_file(self.out)
        known = isinstance(saved, dict) and "optimizers" in saved
        if not known or saved["shape"] != asdict(self.student.config):
            raise ExportError(f"{self.out}: holds another student; name a new file", 7)
        self.student.load_state_dict(saved["model"])
        for part, state in zip(self.parts, saved["optimizers"]):
            part.load_state_dict(state)
        self.step, self.seconds = saved["step"], saved["seconds"]

    def save(self) -> None:
        """Rewrites the file, and the description of the student's shape beside it."""
        config = self.student.config
        shape = {
            "n_head": config.n_head,
            "grid": config.grid,
            "prefix_rotation": config.prefix_rotation,
        }
        save_whole(
            {
                "model": self.student.state_dict(),
                "shape": asdict(config),
                "optimizers": [part.state_dict() for part in self.parts],
                "step": self.step,
                "seconds": self.seconds,
            },
            self.out,
        )
        self.out.with_suffix(".json").write_text(json.dumps({"gpt": shape}) + "\n")

    def distributions(self, rows: list[Row]) -> tuple[Tensor, Tensor, Tensor]:
        """Logits of student and target [B, M - 1, V], and the codes [B,M]."""
        batch, model = self.images.batch(rows), self.model
        condition = self.conditions.of(torch.tensor([shard * SHARD + row for shard, row in rows]))
        with torch.no_grad():
            target = guided_logits(batch.targets(1), model.head, batch.pairs, model.guidance)
        return (
            student_logits(self.student, batch.codes, condition, batch.pairs, model.guidance),
            target,
            batch.codes,
        )

    @torch.no_grad()
    def evaluate(self) -> dict[str, Any]:
        """Acceptance and tokens per target pass of chains on held-out images, at temperature 1."""
        top_k = int(self.model.manifest["sampling"]["top_k"])
        parts = []
        for first in range(0, self.images.held_out, 8):
            last = min(first + 8, self.images.held_out)
            student, target, codes = self.distributions([(0, row) for row in range(first, last)])
            distributions = (filtered(logits, top_k) for logits in (target, student))
            parts.append(chain_tests(*distributions, codes, STEPS))
        rates, tests = (torch.cat(part) for part in zip(*parts))
        return {
            "rate": round(float(rates[..., 0].mean()), 4),
            "chains": {n: round(chain_compression(tests[..., :n]), 3) for n in range(1, STEPS + 1)},
        }

    def report(self, loss: float | None, progress: Progress) -> None:
        """`loss`: of the last step of this run; None: there was none."""
        result: dict[str, Any] = {
            "step": self.step,
            "minutes": round(self.seconds / 60, 1),
            "training images": len(self.images),
        }
        if loss is not None:
            result["loss"] = round(loss, 4)
        progress.record({**result, **self.evaluate()})

    def rows(self) -> Iterator[list[Row]]:
        generator = torch.Generator().manual_seed(self.options.seed + self.step)
        return self.images.rows(self.options.batch, generator)

    def run(self) -> None:
        options, batches = self.options, self.rows()
        limit, saved = 60 * options.minutes, self.seconds
        progress = Progress(self.out.name, limit, self.seconds)
        loss: float | None = None
        while self.seconds < limit:
            start = time.process_time()
            with mixed("cpu"):
                student, target, _ = self.distributions(next(batches))
            total = divergence(options.divergence, student.float(), target.float())
            self.learn(total)
            loss = float(total.detach())
            self.step += 1
            self.seconds += (time.process_time() - start) / torch.get_num_threads()
            progress.show(self.seconds)
            if self.seconds - saved > 60 * options.save_minutes:
                saved = self.seconds
                self.report(loss, progress)
                self.save()
        self.report(loss, progress)
        self.save()

    def learn(self, loss: Tensor) -> None:
        options = self.options
        left = max(1 - self.seconds / (60 * options.minutes), 0.01)
        factor = left * min((self.step + 1) / options.warm_up, 1.0)
        for part, rate in zip(self.parts, (options.muon_rate, options.rate)):
            part.param_groups[0]["lr"] = rate * factor
            part.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.student.parameters(), 1.0)
        for part in self.parts:
            part.step()


def distill(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(arguments.threads)
    model = load_target(arguments.bundle)
    size = Size(arguments.dim, arguments.layers, arguments.heads, arguments.ffn)
    config = student_config(model, size)
    images = Images(arguments.data, drafter_config(model), arguments.held_out)
    captions = read_lines(arguments.data / "captions.txt")
    conditions = Conditions(model, captions, arguments.build)
    options = Options(arguments.divergence, arguments.minutes, arguments.batch)
    Distillation(model, config, options, images, conditions, arguments.out).run()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m models.distill",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True, help="folder of models.eagle.data")
    parser.add_argument("--out", type=Path, required=True, help="file of the student")
    parser.add_argument(
        "--divergence", choices=DIVERGENCES, default="forward-kl", help="default: %(default)s"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=20.0,
        help="of processor time per thread (default: %(default)s)",
    )
    parser.add_argument(
        "--batch", type=int, default=8, help="images of a step (default: %(default)s)"
    )
    parser.add_argument("--layers", type=int, default=2, help="default: %(default)s")
    parser.add_argument("--dim", type=int, default=0, help="width, default: the target's")
    parser.add_argument("--heads", type=int, default=0, help="default: heads of the target's width")
    parser.add_argument("--ffn", type=int, default=0, help="default: twice the width")
    parser.add_argument(
        "--held-out",
        type=int,
        default=64,
        help="images of the first shard that are kept for the report (default: %(default)s)",
    )
    parser.add_argument("--threads", type=int, default=1, help="default: %(default)s")
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    options = parser.parse_args(arguments)
    return run_command(lambda: distill(options))


if __name__ == "__main__":
    sys.exit(main())
