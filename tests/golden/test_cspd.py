"""Continuous speculative decoding: recorded decisions, then networks with the recorded prefix, then free runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import golden_continuous as recorded
import golden_engine as engine
import golden_mar as mar
import pytest
import torch
from continuous_loop import Image, RandomNumbers, Settings, Speculation, Speculator
from continuous_rule import Gaussian, accepts, log_ratio, residual
from golden_cases import Case
from torch import Tensor

KINDS = ("continuous/cspd",)
RATIO = 0.5  # what an error of 1e-4 in the mean makes of a log ratio
NEAR = 0.1  # nats; log ratios of free runs drift by less
FREE = 2e-3


@pytest.fixture(scope="module")
def pair(case: Case) -> mar.Pair:
    return mar.Pair(case)


def runs(case: Case) -> dict[str, dict[str, Any]]:
    found = case.info.get("reference_runs", {})
    assert found
    return dict(found)


def settings_of(run: dict[str, Any]) -> Settings:
    return Settings(run["label"], run["cfg"], run["sched"], run["temp"])


def how_of(run: dict[str, Any]) -> Speculation:
    rule = "paper" if run["sigma_on"] else "exact"
    return Speculation(rule, run["gamma"], run["prefill_ratio"], run["cap"], run["last_noise"])


def numbers_of(case: Case) -> RandomNumbers:
    names = ("x_T", "noise", "u", "residual_noise", "residual_u")
    return RandomNumbers(*(case.tensors[f"common.{name}"] for name in names))


class Events:
    """A run's verified draft tokens, in order."""

    def __init__(self, case: Case, name: str, run: dict[str, Any]) -> None:
        bonus = case.tensors[f"{name}.bonus"].bool()
        self.rows = {
            key.rpartition(".")[2]: tensor[~bonus]
            for key, tensor in case.tensors.items()
            if key.startswith(f"{name}.") and len(tensor) == len(bonus) and tensor.dim() < 3
        }
        self.target = Gaussian(self["mu_p"], self["sd_p"])
        self.draft = Gaussian(self["mu_q"], self["sd_q"])
        places, cap = self["pos"].long(), run["cap"]
        self.uniform = case.tensors["common.u"][places]
        self.noise = case.tensors["common.residual_noise"][places, :cap]
        self.uniforms = case.tensors["common.residual_u"][places, :cap]
        self.log_sigma = self["log_sigma"] if run["sigma_on"] else torch.zeros(len(places)).double()

    def __getitem__(self, name: str) -> Tensor:
        return self.rows[name]


