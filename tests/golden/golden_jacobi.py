"""Recorded passes of speculative Jacobi decoding, and the engine's operators for one image."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import golden_engine as engine
import torch
from golden_cases import Case
from torch import Tensor

from models.export.config_file import Section
from models.export.llamagen.config import Hints
from models.export.llamagen.networks import load_gpt
from models.llamagen.gpt import GPT

FILLS = ("uniform", "random", "repeat", "sample", "above")  # src/tree/window_fill.h
EXACT, PAPER = 0, 0  # src/acceptance/rules.h
MODES = {"random": "random", "repeat_horizon": "repeat", "sample_horizon": "sample"}

# Ids that open an image in front of its first code: its start, its height and its width.
OPENING_IDS = 3


class Window(NamedTuple):
    """Drafts [L], -1 where none is known, and the distributions [L, V] they come from."""

    tokens: Tensor
    rows: Tensor

    def resized(self, slots: int) -> Window:
        """Without drafts behind the last slot, or with empty slots at the end."""
        tokens = torch.full((slots,), -1)
        rows = torch.zeros(slots, self.rows.shape[1])
        kept = min(slots, len(self.tokens))
        tokens[:kept], rows[:kept] = self.tokens[:kept], self.rows[:kept]
        return Window(tokens, rows)

    def known(self) -> int:
        """Slots with a draft, which are the first ones."""
        count = int((self.tokens >= 0).sum())
        assert bool((self.tokens[:count] >= 0).all()), f"gaps in {self.tokens.tolist()}"
        return count


class Verdict(NamedTuple):
    accepted: int  # drafts
    tokens: list[int]  # committed ones: accepted drafts and the last token
    final: Tensor  # [V], the distribution of the last token


@dataclass(frozen=True)
class Pass:
    """One pass over the last committed token and the drafts behind it."""

    target: Tensor  # [N, V]
    draft: Tensor  # [N - 1, V], of the drafts in rows 1..
    tokens: Tensor  # [N]

    @property
    def nodes(self) -> int:
        return len(self.tokens)

    def chain(self, uniforms: Tensor) -> tuple[Tensor, ...]:
        """Arguments of both operators that verify a chain, for one image."""
        order = torch.arange(self.nodes)
        draft_rows = torch.where(order < self.nodes - 1, order, -1)
        chain = (self.target, self.draft, self.tokens.long(), order - 1, draft_rows, uniforms)
        return (*(part[None].contiguous() for part in chain), torch.ones(1))

    def verify(
        self,
        tests: Tensor,
        last: float,
        rule: int = EXACT,
        bounds: Sequence[float] = (),
        codebook: Tensor | None = None,
    ) -> Verdict:
        """tests [N - 1]: a uniform for every draft; last: that of the last token."""
        uniforms = torch.cat([single([last]), single(tests)])
        path, count, token, final, status = engine.operators().verify_tree(
            *self.chain(uniforms), torch.empty(0, dtype=torch.int32), rule, PAPER, True, 0,
            torch.tensor(bounds).float(), 0, self.nodes - 1, codebook=codebook,
        )  # fmt: skip
        assert int(status) == 0, f"verify_tree: status {int(status)}"
        accepted = int(count)
        taken = path[0, : accepted + 1]
        assert torch.equal(taken, torch.arange(accepted + 1)), f"path {taken.tolist()}"
        tokens = [*self.tokens[taken[1:]].tolist(), int(token)]
        return Verdict(accepted, tokens, final[0])

    def renew(self, accepted: int, keep: bool, tests: Tensor, samples: Tensor) -> Window:
        """tests [N - 1]: a uniform for every draft; samples [N]: one for the token behind a row."""
        if self.nodes == 1:
            return Window(torch.empty(0, dtype=torch.long), self.draft[:0])
        uniforms = torch.cat([torch.zeros(1), single(tests), single(samples)])
        tokens, rows = engine.operators().renew_window(
            *self.chain(uniforms), torch.tensor([accepted]), keep
        )
        return Window(tokens[0], rows[0])


def single(uniforms: Any) -> Tensor:
    """Recorded uniforms as the operators take them; -1 means that none was sampled."""
    given = torch.as_tensor(uniforms)
    taken = given.clamp_min(0).float()
    assert torch.equal(taken.to(given.dtype), given.clamp_min(0)), "no fp32 uniforms"
    return taken


def fill(
    window: Window,
    kind: str,
    uniforms: Tensor,
    codes: int,
    steps: int = 0,
    left: int = -1,
    columns: int = 1,
) -> Window:
    """Guesses for the empty slots; uniforms [L], read at these slots alone."""
    rows = window.rows[None].clone()
    tokens = engine.operators().fill_window(
        window.tokens[None], rows, single(uniforms)[None], torch.tensor([steps]),
        torch.tensor([left]), torch.empty(1, 0, dtype=torch.long), columns, codes,
        FILLS.index(kind),
    )  # fmt: skip
    return Window(tokens[0], rows[0])


def sample(rows: Tensor, uniforms: Tensor) -> list[int]:
    """A token of every row [N, V], by its own uniform."""
    tokens = engine.operators().sample(
        rows[None].contiguous(), single(uniforms)[None], torch.ones(1)
    )
    return [int(token) for token in tokens.flatten()]


def tolerance(case: Case, of: str) -> float:
    """Of the case's fp32 numbers, which may have one for all."""
    allowed = case.info["tolerance"]["float32_abs"]
    return float(allowed[of] if isinstance(allowed, dict) else allowed)


