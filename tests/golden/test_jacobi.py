"""Windows of speculative Jacobi decoding: verify_tree, renew_window and fill_window on records.

A run passes over a window again and again, each time with the rows, uniforms and decisions
recorded. The content of the case gives its kind.
"""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_jacobi import (
    Initialisation,
    Iteration,
    Network,
    Pass,
    Window,
    fill,
    filtered,
    iterations,
    sample,
    tolerance,
)
from jacobi_process import Process, Tail, total_variation
from torch import Tensor

KINDS = ("methods/sjd/", "methods/scd/")


def settings(case: Case) -> dict[str, Any]:
    return dict(case.info.get("settings", {}))


def needs(case: Case, entry: str) -> None:
    if not case.info.get(entry):
        pytest.skip(f"no {entry}")


def needs_acceptance(case: Case, rule: str | None) -> None:
    """A run verified by this rule; None: one that replaces drafts behind the window's end, too."""
    if not settings(case) or settings(case).get("acceptance") != rule:
        pytest.skip(f"no run with acceptance {rule}")


def verify(each: Iteration) -> tuple[int, list[int], Tensor]:
    """The engine's decisions: accepted drafts, committed tokens, the distribution of the last one."""
    recorded = each.recorded_pass()
    last = each["residual_u"][0] if each.has("residual_u") else each["sampled_u"][-1]
    tests = each["accept_u"] if each.has("accept_u") else torch.empty(0)
    return recorded.verify(tests, float(last))


def test_speculative_decisions(case: Case) -> None:
    needs_acceptance(case, "speculative_jacobi")
    for each in iterations(case):
        accepted, tokens, final = verify(each)
        where = each.where()
        assert accepted == each.info.get("accepted_drafts", 0), where
        allowed = tolerance(case, "probabilities")
        if not each.has("residual"):
            assert tokens == each.committed, where
            engine.assert_close(where, final, each["target"][-1], allowed)
            continue
        # The official code sends the residual through the filters again.
        options = {name: settings(case)[name] for name in ("top_k", "top_p")}
        again = engine.probabilities(final[None].log(), temperature=1.0, **options)[0]
        engine.assert_close(where, again, each["residual"], allowed)
        if settings(case)["top_p"] < 1:
            tokens[-1:] = sample(each["residual"][None], each["residual_u"])
        else:
            engine.assert_close(where, final, each["residual"], allowed)
        assert tokens == each.committed, where


def test_equality_decisions(case: Case) -> None:
    """Plain Jacobi decoding, no rule of the engine: a draft stands where the row's sample is it."""
    needs_acceptance(case, "jacobi")
    for each in iterations(case):
        assert sampled(each)[: equal(each) + 1] == each.committed, each.where()
        assert equal(each) == each.info.get("accepted_drafts", 0), each.where()


def sampled(each: Iteration) -> list[int]:
    return sample(each["target"], each["sampled_u"])


def equal(each: Iteration) -> int:
    """Drafts before the first that its row did not sample."""
    drafts = each.tokens[1:].tolist()
    differ = [d != y for d, y in zip(drafts, sampled(each), strict=False)]
    return differ.index(True) if True in differ else len(drafts)


def test_fresh_windows(case: Case) -> None:
    """The window handed on from pass to pass: sampled behind the committed tokens, then filled."""
    if "acceptance" not in settings(case):
        pytest.skip("no run whose drafts are sampled anew")
    speculative = settings(case)["acceptance"] == "speculative_jacobi"
    window = Window(torch.empty(0, dtype=torch.long), torch.empty(0, vocabulary(case)))
    for each in iterations(case):
        recorded = each.recorded_pass()
        assert sampled(each) == each["sampled"].tolist(), each.where()
        if recorded.nodes > 1:
            guesses = (each["fill_tokens"].float() + 0.5) / vocabulary(case)
            check_filled(each, window, "random", guesses)
        accepted = verify(each)[0] if speculative else equal(each)
        samples = each["sampled_u"]
        window = recorded.renew(accepted, False, torch.zeros(recorded.nodes - 1), samples)
        check_renewed(each.where(), window, each["next_drafts"], each["target"][accepted + 1 :])


def vocabulary(case: Case) -> int:
    return int(case.info["dims"]["vocabulary"])