Ratio = Callable[[Tensor, Gaussian, Gaussian], Tensor]
Redraw = Callable[[Gaussian, Gaussian, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def plain_residual(*arguments: Any) -> tuple[Tensor, Tensor]:
    """As the operator tells it: no number of a proposal when none is accepted."""
    found = residual(*arguments)
    return found.token, found.tries * found.found


def operator_ratio(x: Tensor, p: Gaussian, q: Gaussian) -> Tensor:
    return engine.operators().gaussian_log_ratio(x, p.mean, p.deviation, q.mean, q.deviation)


def operator_residual(p: Gaussian, q: Gaussian, *rest: Tensor) -> tuple[Tensor, Tensor]:
    arguments = (p.mean, p.deviation, q.mean, q.deviation, *rest)
    return engine.operators().gaussian_residual(*arguments)


def replay(case: Case, ratio_of: Ratio, redraw: Redraw) -> None:
    """Decisions, numbers of proposals and tokens, of recorded means and deviations."""
    for name, run in runs(case).items():
        events = Events(case, name, run)
        p, q = events.target, events.draft
        ratio = events.log_sigma + ratio_of(events["draft"], p, q)
        expected = events["log_ratio"]
        # Of ratios of thousands fp64 sums of fp32 numbers keep this much.
        torch.testing.assert_close(ratio, expected, atol=1e-6, rtol=1e-9, msg=name)
        accepted = accepts(events.uniform, ratio)
        assert torch.equal(accepted, events["accept"].bool()), name
        out = events["draft"].clone()
        token, tries = redraw(p, q, events.log_sigma, events.noise, events.uniforms)
        missed = ~accepted & (tries == 0)
        assert torch.equal(missed, events["fallback"].bool()), name
        tries = torch.where(missed, run["cap"], tries)
        assert torch.equal(torch.where(accepted, 0, tries), events["tries"].long()), name
        out[~accepted] = token[~accepted]
        engine.assert_close(name, out, events["out"], 1e-6)
        assert [int(accepted.sum()), int(missed.sum())] == [run["accepted"], run["fallbacks"]], name


def test_decisions(case: Case) -> None:
    replay(case, log_ratio, plain_residual)


def test_operators(case: Case) -> None:
    """The engine's operators decide as the plain rule does."""
    if not hasattr(engine.operators(), "gaussian_log_ratio"):
        pytest.skip("the operator library has no gaussian_log_ratio")
    replay(case, operator_ratio, operator_residual)


def bare(case: Case, pair: mar.Pair, run: dict[str, Any]) -> Speculator:
    order, steps = case.long("common.order_first"), run["num_sampling_steps"]
    target, draft = (pair.network(name, steps) for name in ("target", run["draft"]))
    return Speculator(
        target, draft, order, settings_of(run), numbers_of(case), how_of(run),
        case.info["dims"]["classes"],
    )  # fmt: skip


def prefix_images(case: Case, name: str, run: dict[str, Any], order: Tensor) -> list[Image]:
    """What the recorded events saw: tokens committed when their cycles began, and its drafts."""
    tokens, starts = case.tensors[f"{name}.tokens"], case.tensors[f"{name}.cycle_start"].tolist()
    images = []
    for event, (start, k) in enumerate(
        zip(starts, case.tensors[f"{name}.k"].tolist(), strict=True)
    ):
        image = Image(torch.zeros_like(tokens), torch.zeros(len(tokens), dtype=torch.bool))
        image.put(order[:start], tokens[order[:start]])
        first = event - (k - start)
        drafts = case.tensors[f"{name}.draft"][first:event]
        image.put(order[start:k], drafts)
        images.append(image)
    return images


@torch.inference_mode()
def test_networks(case: Case, pair: mar.Pair) -> None:
    """Means and deviations of the networks under the recorded prefix, and the ratios they give."""
    for name, run in runs(case).items():
        speculator = bare(case, pair, run)
        order, bonus = speculator.order, case.tensors[f"{name}.bonus"].bool().tolist()
        sigmas = case.tensors[f"{name}.log_sigma"]
        for event, image in enumerate(prefix_images(case, name, run, order)):
            k = int(case.tensors[f"{name}.k"][event])
            target = speculator.chain(speculator.target, image, k)
            pairs = [("p", target)]
            if not bonus[event]:
                draft = speculator.chain(speculator.draft, image, k)
                pairs.append(("q", draft))
                sigma = (draft.log_deviations - target.log_deviations).sum(-1)
                engine.assert_close(f"{name} log_sigma", sigma, sigmas[event : event + 1],
                                    case.tolerance("log_sigma"))  # fmt: skip
                token = case.tensors[f"{name}.draft"][event : event + 1]
                ratio = log_ratio(token, target.last, draft.last) + (
                    sigma if run["sigma_on"] else 0
                )
                expected = case.tensors[f"{name}.log_ratio"][event : event + 1]
                torch.testing.assert_close(ratio, expected, atol=RATIO, rtol=1e-2)
            for letter, found in pairs:
                mean, deviation = (
                    case.tensors[f"{name}.{part}_{letter}"][event : event + 1]
                    for part in ("mu", "sd")
                )
                engine.assert_close(f"{name} {event}", found.last.mean, mean, case.tolerance("mu"))
                torch.testing.assert_close(found.last.deviation, deviation, rtol=case.tolerance("sd"), atol=0)  # fmt: skip


def test_steps_of_deviations(case: Case, pair: mar.Pair) -> None:
    """The sums that a chain gives equal the recorded steps'."""
    for name, run in runs(case).items():
        for letter, role in (("p", "target"), ("q", "draft")):
            key = f"{name}.log_sd_{letter}_steps"
            if not case.has(key):
                continue
            expected = case.tensors[key][:, 1:].double().sum(1)
            speculator = bare(case, pair, run)
            images = prefix_images(case, name, run, speculator.order)
            verified = (
                (~case.tensors[f"{name}.bonus"].bool()).nonzero()[: len(expected), 0].tolist()
            )
            for row, event in enumerate(verified):
                k = int(case.tensors[f"{name}.k"][event])
                with torch.inference_mode():
                    found = speculator.chain(getattr(speculator, role), images[event], k)
                engine.assert_close(key, found.log_deviations[0], expected[row], 2e-3)


def margins(case: Case, name: str, run: dict[str, Any]) -> Tensor:
    """By how much every verified draft token and its proposals missed being decided the other way, in nats."""
    events = Events(case, name, run)
    margin = (events.uniform.log() - events["log_ratio"].clamp(max=0)).abs()
    for r in range(run["cap"]):
        used = events["tries"] > r
        proposal = events.target.sample(events.noise[:, r])
        gain = events.log_sigma + log_ratio(proposal, events.target, events.draft)
        # Accepted if exp(-gain) < 1 - v.
        miss = (gain + torch.log1p(-events.uniforms[:, r])).abs()
        margin = torch.where(used, torch.minimum(margin, miss), margin)
    return margin


def test_free_runs(case: Case, pair: mar.Pair) -> None:
    """Own prefixes all the way: every event is the recorded one up to the first that was a near thing."""
    for name, run in runs(case).items():
        speculator = bare(case, pair, run)
        tokens = speculator.run()
        keys = ("k", "cycle_start", "pos", "accept", "tries", "fallback")
        expected = torch.stack([case.long(f"{name}.{key}") for key in keys], 1)
        bonus = case.tensors[f"{name}.bonus"].bool()
        expected[bonus, 3] = 1
        events = torch.tensor([
            [e.k, e.cycle_start, e.place, e.accepted, e.tries, e.fallback] for e in speculator.events
        ])  # fmt: skip
        margin = torch.full((len(bonus),), torch.inf, dtype=torch.double)
        margin[~bonus] = margins(case, name, run)
        count = min(len(events), len(expected))
        other = (events[:count] != expected[:count]).any(1).nonzero()[:, 0].tolist()
        if other:
            where = f"{name} event {other[0]}: {events[other[0]].tolist()}, {expected[other[0]].tolist()}"
            assert float(margin[other[0]]) < NEAR, where
            continue
        assert len(events) == len(expected), name
        engine.assert_recorded(case, f"{name}.tokens", tokens, FREE)


def cycles_of(case: Case, name: str) -> Tensor:
    """First token, tokens and accepted drafts of every recorded cycle."""
    starts, drafts = case.long(f"{name}.cycle_start"), ~case.tensors[f"{name}.bonus"].bool()
    accepted = case.tensors[f"{name}.accept"].bool() & drafts
    return torch.tensor([
        [start, int((starts == start).sum()), int(accepted[starts == start].sum())]
        for start in starts.unique().tolist()
    ])  # fmt: skip


def test_free_runs_of_the_engine(case: Case, pair: mar.Pair, tmp_path: Path) -> None:
    """The compiled loop's cycles are the recorded ones up to the first with a near thing, and so are its tokens.

    It knows no last step without noise.
    """
    names = ("start", "noise", "uniforms", "residual_noise", "residual_uniforms")
    numbers = dict(zip(names, vars(numbers_of(case)).values(), strict=True))
    order, compared = case.long("common.order_first"), 0
    for name, run in runs(case).items():
        if not run["last_noise"]:
            continue
        how, settings = how_of(run), settings_of(run)
        folder = recorded.bundle(
            tmp_path / "bundle", run["num_sampling_steps"], pair.models["target"],
            pair.models[run["draft"]],
        )  # fmt: skip
        inputs = {"order": order, **numbers}
        generated = recorded.generate(
            folder,
            {"class_ids": torch.tensor([settings.label]), **{k: v[None] for k, v in inputs.items()}},
            method="cspd", rule=how.rule, gamma=how.gamma, prefill_ratio=how.prefill_ratio,
            cap=how.cap, cfg_scale=settings.cfg, schedule=settings.schedule,
            temperature=settings.temperature,
        )  # fmt: skip
        got, expected = generated["cycles.0"], cycles_of(case, name)
        got = got[got[:, 0] >= run["prefill_tokens"]]
        count = min(len(got), len(expected))
        other = (got[:count] != expected[:count]).any(1).nonzero()[:, 0].tolist()
        same = order  # positions whose tokens are recorded ones
        if other:
            start = int(expected[other[0], 0])
            verified = case.long(f"{name}.cycle_start")[~case.tensors[f"{name}.bonus"].bool()]
            margin = float(margins(case, name, run)[verified == start].min())
            assert margin < NEAR, f"{name}: {got[other[0]].tolist()}, {expected[other[0]].tolist()}"
            same = order[:start]
        else:
            tries, fallbacks = case.long(f"{name}.tries"), case.long(f"{name}.fallback")
            assert len(got) == len(expected), name
            assert generated["counts.0"].tolist()[1:] == [int(tries.sum()), int(fallbacks.sum())], (
                name
            )
            compared += 1
        engine.assert_close(name, generated["tokens"][0][same], case.tensors[f"{name}.tokens"][same], FREE)  # fmt: skip
    assert compared


def test_a_draft_that_is_the_target(case: Case, pair: mar.Pair) -> None:
    """Everything is accepted, and the tokens are the target's own."""
    run = next(iter(runs(case).values()))
    target, order, classes = pair.network("target", run["num_sampling_steps"]), case.long("common.order_first"), case.info["dims"]["classes"]  # fmt: skip
    tokens = []
    for ratio, rule, gamma in ((1.0, "exact", 1), (0.0, "paper", 7)):
        how = Speculation(rule, gamma, ratio, run["cap"])
        speculator = Speculator(
            target, target, order, settings_of(run), numbers_of(case), how, classes
        )
        tokens.append(speculator.run())
        assert all(event.accepted and abs(event.ratio) < 1e-3 for event in speculator.events)
        cycles = -(-len(order) // (gamma + 1))
        assert len({event.cycle_start for event in speculator.events}) == (0 if ratio else cycles)
    engine.assert_close("tokens", *tokens, 1e-4)
