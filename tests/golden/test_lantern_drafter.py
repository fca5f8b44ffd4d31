"""LANTERN's drafter for LlamaGen: exporter, module and tree operators against recorded runs.

The recorded program attends to all rows of the prompt, padding included, so all are fed here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_drafter import (
    Drafting,
    DynamicTree,
    Warper,
    conditional,
    draft_dynamic,
    draft_static,
    root_to_leaf,
)
from safetensors.torch import load_file
from torch import Tensor

from models.llamagen.config import GPTConfig
from models.llamagen.gpt import GPT

KINDS = ("lantern_llamagen_drafter",)
NUMERIC_ERROR = 5e-5  # of scores; a smaller gap between two of them decides nothing


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A target with the recorded head and otherwise random weights, and the drafter."""
    folder = tmp_path_factory.mktemp("drafter")
    shape = case.info["model"]
    config = GPTConfig(
        dim=shape["hidden_size"],
        n_layer=1,
        n_head=shape["num_heads"],
        vocab_size=shape["vocab_size"],
        grid=shape["grid"],
        cls_token_num=shape["cls_token_num"] + 1,
        caption_dim=8,
    )
    state = GPT(config).state_dict()
    head, weights = sorted(case.weights(), key=lambda file: file.name != "lm_head.safetensors")
    state["output.weight"] = load_file(head)["lm_head.weight"]
    torch.save({"model": state}, folder / "target.pt")
    blocks = {"gpt": {"n_head": config.n_head, "grid": config.grid}}
    out = engine.export(folder / "bundle", "llamagen", blocks, gpt=folder / "target.pt")
    engine.attach_drafter(out, "lantern", weights.parent)
    return out


@pytest.fixture
def drafting(bundle: Path) -> Drafting:
    return Drafting.load(bundle, "lantern")


def calls(case: Case) -> list[str]:
    """Names of the successive drafting calls."""
    return sorted(
        m[1] for name in case.tensors if (m := re.fullmatch(r"call(\w+)\.input_ids", name))
    )


def extend(case: Case, drafting: Drafting, call: str) -> Tensor:
    """Commits what the call brings -> hidden of its rows. The first id has no feature before it."""
    ids = case.long(f"call{call}.input_ids")[0, 1 + drafting.committed :]
    return drafting.extend(case.tensors[f"call{call}.hidden_states"], ids)


def modes(case: Case, start: str) -> list[str]:
    """Modes whose name starts so; `warpers` has them with or without a call."""
    return sorted(
        {name.partition(".")[0] for name in case.info["warpers"] if name.startswith(start)}
    )


def warper(case: Case, mode: str, call: str) -> Warper:
    def find(table: dict[str, Any]) -> Any:
        return table[f"{mode}.{call}"] if f"{mode}.{call}" in table else table[mode]

    return Warper(float(find(case.info["cfg_scales"])), find(case.info["warpers"]))


def gap(case: Case, run: str, entry: str) -> float:
    return float(case.info["stats"][run][entry])


def assert_pass(
    case: Case, name: str, drafting: Drafting, hidden: Tensor, guide: Warper | None
) -> None:
    """Output features of a recorded pass and the logits of its last or first rows."""
    engine.assert_recorded(case, f"{name}.out_hidden", hidden, "features")
    expected = case.tensors.get(f"{name}.logits")
    if expected is None:
        return
    count = expected.shape[1]
    stable = name.endswith("fwd0")
    logits = drafting.logits(hidden[:, -count:] if stable else hidden[:, :count])
    engine.assert_close(f"{name} logits", logits, expected, case.tolerance("logits"))
    if guide and case.has(f"{name}.logits_cfg"):
        guided = guide.guided(logits[:, -1:])
        engine.assert_recorded(case, f"{name}.logits_cfg", guided, case.tolerance("logits", 1))