def check_filled(each: Iteration, window: Window, kind: str, guesses: Tensor) -> None:
    """The drafts of a pass are those handed on and guesses [new] behind them."""
    recorded = each.recorded_pass()
    window = window.resized(recorded.nodes - 1)
    known = window.known()
    assert known + len(guesses) == recorded.nodes - 1, f"{each.where()}: {known} drafts kept"
    uniforms = torch.cat([torch.zeros(known, dtype=guesses.dtype), guesses])
    filled = fill(window, kind, uniforms, vocabulary(each.case))
    assert torch.equal(filled.tokens, recorded.tokens[1:]), each.where()
    allowed = tolerance(each.case, "probabilities")
    engine.assert_close(f"{each.where()} drafts", filled.rows, recorded.draft, allowed)


def check_renewed(where: str, window: Window, tokens: Tensor, rows: Tensor) -> None:
    """Drafts behind the committed tokens, and as their distributions the very rows of the target."""
    count = window.known()
    assert window.tokens[:count].tolist() == tokens.tolist(), where
    assert torch.equal(window.rows[:count], rows), f"{where}: distributions of the next drafts"
    assert not window.rows[count:].any(), f"{where}: a distribution without a draft"


def test_kept_windows(case: Case) -> None:
    """Runs whose drafts behind the committed tokens are kept or replaced, one a slot."""
    needs_acceptance(case, None)
    assert settings(case)["candidates"] == 1, "several candidates a slot are another method"
    kind = "uniform" if "D = uniform" in settings(case)["fill"] else "random"
    assert sample(case.tensors["first_target"][None], case.tensors["first_u"]) == [
        int(case.tensors["tokens"][0])
    ]
    window = Window(torch.empty(0, dtype=torch.long), torch.empty(0, vocabulary(case)))
    for each in iterations(case):
        recorded = each.recorded_pass()
        order = torch.arange(recorded.nodes)
        assert torch.equal(each["parent"].long(), order - 1), f"{each.where()}: no chain"
        if recorded.nodes > 1:
            new = each["fill_u"][:, 0] if each.has("fill_u") else torch.empty(0)
            check_filled(each, window, kind, new)
        verdict = recorded.verify(each["accept_u"][1:], float(each["final_u"][0]))
        assert list(range(verdict.accepted + 1)) == each["path"].tolist(), each.where()
        assert verdict.tokens == each.committed, each.where()
        allowed = tolerance(case, "probabilities")
        engine.assert_close(each.where(), verdict.final, each["final_distribution"], allowed)
        window = kept_tail(each, verdict.accepted)


def kept_tail(each: Iteration, accepted: int) -> Window:
    """The next window after a check against the record, whose uniforms name their row."""
    recorded = each.recorded_pass()
    rows = torch.arange(accepted + 1, recorded.nodes)
    tests, samples = torch.zeros(recorded.nodes), torch.zeros(recorded.nodes)
    tokens = torch.empty(0)
    if len(rows):
        assert torch.equal(each["tail.row"].long(), rows), f"{each.where()}: rows of the tail"
        tests[rows] = each["tail.keep_u"].float()
        samples[rows] = each["tail.resample_u"].float()
        tokens = each["tail.candidates"][:, 0]
    window = recorded.renew(accepted, True, tests[:-1], samples)
    check_renewed(each.where(), window, tokens, recorded.target[rows])
    return window


def test_kept_scenarios(case: Case) -> None:
    """Single passes of which every slot is tested at once."""
    needs(case, "scenarios")
    for scenario in case.info["scenarios"]:
        names = ("target", "draft", "tokens", "keep_u", "residual_u", "last_row_u", "new_tokens")
        target, draft, drafts, tests, residual, last, tokens = (
            case.tensors[f"s{scenario['scenario']}.{name}"] for name in names
        )
        where = f"{case.name} scenario {scenario['scenario']}"
        recorded = Pass(target, draft, torch.cat([torch.zeros(1), drafts]).long())
        samples = torch.cat([residual, last])
        kept = case.tensors[f"s{scenario['scenario']}.kept"].bool()
        assert torch.equal(kept, residual < 0), f"{where}: samples of kept drafts"
        replaced = (~kept).nonzero()[:, 0].tolist()
        first = replaced[0] if replaced else len(drafts)
        verdict = recorded.verify(tests, float(samples[first]))
        committed = scenario["committed"]
        assert verdict.accepted + 1 == committed, where
        assert verdict.tokens == scenario["committed_tokens"], where
        assert verdict.tokens == tokens[:committed].tolist(), where
        window = recorded.renew(verdict.accepted, True, tests, samples)
        check_renewed(where, window, tokens[committed:], target[committed:])
        distributions = window.rows[: window.known()]
        engine.assert_recorded(
            case,
            f"s{scenario['scenario']}.draft_next_correct",
            distributions,
            tolerance(case, "probabilities"),
        )


