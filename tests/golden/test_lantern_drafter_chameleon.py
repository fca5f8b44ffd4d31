"""LANTERN's drafters for Anole and Lumina-mGPT: exporter, module and tree operators.

The recorded unconditional sequence is padded in front up to the length of the conditional one. Here
each sequence holds its own rows alone: row i has the feature of id i and the embedding of id i + 1.
Lumina-mGPT's program drafts the ends of rows as nodes of the tree; so does this test.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from chameleon_files import save_model
from golden_cases import Case
from golden_drafter import (
    Drafting,
    DynamicTree,
    RowWarper,
    Warper,
    conditional,
    draft_dynamic,
    draft_static,
    root_to_leaf,
)
from torch import Tensor

from models.chameleon.config import ChameleonConfig
from models.chameleon.transformer import weight_shapes

KINDS = ("lantern_drafter",)
LOWEST = -1e30  # smaller scores stand for minus infinity


def is_lumina(case: Case) -> bool:
    return "image_top_k" in case.info["sampling"]


def target_folder(case: Case, folder: Path) -> Path:
    """A published model with the recorded head and otherwise random weights."""
    dims = case.info["dims"]
    config = ChameleonConfig(
        dim=dims["hidden_size"],
        n_layer=1,
        n_head=dims["heads"],
        n_kv_head=dims["kv_heads"],
        ffn_dim=dims["ffn_size"],
        vocab_size=dims["vocab_size"],
    )
    state = {name: torch.rand(shape) for name, shape in weight_shapes(config).items()}
    state["head"] = case.tensors["head_weight"]
    return save_model(folder / "target", config, state, "meta")


def export(case: Case, folder: Path) -> Path:
    lumina = is_lumina(case)
    ids = case.info["token_ids"]
    tokens = {} if lumina else {
        "codebook_size": ids["image_count"], "begin_of_image": ids["boi"],
        "end_of_image": ids["eoi"], "separator": ids["eot"],
    }  # fmt: skip
    side = 48 if lumina else 32
    content = {"tokens": tokens, "sizes": [f"{16 * side}x{16 * side}"]}
    family, model = "lumina-mgpt" if lumina else "anole", target_folder(case, folder)
    return engine.export(folder / "bundle", family, content, model=model)


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = export(case, tmp_path_factory.mktemp("drafter"))
    entry = engine.attach_drafter(out, "lantern", case.folder)
    assert "prompt_id" not in entry and "padding" not in entry
    return out


@pytest.fixture
def drafting(bundle: Path) -> Drafting:
    return Drafting.load(bundle, "lantern")


def calls(case: Case, mode: str) -> list[str]:
    """Names of the successive drafting calls of a mode."""
    found = {m[0] for name in case.tensors if (m := re.match(rf"{mode}\.call\d+", name))}
    return sorted(found)


def dynamic_modes(case: Case) -> list[str]:
    return sorted({name.partition(".")[0] for name in case.tensors
                   if name.endswith(".selected_scores")})  # fmt: skip


def new_tokens(case: Case, call: str) -> tuple[list[Tensor], list[Tensor]]:
    """What a call commits per sequence, without padding: features [R,H], and ids [R] after them."""
    features = case.tensors[f"{call}.hidden"]
    ids = case.long(f"{call}.input_ids")
    if features.dim() == 2:
        rows = [features, case.tensors[f"{call}.uncond_hidden"]]
    else:
        rows = list(features)
        if call.endswith("call0"):
            rows[1] = rows[1][case.tensors["padding_mask"][1].bool()]
    return rows, [ids.expand(2, -1)[s, -len(row) :] for s, row in enumerate(rows)]


def extend(case: Case, drafting: Drafting, call: str) -> Tensor:
    """Commits what a call brings and checks it -> the last hidden row [2,1,H] of each sequence."""
    features, ids = new_tokens(case, call)
    valid = torch.tensor([len(row) for row in features])
    before, first = drafting.lengths, f"{call}.pass0"
    hidden = drafting.extend(
        torch.nn.utils.rnn.pad_sequence(features, batch_first=True),
        torch.nn.utils.rnn.pad_sequence(ids, batch_first=True),
        valid,
    )
    for sequence, count in enumerate(valid.tolist()):
        expected = case.tensors[f"{first}.hidden_out"][sequence, -count:]
        got, tolerance = hidden[sequence, :count], case.info["tolerance"]["hidden_abs"]
        engine.assert_close(f"{first} of sequence {sequence}", got, expected, tolerance)
        places = torch.arange(count) + before[sequence]
        assert torch.equal(case.long(f"{first}.pos")[sequence, -count:], places), first
        assert torch.equal(case.long(f"{first}.ids")[sequence, -count:], ids[sequence]), first
    return hidden[torch.arange(2), valid - 1][:, None]


def warper(case: Case, mode: str, call: str) -> Warper:
    sampling = case.info["sampling"]
    if not is_lumina(case):
        return Warper(sampling["cfg_scale"], None if mode == "greedy" else sampling["warpers"])
    generated = len(case.long(f"{call}.input_ids")) - case.info["prompt_length"] - 3
    settings = {"temperature": 1.0, "top_k": sampling["image_top_k"], "top_p": 1.0}
    return RowWarper(sampling["cfg_scale"], settings, sampling["grid_latent_w"], generated)


def assert_distribution(case: Case, name: str, ids: Tensor, rows: Tensor, expected: Tensor) -> None:
    """Probabilities [W,V] of the sampled ids against log-probabilities [W, vocabulary]."""
    tolerance = case.info["tolerance"]["logprob_abs"]
    wanted = expected[:, ids[: rows.shape[1]]]
    kept = wanted > LOWEST
    assert int((expected > LOWEST).sum()) == int(kept.sum()), f"{name}: ids outside the image"
    if not torch.equal(rows > 0, kept):
        boundary = case.info["self_check"]["smallest_gap_at_the_warper_top_k_boundary"]
        raise AssertionError(f"{name}: keeps other ids; the recorded gap is {boundary:g}")
    engine.assert_close(name, rows[kept].log(), wanted[kept], tolerance)


def test_stable_and_tree_passes(case: Case, drafting: Drafting) -> None:
    """Every recorded forward pass whose inputs were recorded, too."""
    seen = 0
    code_of = torch.zeros(case.info["dims"]["vocab_size"], dtype=torch.int64)
    code_of[drafting.ids] = torch.arange(len(drafting.ids))
    for mode in (*dynamic_modes(case), "static"):
        drafting.reset()
        for call in calls(case, mode):
            extend(case, drafting, call)
            depth = 1
            while case.has(name := f"{call}.pass{depth}.hidden_in"):
                name = name.rpartition(".")[0]
                columns = case.tensors[f"{name}.tree_mask"][0, 0].bool()
                ids = case.long(f"{name}.ids")[0]
                positions = drafting.lengths[:, None] + (depth - 1)
                assert (case.long(f"{name}.pos") == positions).all(), name
                hidden = drafting.level(
                    case.tensors[f"{name}.hidden_in"], code_of[ids], columns, depth
                )
                engine.assert_recorded(case, f"{name}.hidden_out", hidden, "hidden_abs")
                depth += 1
                seen += 1
    recorded = [n for n in case.tensors if re.search(r"pass[1-9]\.hidden_in", n)]
    assert seen == len(recorded) > 0


def assert_tree(case: Case, call: str, ids: Tensor, tree: DynamicTree) -> None:
    assert torch.equal(ids[tree.tokens[1:]], case.long(f"{call}.draft_tokens")[1:]), call
    assert torch.equal(tree.depths, case.long(f"{call}.tree_position_ids")), call
    assert torch.equal(tree.mask, case.tensors[f"{call}.tree_mask"].bool()), call
    assert torch.equal(tree.pool_index, case.long(f"{call}.selected_pool_index")), call
    tolerance = case.info["tolerance"]["logprob_abs"]
    engine.assert_recorded(case, f"{call}.selected_scores", tree.scores, tolerance)
    pool = case.tensors[f"{call}.pool_scores"]
    possible = pool > LOWEST
    assert torch.equal(possible, tree.pool > LOWEST), f"{call}: impossible nodes"
    engine.assert_close(call, tree.pool[possible], pool[possible], tolerance)
    paths = case.tensors[f"{call}.retrieve_indices"].tolist()
    assert root_to_leaf(tree) == {tuple(n for n in path if n >= 0) for path in paths}, call


def assert_levels(case: Case, call: str, tree: DynamicTree, k: int) -> None:
    """Hidden rows of the passes, without rows of impossible nodes."""
    for depth, hidden in enumerate(tree.passes, 1):
        scores = tree.pool[:k] if depth == 1 else tree.pool[k + (depth - 2) * k * k :][: k * k]
        possible = scores.sort(descending=True).values[:k] > LOWEST
        expected = case.tensors[f"{call}.pass{depth}.hidden_out"][:, possible]
        name = f"{call}.pass{depth}"
        tolerance = case.info["tolerance"]["hidden_abs"]
        engine.assert_close(name, hidden[:, possible], expected, tolerance)


def test_dynamic_trees(case: Case, drafting: Drafting) -> None:
    shape: dict[str, Any] = case.info["tree"]
    size = (shape["top_k"], shape["depth"], shape["selected_nodes"])
    found = dynamic_modes(case)
    for mode in found:
        drafting.reset()
        for call in calls(case, mode):
            last = extend(case, drafting, call)
            guide = warper(case, mode, call)
            logits = drafting.logits(last)
            images = drafting.ids[: logits.shape[-1]]
            if case.has(f"{call}.logits_first"):
                expected = case.tensors[f"{call}.logits_first"][:, None, images]
                engine.assert_close(call, logits, expected, case.info["tolerance"]["hidden_abs"])
            if case.has(f"{call}.logprobs_first"):
                rows = guide.probabilities(logits)[0]
                expected = case.tensors[f"{call}.logprobs_first"]
                assert_distribution(case, call, drafting.ids, rows, expected)
            tree = draft_dynamic(drafting, last, 0, guide, *size)
            assert_tree(case, call, drafting.ids, tree)
            assert_levels(case, call, tree, shape["top_k"])
            if case.has(f"{call}.logprobs_level1"):
                rows = guide.probabilities(drafting.logits(tree.passes[0]), 1)[0]
                expected = case.tensors[f"{call}.logprobs_level1"]
                assert_distribution(case, call, drafting.ids, rows, expected)
    assert found


def test_row_ends_are_drafted(case: Case, bundle: Path) -> None:
    """Some recorded tree of Lumina-mGPT goes past the end of a row."""
    (grid,) = engine.manifest(bundle)["grids"]
    drafted = torch.cat([case.long(f"{call}.draft_tokens")[1:]
                         for mode in dynamic_modes(case) for call in calls(case, mode)])  # fmt: skip
    assert torch.isin(drafted, torch.tensor(grid["row_end"])).any() == bool(grid["row_end"])


def test_static_tree(case: Case, drafting: Drafting) -> None:
    """Recorded children are taken; they must be as likely as recorded."""
    paths = [tuple(path) for path in case.info["tree"]["static_tree_paths"]]
    (call,) = calls(case, "static")
    last = extend(case, drafting, call)
    guide = warper(case, "static", call)
    sampled = case.long(f"{call}.sampled_tokens") - int(drafting.ids[0])
    tolerance = case.info["tolerance"]["logprob_abs"]
    children: dict[tuple[int, ...], Tensor] = {}
    counts = []
    for depth, level in enumerate(draft_static(drafting, paths, last, children)):
        if depth:
            engine.assert_recorded(
                case, f"{call}.pass{depth}.hidden_out", level.hidden, "hidden_abs"
            )
        probabilities = guide.probabilities(level.logits, depth)[0]
        first = len(children)
        rows = slice(first, first + len(level.nodes))
        counts.append(len(level.nodes))
        for name in ("probs", "probs_first_rows"):
            if case.has(f"{call}.{name}") and len(full := case.tensors[f"{call}.{name}"][rows]):
                inside = full[:, drafting.ids[: probabilities.shape[1]]]
                engine.assert_close(name, probabilities[: len(full)], inside, tolerance)
                assert float(full.sum() - inside.sum()) < tolerance
        tokens = sampled[rows]
        if case.has(f"{call}.sampled_probs"):
            expected = case.tensors[f"{call}.sampled_probs"][rows]
            engine.assert_close(call, probabilities.gather(1, tokens), expected, tolerance)
        got, left = conditional(probabilities, tokens)
        off = (got - case.tensors[f"{call}.conditional_probs"][rows]).abs() * left.clamp(0, 1)
        assert float(off.max()) <= tolerance, f"{call}: conditional probabilities, row {first}"
        for node, chosen in zip(level.nodes, tokens, strict=True):
            children[node] = chosen
    assert counts == case.long(f"{call}.rows_per_level").tolist()
    assert len(children) == len(sampled)