def test_rotary_table(case: Case, drafting: Drafting) -> None:
    expected = case.tensors["freqs_cis"]
    got = drafting.module.rotary
    rows = min(len(got), len(expected))
    engine.assert_close("freqs_cis", got[:rows], expected[:rows], 1e-6)
    assert not got[rows:].any() and not expected[rows:].any()


def test_passes(case: Case, bundle: Path) -> None:
    """Stable and tree passes with recorded inputs."""
    seen = 0
    for mode in modes(case, "dyn"):
        drafting = Drafting.load(bundle, "lantern")
        for call in calls(case):
            hidden = extend(case, drafting, call)
            name = f"{mode}.{call}.fwd"
            guide = warper(case, mode, call)
            if case.has(f"{name}0.out_hidden"):
                assert_pass(case, f"{name}0", drafting, hidden, guide)
            if case.has(f"call{call}.key_cache"):
                both = (case.tensors[f"call{call}.{part}_cache"] for part in ("key", "value"))
                for kept, expected in zip(drafting.cache[0], both, strict=True):
                    rows = kept[:, :, : drafting.committed]
                    engine.assert_close("cache", rows, expected, case.tolerance("features"))
            depth = 1
            while case.has(f"{name}{depth}.in_hidden"):
                fed = {
                    part: case.tensors[f"{name}{depth}.{part}"]
                    for part in ("in_hidden", "in_ids", "position_ids", "tree_mask")
                }
                assert (fed["position_ids"] == drafting.committed + depth - 1).all()
                mask = fed["tree_mask"].bool()
                hidden = drafting.level(fed["in_hidden"], fed["in_ids"][0], mask, depth)
                assert_pass(case, f"{name}{depth}", drafting, hidden, None)
                depth += 1
                seen += 1
    assert seen, "no recorded tree pass"


def assert_tree(case: Case, run: str, tree: DynamicTree) -> None:
    expected = {
        "draft_tokens": tree.tokens,
        "parents": tree.parents,
        "tree_position_ids": tree.depths,
        "tree_mask": tree.mask,
        "pool_index": tree.pool_index,
    }
    wrong = [
        name
        for name, got in expected.items()
        if not torch.equal(got.long(), case.long(f"{run}.{name}").view(got.shape))
    ]
    if wrong and gap(case, run, "min_topk_gap") < NUMERIC_ERROR:
        return
    assert not wrong, f"{run}: other {', '.join(wrong)}"
    engine.assert_recorded(case, f"{run}.node_scores", tree.scores, case.tolerance("logits", 1))
    paths = case.tensors[f"{run}.retrieve_indices"].tolist()
    assert root_to_leaf(tree) == {tuple(n for n in path if n >= 0) for path in paths}, run


@pytest.mark.parametrize("start", ["dyn_greedy", "dyn_warped"])
def test_dynamic_trees(case: Case, drafting: Drafting, start: str) -> None:
    shape = case.info["model"]
    found = modes(case, start)
    for mode in found:
        drafting.reset()
        for call in calls(case):
            last = extend(case, drafting, call)[:, -1:]
            run = f"{mode}.{call}"
            nodes = case.long(f"{run}.draft_tokens").numel() - 1
            root = int(case.long(f"call{call}.input_ids")[0, -1])
            guide = warper(case, mode, call)
            k, passes = shape["top_k"], shape["depth"]
            tree = draft_dynamic(drafting, last, root, guide, k, passes, nodes)
            assert_tree(case, run, tree)
    assert found