def test_gumbel(case: Case) -> None:
    """Samples with one table of noise for all passes, no rule of the engine: the record is sound."""
    if not case.has("gumbel.target"):
        pytest.skip("no samples of this kind")
    noise = -((-(case.tensors["gumbel.uniform_table"].double() + 1e-9).log() + 1e-9).log())
    best = (case.tensors["gumbel.target"].double().log() + noise).argmax(1)
    assert torch.equal(best, case.long("gumbel.tokens"))


def test_enumeration(case: Case) -> None:
    """What all passes do to the distribution of the tokens, for each rule of the tail."""
    needs(case, "enumeration")
    exact = float(case.info["tolerance"]["enumeration"])
    for problem in case.info["enumeration"]:
        name = f"enum{problem['problem']}"
        targets = [case.tensors[f"{name}.target{n}"] for n in range(problem["tokens"])]
        assert targets[0].shape == (problem["vocabulary"],), name
        even = {"one-hot uniform id": False, "uniform draw with D = uniform": True}
        for tail in Tail:
            where = f"{case.name} {name} {tail.value}"
            process = Process(targets, problem["window"], even[problem["fill"]], tail)
            distribution, passes = process.distribution()
            engine.assert_recorded(case, f"{name}.law_{tail.value}", distribution, exact)
            stated = problem["law"][tail.value]
            assert passes == pytest.approx(stated["expected_passes"], rel=exact), where
            bias = total_variation(distribution, case.tensors[f"{name}.joint"])
            assert bias == pytest.approx(stated["total_variation_to_target"], abs=exact), where
            biased = tail is Tail.keep_old_distribution
            assert (bias > 1e-4) if biased else (bias < exact), f"{where}: {bias:.3g}"


def test_initialisation(case: Case) -> None:
    """Guesses for empty slots, behind drafts that stay as they are."""
    needs(case, "cases")
    for number in range(len(case.info["cases"])):
        one = Initialisation(case, number)
        got = fill(
            one.kept(), one.kind, one.uniforms(), one.codes, one.steps, one.left(), one.columns
        )
        expected = one.slots()
        assert torch.equal(got.tokens, expected.tokens), one.where()
        assert torch.equal(got.rows, expected.rows), f"{one.where()}: distributions"


def test_distributions(case: Case) -> None:
    """Recorded logits, guided and filtered, are the recorded distributions."""
    if not case.has("it0.logits_cond"):
        pytest.skip("no recorded logits")
    for each in iterations(case):
        halves = ("logits_cond", "logits_uncond") if guided(case) else ("logits_cond",)
        got = filtered(torch.stack([each[half] for half in halves]), settings(case))
        engine.assert_close(each.where(), got, each["target"], tolerance(case, "probabilities"))
        engine.assert_same_support(each.where(), got, each["target"])


def guided(case: Case) -> bool:
    return float(settings(case)["guidance"]) != 1.0


def test_network(case: Case) -> None:
    """The plain network on the recorded tokens gives every pass's logits and distributions."""
    needs(case, "weights_file")
    network = Network(case)
    allowed = tolerance(case, "probabilities")
    if case.has("first_target"):
        first = filtered(network.logits(torch.empty(0, dtype=torch.long)), settings(case))
        engine.assert_close("first", first, case.tensors["first_target"][None], allowed)
    for each in iterations(case):
        places = network.prompt + each.before - 1 + torch.arange(len(each.tokens))
        assert torch.equal(each.positions.long(), places), f"{each.where()}: positions"
        logits = network.behind(each)
        for half, name in enumerate(("logits_cond", "logits_uncond")):
            if each.has(name):
                what = f"{each.where()} {name}"
                engine.assert_close(what, logits[half], each[name], tolerance(case, "logits"))
        distributions = filtered(logits, settings(case))
        engine.assert_close(f"{each.where()} distributions", distributions, each["target"], allowed)
