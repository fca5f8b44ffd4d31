"""Trains the demo's GPT and text encoder on tokenised images.

Data parallel over processes (one thread each beats one process with as many threads). The main run has
a constant learning rate, so it can go on for as long as there is time; a second, short one starts from
its newest checkpoint and brings the rate to zero. Weights that ship are a moving average. Minutes are
processor time of one process: a busy machine trains as well as an idle one.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from torch import Tensor, nn

from ...precision import mixed
from ...progress import Progress
from .data import WORK
from .feeder import Batch, Feeder, Feeding
from .model import DemoModel, load_pretrained_text, start_from_codes
from .muon import Muon
from .text import PREFIX, CaptionReader, FactHeads
from .vq_model import load_tokenizer

MAIN, COOLED = "ar.pt", "ar-cooled.pt"


@dataclass
class Options(Feeding):
    """Settings of one run; a resumed run may change them."""

    minutes: float = 80.0  # in all, resumed runs included
    cool: bool = False  # the second run
    muon: float = 1e-3  # root mean square of a step
    decay: float = 0.1
    adam: float = 1.5e-3
    auxiliary: float = 0.3  # weight of the attribute heads
    exchange: float = 0.02  # weight of the loss between captions whose colours are exchanged
    subject: tuple[float, float] = (3.0, 1.25)  # loss weight of the subjects' cells: first, last
    calm: float = 2000.0  # steps in which the difference of the two halves
    average: float = 0.999
    save_minutes: float = 2.0
    device: str = "cpu"


class Trainee(nn.Module):
    """The model with the auxiliary heads: they keep the scene's facts alive in the image rows.

    The heads see normalised rows: the residual stream grows, and heads that grow with it take over.
    """

    TAPS = (2, 4)  # layers whose output the heads read
    STRIDE = 4  # positions between rows that the heads read

    def __init__(self, model: DemoModel) -> None:
        super().__init__()
        self.model = model
        self.heads = nn.ModuleList(FactHeads(model.gpt.config.dim) for _ in self.TAPS)

    def forward(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Cross entropy per token [B, 256], the auxiliary loss, and that of exchanged colours."""
        features, mask = self.model.condition(batch.ids, batch.mask)
        logits, taken = self.model.gpt(
            batch.inputs[:, :-1], features, mask, batch.drop, return_layers=self.TAPS
        )
        loss = F.cross_entropy(
            logits.float().flatten(0, 1), batch.tokens.flatten(), reduction="none"
        )
        conditional = ~batch.drop
        rows = [F.rms_norm(x[conditional, PREFIX - 1 :: self.STRIDE], x.shape[-1:]) for x in taken]
        labels = batch.facts[conditional].repeat_interleave(rows[0].shape[1], 0)
        extra = [head.loss(x.flatten(0, 1), labels) for head, x in zip(self.heads, rows)]
        loss = loss.view_as(batch.tokens)
        return loss, torch.stack(extra).mean(), self.exchanged(batch, loss)

    def exchanged(self, batch: Batch, loss: Tensor) -> Tensor:
        """How little an image of two subjects prefers its caption to that with the colours exchanged.

        Which colour is whose is one bit of some 250 in an image: without a loss of its own it is
        learnt last.
        """
        rows = batch.pairs
        if not len(rows):
            return loss.new_zeros(())
        features, mask = self.model.condition(batch.wrong_ids, batch.wrong_mask)
        logits = self.model.gpt(batch.inputs[rows, :-1], features, mask, batch.drop[rows])
        wrong = F.cross_entropy(logits.float().mT, batch.tokens[rows], reduction="none")
        return F.softplus(loss[rows].sum(1) - wrong.sum(1)).sum() / len(loss)