def assert_sampled_rows(case: Case, run: str, first: int, probabilities: Tensor) -> None:
    """Distributions of expanded nodes [W,V], recorded from row `first` on, and their children."""
    tolerance = case.tolerance("static sampled")
    rows = slice(first, first + len(probabilities))
    expected = case.tensors[f"{run}.draft_rows_probs"][rows]
    noise = case.tensors[f"{run}.multinomial_noise"][rows]
    tokens = case.long(f"{run}.draft_rows_tokens")[rows]
    engine.assert_close(f"{run} row {first}", probabilities, expected, tolerance)
    real = expected.gather(1, tokens) > 0  # others were sampled from no mass
    decided = gap(case, run, "min_log_gap_of_draws") > 2 * NUMERIC_ERROR
    for source in (expected, probabilities) if decided else (expected,):
        sampled = (source / noise).topk(tokens.shape[1], -1).indices
        assert torch.equal(sampled[real], tokens[real]), f"{run}: other children from row {first}"
    got, left = conditional(probabilities, tokens)
    values = case.tensors[f"{run}.draft_rows_values"][rows]
    difference = ((got - values).abs() * left.clamp(0, 1))[real]  # the mass left cancels
    assert difference.max() <= tolerance, f"{run}: conditional probabilities, row {first}"


def assert_greedy_rows(
    case: Case, run: str, first: int, probabilities: Tensor, guided: Tensor
) -> None:
    """The most probable children of expanded nodes and their guided logits, [W,V] both."""
    rows = slice(first, first + len(guided))
    tokens = case.long(f"{run}.draft_rows_tokens")[rows]
    values = case.tensors[f"{run}.draft_rows_values"][rows]
    one, nodes = torch.zeros(1, dtype=torch.int64), torch.arange(len(guided))
    sampled, chance = engine.operators().sample_children(
        probabilities[None], one, one, nodes, tokens.shape[1], False
    )
    if gap(case, run, "min_topk_gap") >= NUMERIC_ERROR:
        assert torch.equal(sampled[0], tokens), f"{run}: other children from row {first}"
    assert (chance == 1).all()
    engine.assert_close(run, guided.gather(1, tokens), values, case.tolerance("logits", 1))


def assert_candidates(
    case: Case, mode: str, run: str, paths: list[tuple[int, ...]], children: dict[Any, Tensor]
) -> None:
    """Tokens of the nodes, which are sorted by depth and path, and of every path to a leaf."""
    nodes = sorted(paths, key=lambda path: (len(path), path))
    tree = case.long(f"{run}.tree_tokens").flatten()
    tokens = [int(tree[0]), *(int(children[node[:-1]][node[-1]]) for node in nodes)]
    assert tokens == tree.tolist(), f"{run}: tokens of the nodes"
    index = case.long(f"{mode}.tree.retrieve_indices")
    candidates = torch.where(index < 0, -1, tree[index])
    assert torch.equal(candidates, case.long(f"{run}.candidates")), f"{run}: candidates"


@pytest.mark.parametrize("start", ["static26_greedy", "static58_greedy", "static26_sampled", "static58_sampled"])  # fmt: skip
def test_static_trees(case: Case, drafting: Drafting, start: str) -> None:
    found = modes(case, start)
    for mode in found:
        paths = [tuple(path) for path in case.info["static_trees"][mode.partition("_")[0]]]
        drafting.reset()
        for call in calls(case):
            run = f"{mode}.{call}"
            last = extend(case, drafting, call)[:, -1:]
            if not case.has(f"{run}.draft_rows_tokens"):
                continue
            guide = warper(case, mode, call)
            recorded = case.long(f"{run}.draft_rows_tokens")
            children: dict[tuple[int, ...], Tensor] = {}
            for depth, level in enumerate(draft_static(drafting, paths, last, children)):
                first = len(children)
                if case.has(f"{run}.fwd{depth}.out_hidden"):
                    assert_pass(case, f"{run}.fwd{depth}", drafting, level.hidden, None)
                probabilities = guide.probabilities(level.logits)[0]
                if guide.sampled:
                    assert_sampled_rows(case, run, first, probabilities)
                else:
                    guided = guide.guided(level.logits)
                    assert_greedy_rows(case, run, first, probabilities, guided)
                for node in level.nodes:
                    children[node] = recorded[len(children)]
            assert len(children) == len(recorded), f"{run}: rows"
            assert_candidates(case, mode, run, paths, children)
    assert found
