"""Windows with several candidates at their first positions: walks, windows handed on, whole distributions."""

from __future__ import annotations

import re

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_jacobi import (
    EXACT,
    PAPER,
    Iteration,
    Network,
    Pass,
    filtered,
    iterations,
    sample,
    single,
    tolerance,
)
from jacobi_process import total_variation
from pac_process import PacProcess, ReferenceCycle
from torch import Tensor

KINDS = ("methods/sjd_pac/",)
OFFICIAL_PAC = 9  # src/acceptance/rules.h


def needs(case: Case, entry: str) -> None:
    if not case.info.get(entry):
        pytest.skip(f"no {entry}")


class Fan:
    """A recorded tree over a window: slot s has the row draft[s - 1]."""

    def __init__(
        self,
        tokens: Tensor,
        parents: Tensor,
        depths: Tensor,
        draft: Tensor,
        behind: Tensor | None = None,
    ) -> None:
        """behind: the row of the position behind the last one, for the rule official-pac."""
        self.tokens, self.parents, self.depths = tokens.long(), parents.long(), depths.long()
        self.draft = draft
        has_children = torch.zeros(len(tokens), dtype=torch.bool)
        has_children[self.parents[1:]] = True
        self.draft_rows = torch.where(has_children, self.depths, -1)
        if behind is not None:
            self.draft = torch.cat([draft, behind[None]])
            self.draft_rows[self.depths == len(draft)] = len(draft)

    def tree(self, target: Tensor, uniforms: Tensor) -> tuple[Tensor, ...]:
        """Arguments of both operators, for one image."""
        tree = (target, self.draft, self.tokens, self.parents, self.draft_rows, uniforms)
        return (*(part[None].contiguous() for part in tree), torch.ones(1))

    def walk(
        self, target: Tensor, tests: Tensor, last: float, rule: int = EXACT
    ) -> tuple[list[int], int, Tensor]:
        """verify_tree: the accepted path, the last token, the distribution it comes from."""
        uniforms = torch.cat([single([last]), single(tests)[1:]])
        path, count, token, final, status = engine.operators().verify_tree(
            *self.tree(target, uniforms), torch.empty(0, dtype=torch.int32), rule, PAPER, True, 0,
            torch.empty(0), 0, int(self.depths.max()),
        )  # fmt: skip
        assert int(status) == 0
        return path[0, : int(count) + 1].tolist(), int(token), final[0]

    def renew(
        self, target: Tensor, tests: Tensor, nodes: list[int], samples: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """renew_fan: candidates [L, K], their rows, and what they were sampled from [L, V]."""
        candidates, rows, left = engine.operators().renew_fan(
            *self.tree(target, single(tests)), torch.tensor([nodes]), single(samples)[None]
        )
        return candidates[0], rows[0], left[0]

    def children(self, node: int) -> list[int]:
        return [int(n) for n in (self.parents == node).nonzero()[:, 0]]

    def chain(self) -> list[int]:
        """The nodes of first candidates."""
        nodes = [0]
        while children := self.children(nodes[-1]):
            nodes.append(children[0])
        return nodes

    def stale(self, end: int) -> list[int]:
        """For every position behind the token that follows a path's end, the node that tells of it."""
        chain, node, rows = self.chain(), end, []
        for depth in range(int(self.depths[end]) + 1, len(chain)):
            children = self.children(node) if node >= 0 else []
            node = children[0] if children else -1
            rows.append(node if node >= 0 else chain[depth])
        return rows


def fan_of(each: Iteration) -> Fan:
    return Fan(each["node_tokens"], each["parent"], each["depth"], each["draft"])


def test_walks(case: Case) -> None:
    """Single cycles."""
    needs(case, "scenarios")
    names = ("tree.parent", "tree.depth", "tree.candidate")
    parents, depths, candidate = (case.tensors[name] for name in names)
    for scenario in case.info["scenarios"]:
        name = f"s{scenario['scenario']}"
        where = f"{case.name} {name}"
        tokens, draft, target = (
            case.tensors[f"{name}.{part}"] for part in ("node_tokens", "draft", "target")
        )
        fan = Fan(tokens, parents, depths, draft)
        candidates = case.long(f"{name}.candidates")
        spread = candidates[candidate.long()[1:], fan.depths[1:] - 1]
        assert torch.equal(spread, fan.tokens[1:]), f"{where}: tokens of the nodes"
        path, _, final = fan.walk(target, case.tensors[f"{name}.accept_u"], 0.5)
        assert path == case.tensors[f"{name}.reference.path"].tolist(), where
        allowed = tolerance(case, "probabilities")
        engine.assert_recorded(case, f"{name}.reference.final", final, allowed)


def even_row(case: Case) -> Tensor:
    """Arguments for the ids of images, as the recorded program got them."""
    facts = re.search(r"image id range set to (\d+)\.\.vocabulary-1", case.info["source"]["how"])
    assert facts, f"{case.name}: no range of image ids"
    first, vocabulary = int(facts[1]), int(case.info["dims"]["vocabulary"])
    row = torch.zeros(vocabulary)
    row[first:] = 1 / (vocabulary - first)
    return row


def sampled(row: Tensor, uniforms: Tensor) -> list[int]:
    """Tokens sampled one after another without replacement."""
    left, tokens = row.clone(), []
    for uniform in uniforms:
        tokens += sample(left[None], uniform[None])
        left[tokens[-1]] = 0
    return tokens


def test_reference(case: Case) -> None:
    """Single cycles of the official code: --rule official-pac."""
    needs(case, "scenarios")
    even, allowed = even_row(case), tolerance(case, "probabilities")
    for scenario in case.info["scenarios"]:
        name = f"s{scenario['scenario']}"
        where = f"{case.name} {name}"
        target, draft, tests = (
            case.tensors[f"{name}.{p}"] for p in ("target", "draft", "accept_u")
        )
        tokens, samples, reference, rows, distributions = (
            case.tensors[f"{name}.{part}"]
            for part in ("node_tokens", "released.draw_u", "released.next_candidates",
                         "released.next_draft", "released.draw_distribution")
        )  # fmt: skip
        fan = Fan(tokens, *(case.tensors[f"tree.{p}"] for p in ("parent", "depth")), draft, even)
        path, token, final = fan.walk(target, tests, float(samples[0, 0]), OFFICIAL_PAC)
        assert path == case.tensors[f"{name}.released.path"].tolist(), where
        full = len(path) - 1 == len(draft)
        assert full == scenario["all_drafts_accepted_released_final_is_uniform"], where
        distributions = distributions / distributions.sum(1, keepdim=True)
        reference = reference.long().T
        nodes = fan.stale(path[-1])[:-1]
        slots = [*nodes, *[-1] * (len(draft) - len(nodes))]
        candidates, own_rows, left = fan.renew(target, tests, slots, samples[1:])
        assert token == int(reference[0, 0]), where
        assert sampled(final, samples[0]) == reference[0].tolist(), where
        engine.assert_close(where, final, distributions[0], allowed)
        engine.assert_close(where, even if full else target[path[-1]], rows[0], allowed)
        known, behind = slice(1, len(nodes) + 1), slice(len(nodes) + 1, None)
        assert torch.equal(candidates[: len(nodes)], reference[known]), where
        engine.assert_close(where, own_rows[: len(nodes)], rows[known], allowed)
        engine.assert_close(where, left[: len(nodes)], distributions[known], allowed)
        assert bool((candidates[len(nodes) :] == -1).all()), where
        for place, uniforms in zip(reference[behind], samples[behind], strict=True):
            assert sampled(even, uniforms) == place.tolist(), where
        for new in (rows[behind], distributions[behind]):
            engine.assert_close(where, even.expand_as(new), new, allowed)


def test_official_distributions(case: Case) -> None:
    """All outcomes of its first cycle, as it is and with the right row behind the last position."""
    needs(case, "one_cycle_enumeration")
    exact = float(case.info["tolerance"]["enumeration"])
    for number, problem in enumerate(case.info["one_cycle_enumeration"]):
        name = f"enum{number}"
        targets = [case.tensors[f"{name}.target{n}"] for n in range(problem["tokens"])]
        drafts = case.tensors[f"{name}.draft"].tolist()
        for even, kind in ((True, "law_released"), (False, "law_released_correct_bonus")):
            cycle = ReferenceCycle(targets, drafts, problem["candidates"], problem["depth"], even)
            own, where = cycle.distribution(), f"{case.name} {name} {kind}"
            engine.assert_recorded(case, f"{name}.{kind}", own, exact)
            key = kind.replace("law_", "").replace("correct", "with_correct") + "_total_variation"
            away = total_variation(own, joint(targets))
            assert away == pytest.approx(problem[key], abs=exact), where


def test_runs(case: Case) -> None:
    """Whole images: every pass begins with the window that the one before it left."""
    needs(case, "iterations")
    settings = case.info["settings"]
    places, count = int(settings["tree_depth"]) - 1, int(settings["candidates"])
    firsts: list[int] = []
    for each in iterations(case):
        where = each.where()
        if len(each.tokens) == 1:
            continue
        fan = fan_of(each)
        chain = fan.chain()
        assert fan.tokens[chain[1:]][: len(firsts)].tolist() == firsts[: len(chain) - 1], where
        for place in range(min(places, len(chain) - 1)):
            check_candidates(each, fan, place, count, len(firsts))
        path, token, final = fan.walk(each["target"], each["accept_u"], float(each["final_u"][0]))
        assert path == each["path"].tolist(), where
        assert [*fan.tokens[path[1:]].tolist(), token] == each.committed, where
        allowed = tolerance(case, "probabilities")
        engine.assert_close(where, final, each["final_distribution"], allowed)
        firsts = renewed(each, fan, path)


def check_candidates(each: Iteration, fan: Fan, place: int, count: int, known: int) -> None:
    """The first is the window's; the others are distinct, and the same under every node."""
    groups = [fan.children(n) for n in range(len(fan.tokens)) if fan.depths[n] == place]
    tokens = {tuple(fan.tokens[group].tolist()) for group in groups}
    assert len(tokens) == 1, f"{each.where()} place {place}"
    one = tokens.pop()
    assert len(set(one)) == len(one) == count, f"{each.where()} place {place}"
    if place < known:
        return
    row = fan.draft[place].clone()  # a new position: even
    for number, uniform in enumerate(each["fill_u"][place - known]):
        assert sample(row[None], uniform[None]) == [one[number]], f"{each.where()} place {place}"
        row[one[number]] = 0


def renewed(each: Iteration, fan: Fan, path: list[int]) -> list[int]:
    """First candidates of the next window, by renew_window over the rows that tell of them."""
    rows, accepted, chain = fan.stale(path[-1]), len(path) - 1, fan.chain()
    places = each.case.info["dims"]["grid"] ** 2 - each.before - len(each.committed)
    if not each.has("tail.row"):
        assert not rows or places <= 0, f"{each.where()}: nothing recorded behind it"
        return []
    assert rows == each["tail.row"].tolist(), f"{each.where()}: rows of the tail"
    if not rows:
        return []
    target = each["target"][chain].clone()
    target[accepted + 1 :] = each["target"][rows]
    tests, samples = torch.zeros(len(chain)), torch.zeros(len(chain))
    tests[accepted + 1 :] = each["tail.keep_u"].float()
    samples[accepted + 1 :] = each["tail.resample_u"].float()
    window = Pass(target, fan.draft, fan.tokens[chain]).renew(accepted, True, tests[:-1], samples)
    expected = each["tail.candidates"][:, 0].tolist()
    assert window.tokens[: len(rows)].tolist() == expected, f"{each.where()}: kept and replaced"
    assert torch.equal(window.rows[: len(rows)], each["target"][rows])
    for slot, uniforms in enumerate(each["tail.candidate_u"]):
        row = window.rows[slot].clone()
        for number in range(1, int((uniforms >= 0).sum()) + 1):
            row[int(each["tail.candidates"][slot, number - 1])] = 0
            sampled = sample(row[None] / row.sum(), uniforms[number][None])
            assert sampled == [int(each["tail.candidates"][slot, number])], each.where()
    return expected


def test_network(case: Case) -> None:
    """The plain network on every path of a tree gives the recorded distributions of its nodes."""
    needs(case, "iterations")
    network = Network(case)
    for each in iterations(case):
        depths, parents = each["depth"].long(), each["parent"].long()
        assert torch.equal(each.positions.long(), network.prompt + each.before - 1 + depths)
        leaves = sorted(set(range(len(parents))) - set(parents.tolist()))
        for leaf in leaves:
            path = [leaf]
            while path[0]:
                path.insert(0, int(parents[path[0]]))
            inputs = torch.cat([case.long("tokens")[: each.before - 1], each.tokens[path]])
            distributions = filtered(
                network.logits(inputs)[:, each.before :], case.info["settings"]
            )
            allowed = tolerance(case, "probabilities")
            engine.assert_close(
                f"{each.where()} {path}", distributions, each["target"][path], allowed
            )


def test_processes(case: Case) -> None:
    """The distribution of all tokens over whole runs, and the passes they take with and without siblings."""
    needs(case, "process_enumeration")
    exact = float(case.info["tolerance"]["enumeration"])
    for problem in case.info["process_enumeration"]:
        name = f"process{problem['problem']}"
        targets = [case.tensors[f"{name}.target{n}"] for n in range(problem["tokens"])]
        where = f"{case.name} {name}"
        slots = problem["draft_slots"]
        process = PacProcess(targets, slots, problem["candidates"], problem["depth"])
        distribution, passes = process.distribution()
        engine.assert_recorded(case, f"{name}.law", distribution, exact)
        assert total_variation(distribution, joint(targets)) < exact, where
        assert passes == pytest.approx(problem["expected_passes"], rel=exact), where
        _, alone = PacProcess(targets, slots, 1, 1).distribution()
        assert alone == pytest.approx(problem["expected_passes_without_tree"], rel=exact), where


def joint(targets: list[Tensor]) -> Tensor:
    distribution = targets[0]
    for target in targets[1:]:
        distribution = distribution[..., None] * target
    return distribution