class Iteration:
    """Tensors of one pass of a case; two records name them differently."""

    def __init__(self, case: Case, number: int) -> None:
        self.case = case
        self.info: dict[str, Any] = case.info["iterations"][number]
        self.name = f"it{self.info['iteration']}"

    def __getitem__(self, name: str) -> Tensor:
        return self.case.tensors[f"{self.name}.{name}"]

    def has(self, name: str) -> bool:
        return self.case.has(f"{self.name}.{name}")

    def where(self) -> str:
        return f"{self.case.name} {self.name}"

    @property
    def before(self) -> int:
        """Tokens committed before the pass."""
        return int(self.info["committed_before"])

    @cached_property
    def tokens(self) -> Tensor:
        name = "input_tokens" if self.has("input_tokens") else "node_tokens"
        return self[name].long()

    @property
    def positions(self) -> Tensor:
        return self["positions" if self.has("positions") else "position"]

    @property
    def committed(self) -> list[int]:
        return list(self["committed" if self.has("committed") else "emitted"].tolist())

    def recorded_pass(self) -> Pass:
        target = self["target"]
        draft = self["draft"] if self.has("draft") else torch.empty(0, target.shape[1])
        return Pass(target, draft, self.tokens)


def iterations(case: Case) -> Iterator[Iteration]:
    """All passes, after a check that together they give the recorded image."""
    found = [Iteration(case, number) for number in range(len(case.info["iterations"]))]
    tokens = [int(case.tensors["tokens"][0])]
    for each in found:
        assert each.before == len(tokens), f"{each.where()}: {len(tokens)} tokens before it"
        assert int(each.tokens[0]) == tokens[-1], f"{each.where()}: not behind the last token"
        tokens += each.committed
    recorded = case.tensors["tokens"].tolist()
    assert tokens[: len(recorded)] == recorded, f"{case.name}: passes do not give its tokens"
    yield from found


class Initialisation:
    """One recorded guess at the end of a window.

    The ids of an image are a range of the vocabulary: all are turned so that they are 0, 1, ..
    """

    def __init__(self, case: Case, number: int) -> None:
        self.case = case
        self.info: dict[str, Any] = case.info["cases"][number]
        self.vocabulary = int(case.info["dims"]["vocabulary"])
        self.first, last = map(int, case.info["dims"]["image_ids"].split(".."))
        self.codes = last + 1 - self.first
        self.columns = self.info["grid_width"] + 1  # an id of its own ends every line
        self.steps = self.info["committed"] - self.info["prefill"] - OPENING_IDS
        # What stands to the left counts from the image's first code on.
        inside = self.steps + self.info["kept"] >= 0
        self.kind = MODES[self.info["mode"]] if inside else "random"

    def __getitem__(self, name: str) -> Tensor:
        return self.case.tensors[f"c{self.info['case']}.{name}"]

    def where(self) -> str:
        return f"{self.case.name} case {self.info['case']}"

    def turned(self, tokens: Tensor) -> Tensor:
        return (tokens.long() - self.first) % self.vocabulary

    def slots(self) -> Window:
        """Drafts that were kept and the guesses behind them."""
        kinds = ("kept", "fill") if self.info["kept"] else ("fill",)
        tokens = torch.cat([self[f"{kind}_tokens"] for kind in kinds])
        rows = torch.cat([self[f"{kind}_scores"] for kind in kinds])
        assert len(tokens) == self.info["kept"] + self.info["fill"], self.where()
        return Window(self.turned(tokens), rows.roll(-self.first, 1))

    def kept(self) -> Window:
        """The slots before the guesses."""
        slots, count = self.slots(), self.info["kept"]
        return Window(slots.tokens[:count], slots.rows[:count]).resized(len(slots.tokens))

    def uniforms(self) -> Tensor:
        random = self["random_image_index"].float()
        return torch.cat([torch.zeros(self.info["kept"]), (random + 0.5) / self.codes])

    def left(self) -> int:
        """What stands at the last committed position; -1: nothing may ask for it."""
        if self.info["kept"]:
            return -1
        last = self["committed_tokens"][-1]
        if self.kind == "sample":
            last = self["committed_scores"][-1].argmax()
        return int(self.turned(last))


class Network:
    """The repository's GPT with a case's weights and prompt."""

    def __init__(self, case: Case) -> None:
        self.case = case
        dims = case.info["dims"]
        block = {"n_head": dims["heads"], "grid": dims["grid"]}
        self.model: GPT = load_gpt(
            case.folder / case.info["weights_file"], Section(block, "case.json"), Hints()
        )
        self.prompt = self.model.config.cls_token_num
        self.mask: Tensor | None = None
        if case.has("text_features"):
            self.condition = case.tensors["text_features"][None]
            self.mask = case.long("text_mask")[None]
        else:
            self.condition = torch.tensor([case.info["class_id"]])

    @torch.inference_mode()
    def logits(self, inputs: Tensor) -> Tensor:
        """[2, n + 1, V] after none, one, .. n of the image's tokens, conditional ones first."""
        halves = (self.condition, self.model.unconditional(self.condition))
        return torch.cat([self.model(inputs[None], half, self.mask) for half in halves])

    def behind(self, each: Iteration) -> Tensor:
        """Logits [2, N, V] of the rows of a pass."""
        inputs = torch.cat([self.case.long("tokens")[: each.before - 1], each.tokens])
        return self.logits(inputs)[:, each.before :]


def filtered(logits: Tensor, settings: dict[str, Any]) -> Tensor:
    """Distributions [N, V] of logits [2, N, V], the conditional half alone where nothing guides."""
    names = ("temperature", "top_k", "top_p")
    options = {name: settings[name] for name in names}
    scale = float(settings["guidance"])
    if scale == 1.0:
        return engine.probabilities(logits[0], **options)
    rows = [
        engine.probabilities(logits[:, row], **options, guidance=scale)
        for row in range(logits.shape[1])
    ]
    return torch.cat(rows)