class Trainer:
    """One process of a run."""

    def __init__(self, work: Path, options: Options, rank: int) -> None:
        self.work, self.options, self.rank = work, options, rank
        torch.manual_seed(options.seed)
        self.reader = CaptionReader(work / "text.model")
        model = DemoModel(len(self.reader.pieces))
        # The text encoder is done; noisy gradients of the GPT would only make its features drift.
        load_pretrained_text(model, work / "text.pt")
        model.text.requires_grad_(False)
        start_from_codes(model, load_tokenizer(work / "codes.pt").vq.quantize.table())
        self.trainee = Trainee(model).to(options.device)
        matrices = [p for p in model.gpt.layers.parameters() if p.dim() == 2]
        taken = {id(p) for p in matrices}
        self.weights = [p for p in self.trainee.parameters() if p.requires_grad]
        rest = [p for p in self.weights if id(p) not in taken]
        self.muon = Muon(matrices, options.muon, relative=False, decay=options.decay)
        self.adam = torch.optim.AdamW(rest, options.adam, betas=(0.9, 0.98), weight_decay=0.01)
        self.average = copy.deepcopy(model)
        self.step, self.spent, self.origin = 0, 0.0, 0
        self._resume()
        self.feeder = Feeder(work, rank, self.step, options)

    def _resume(self) -> None:
        """Continues the run, or begins the second one at the newest checkpoint of the first."""
        main = self._saved(MAIN)
        if not self.options.cool:
            if main:
                self._restore(main)
            return
        if main is None:
            raise FileNotFoundError(f"{self.work / MAIN}: the main run comes first")
        cooled = self._saved(COOLED)
        if cooled and cooled["origin"] == main["step"]:
            self._restore(cooled)
        else:
            self._restore(main)
            self.origin, self.spent = self.step, 0.0

    def _saved(self, name: str) -> dict | None:
        path = self.work / name
        return torch.load(path, map_location="cpu", weights_only=True) if path.exists() else None

    def _restore(self, saved: dict) -> None:
        self.trainee.load_state_dict(saved["trainee"])
        self.average.load_state_dict(saved["average"])
        self.muon.load_state_dict(saved["muon"])
        self.adam.load_state_dict(saved["adam"])
        self.step, self.spent, self.origin = saved["step"], saved["spent"], saved["origin"]

    def _save(self) -> None:
        state = {
            "trainee": self.trainee.state_dict(),
            "average": self.average.state_dict(),
            "muon": self.muon.state_dict(),
            "adam": self.adam.state_dict(),
            "step": self.step,
            "spent": self.spent,
            "origin": self.origin,
        }
        part = self.work / "ar.part"
        torch.save(state, part)
        part.rename(self.work / (COOLED if self.options.cool else MAIN))

    def _share(self, gradients: list[Tensor], spent: float) -> float:
        """Averages gradients and the clock over the processes."""
        if self.options.processes == 1:
            return spent
        flat = torch.cat(
            [*(g.flatten() for g in gradients), torch.tensor([spent]).to(gradients[0])]
        )
        dist.all_reduce(flat)
        flat /= self.options.processes
        for gradient, part in zip(gradients, flat[:-1].split([g.numel() for g in gradients])):
            gradient.copy_(part.view_as(gradient))
        return float(flat[-1])

    def _rates(self, share: float) -> float:
        o = self.options
        scale = max(1 - share, 0.0) if o.cool else min((self.step + 1) / 100, 1.0)
        self.muon.param_groups[0]["lr"] = o.muon * scale
        self.adam.param_groups[0]["lr"] = o.adam * scale
        return o.subject[1] + (o.subject[0] - o.subject[1]) * 0.5 ** (self.step / o.calm)

    def run(self) -> None:
        o, base, last_save = self.options, self.spent, time.monotonic()
        begun, total = time.process_time(), 60 * o.minutes
        shown, progress = np.zeros(4), Progress("ar", total, base)
        progress.bar = progress.bar and self.rank == 0
        while self.spent < total:
            weight = self._rates(self.spent / total)
            batch = self.feeder.next().to(o.device)
            with mixed(o.device):
                loss, extra, exchanged = self.trainee(batch)
            emphasis = torch.where(batch.cells, weight, 1.0)
            whole = (loss * emphasis).sum() / emphasis.sum()
            (whole + o.auxiliary * extra + o.exchange * exchanged).backward()
            self.spent = self._share(
                [p.grad for p in self.weights], base + time.process_time() - begun
            )
            nn.utils.clip_grad_norm_(self.weights, 1.0)
            self.muon.step()
            self.adam.step()
            for p in self.weights:
                p.grad = None
            self.step += 1
            progress.show(self.spent)
            decay = min(o.average, (1 + self.step) / (10 + self.step))
            with torch.no_grad():
                torch._foreach_lerp_(
                    list(self.average.parameters()),
                    list(self.trainee.model.parameters()),
                    1 - decay,
                )
            inside = loss.detach()[batch.cells].mean()
            shown += [t.item() for t in (loss.detach().mean(), inside, extra, exchanged)]
            if self.step % 50 == 0:
                self._report(shown / 50, weight, progress)
                shown[:] = 0
                self.feeder.refresh()
            if self.rank == 0 and time.monotonic() - last_save > 60 * o.save_minutes:
                self._save()
                last_save = time.monotonic()
        if self.rank == 0:
            self._save()

    def _report(self, shown: np.ndarray, weight: float, progress: Progress) -> None:
        if self.rank == 0:
            progress.log(
                f"step {self.step} minutes {self.spent / 60:.1f} loss {shown[0]:.3f} "
                f"subject {shown[1]:.3f} attributes {shown[2]:.3f} exchanged {shown[3]:.3f} "
                f"weight {weight:.2f} rate {self.muon.param_groups[0]['lr']:.4f}"
            )


def _process(rank: int, work: Path, options: Options) -> None:
    torch.set_num_threads(1)
    if options.processes > 1:
        store = dist.FileStore(str(work / "ar.store"), options.processes)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=options.processes)
    Trainer(work, options, rank).run()
    if options.processes > 1:
        dist.barrier()
        dist.destroy_process_group()


# Large tensors live for one step: without these the C library maps and clears them every time.
LARGE_TENSORS = {
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TRIM_THRESHOLD_": "100000000000",
    "MALLOC_TOP_PAD_": "268435456",
    "OMP_NUM_THREADS": "1",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


@contextmanager
def environment(changes: dict[str, str]) -> Iterator[None]:
    """Variables for the processes started meanwhile."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def train_ar(work: Path = WORK, options: Options | None = None) -> None:
    """Runs or resumes training; the result is ar.pt, that of the second run ar-cooled.pt."""
    options = options or Options()
    (work / "ar.store").unlink(missing_ok=True)
    with environment(LARGE_TENSORS):
        mp.spawn(_process, (work, options), nprocs=options.processes)
