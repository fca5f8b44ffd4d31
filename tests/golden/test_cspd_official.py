"""The official code of continuous speculative decoding: recorded decisions, and runs to the last token."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import golden_continuous as recorded
import golden_engine as engine
import golden_mar as mar
import pytest
import torch
from continuous_loop import Settings
from continuous_official import (
    MOST_ROUNDS,
    Reference,
    ReferenceLoop,
    Verification,
    probability,
    replacements,
)
from continuous_rule import Gaussian
from golden_cases import Case
from torch import Tensor

KINDS = ("continuous/cspd",)


@pytest.fixture(scope="module")
def pair(case: Case) -> mar.Pair:
    return mar.Pair(case)


class Stream:
    """Hands out the rows of a recorded tensor one after the other."""

    def __init__(self, rows: Tensor) -> None:
        self.rows, self.place = rows, 0

    def __call__(self, count: int) -> Tensor:
        self.place += count
        assert self.place <= len(self.rows), "asks for more random numbers than were recorded"
        return self.rows[self.place - count : self.place]


def runs(case: Case) -> dict[str, dict[str, Any]]:
    found = case.info.get("released_runs", {})
    assert found
    return dict(found)


def streams(case: Case, name: str) -> list[Stream]:
    names = ("residual_noise", "residual_u", "guess")
    return [Stream(case.tensors[f"{name}.{key}"]) for key in names]


def test_decisions(case: Case) -> None:
    """Of the recorded means, deviations and sums, look by look."""
    for name, run in runs(case).items():
        t = {key.rpartition(".")[2]: value for key, value in case.tensors.items()
             if key.startswith(f"{name}.")}  # fmt: skip
        normals, uniforms, _ = streams(case, name)
        start = 0
        for look, rows in enumerate(t["rows"].tolist()):
            part = slice(start, start + rows)
            p, q = Gaussian(t["mu_p"][part], t["sd_p"][part]), Gaussian(t["mu_q"][part], t["sd_q"][part])  # fmt: skip
            factor = (t["log_sd_p_sum"][part].double() - t["log_sd_q_sum"][part].double()).sum(-1)
            torch.testing.assert_close(
                factor.exp().float(), t["fixed_term"][part], rtol=1e-3, atol=0
            )
            chance = probability(t["draft"][part], p, q, factor, run["inner_temperature"])
            # fp32 products of densities on the recorded side.
            torch.testing.assert_close(chance.float(), t["prob"][part], rtol=2e-3, atol=1e-6)
            failed, out, rounds = ~(chance > t["guess"][part]), t["draft"][part].clone(), 0
            if failed.any():
                tokens, rounds = replacements(p, q, factor, normals, uniforms)
                out[failed] = tokens[failed]
            assert rounds == int(t["tries"][look]), f"{name} look {look}"
            engine.assert_close(f"{name} look {look}", out, t["out"][part], 1e-6)
            start += rows
        assert start == len(t["out"]) and normals.place == len(normals.rows)


def test_free_runs(case: Case, pair: mar.Pair) -> None:
    classes = case.info["dims"]["classes"]
    for name, run in runs(case).items():
        orders = list(case.long(f"{name}.orders").flip(1))
        settings = [
            Settings(label, run["cfg"], run["cfg_schedule"], run["temperature"])
            for label in case.tensors[f"{name}.labels"].tolist()
        ]
        numbers = [mar.numbers_of(case, name, row) for row in range(len(orders))]
        how = Reference(
            run["num_iter"], run["num_draft"], run["prefill_ratio"], run["inner_temperature"]
        )
        networks = (
            pair.network(role, run["num_sampling_steps"]) for role in ("target", run["draft"])
        )
        loop = ReferenceLoop(
            *networks, orders, settings, numbers, how, classes, *streams(case, name)
        )
        tokens = torch.stack(loop.run())
        looks = loop.verifications
        assert [len(look.out) for look in looks] == case.tensors[f"{name}.rows"].tolist()
        index = torch.cat([
            torch.stack([torch.full_like(rows, row), rows], 1)
            for look in looks for row, rows in enumerate(look.places)
        ])  # fmt: skip
        assert torch.equal(index, case.long(f"{name}.index"))
        absolute, relative, latent = (case.tolerance("released_prob", i) for i in range(3))
        chance, expected = torch.cat([look.probability for look in looks]).float(), case.tensors[f"{name}.prob"]  # fmt: skip
        guess = case.tensors[f"{name}.guess"]
        other = ((chance > guess) != (expected > guess)).nonzero()[:, 0].tolist()
        if other:  # what follows goes another way, which only a near thing may do
            row = other[0]
            gap = float((expected[row] - guess[row]).abs())
            assert gap <= absolute + relative * float(expected[row]), f"{name} row {row}: {gap}"
            whole = sum(len(look.out) for look in looks_before(looks, row))
            torch.testing.assert_close(
                chance[:whole], expected[:whole], rtol=relative, atol=absolute
            )
            continue
        torch.testing.assert_close(chance, expected, rtol=relative, atol=absolute)
        assert [look.rounds for look in looks] == case.tensors[f"{name}.tries"].tolist()
        engine.assert_recorded(case, f"{name}.tokens", tokens, latent)


def numbers_by_position(case: Case, name: str, positions: int) -> dict[str, Tensor]:
    """What verified and replaced the token of every position: none is looked at twice."""
    channels, tries = case.tensors[f"{name}.tokens"].shape[2], case.long(f"{name}.tries")
    uniforms = torch.zeros(positions, dtype=torch.double)
    most = int(tries.max())
    noise = torch.zeros(positions, most, channels)
    chances = torch.ones(positions, most, dtype=torch.double)  # other drafts never pass
    normals, residual, guess = streams(case, name)
    start = 0
    for rows, rounds in zip(case.tensors[f"{name}.rows"].tolist(), tries.tolist(), strict=True):
        places = case.long(f"{name}.index")[start : start + rows, 1]
        uniforms[places] = guess(rows).double()
        for i in range(rounds):
            noise[places, i], chances[places, i] = normals(rows), residual(rows).double()
        start += rows
    return {"uniforms": uniforms, "residual_noise": noise, "residual_uniforms": chances}


def test_free_runs_of_the_engine(case: Case, pair: mar.Pair, tmp_path: Path) -> None:
    """The compiled loop, an image at a time: its looks accept as many, and its tokens are the recorded ones."""
    absolute, relative, latent = (case.tolerance("released_prob", i) for i in range(3))
    compared = 0
    for name, run in runs(case).items():
        assert run["inner_temperature"] == 42, "the engine knows the published one alone"
        if run["batch"] != 1:  # there the rounds of all images end together
            continue
        folder = recorded.bundle(
            tmp_path / "bundle", run["num_sampling_steps"], pair.models["target"],
            pair.models[run["draft"]],
        )  # fmt: skip
        order = case.long(f"{name}.orders").flip(1)
        numbers = numbers_by_position(case, name, order.shape[1])
        generated = recorded.generate(
            folder,
            {
                "class_ids": case.long(f"{name}.labels"),
                "order": order,
                "start": case.tensors[f"{name}.x_T"],
                "noise": case.tensors[f"{name}.noise"],
                **{key: value[None] for key, value in numbers.items()},
            },
            method="cspd", rule="official", steps=run["num_iter"], gamma=run["num_draft"],
            prefill_ratio=run["prefill_ratio"], cap=MOST_ROUNDS, cfg_scale=run["cfg"],
            schedule=run["cfg_schedule"], temperature=run["temperature"],
        )  # fmt: skip
        rows = case.tensors[f"{name}.rows"].tolist()
        guess, chance = case.tensors[f"{name}.guess"], case.tensors[f"{name}.prob"]
        accepted = [int(part.sum()) for part in (chance > guess).split(rows)]
        looks = generated["cycles.0"][-len(rows) :, 1:].tolist()
        if looks != [list(pair) for pair in zip(rows, accepted, strict=True)]:
            gaps = (chance - guess).abs() - absolute - relative * chance
            assert float(gaps.min()) <= 0, f"{name}: {looks}, {accepted}"
            continue
        engine.assert_recorded(case, f"{name}.tokens", generated["tokens"], latent)
        proposals = (case.long(f"{name}.tries") * torch.tensor(rows)).sum()
        assert int(generated["counts.0"][1]) == int(proposals), name
        compared += 1
    assert compared


def looks_before(looks: list[Verification], row: int) -> list[Verification]:
    """Those that end before a row of all."""
    ends = torch.tensor([len(look.out) for look in looks]).cumsum(0)
    return [look for look, end in zip(looks, ends.tolist(), strict=True) if end <= row]
