"""LANTERN's Anole and Lumina-mGPT targets: trees verified, accepted rows moved, as recorded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import golden_chameleon as chameleon
import golden_engine as engine
import pytest
import torch
from golden_cases import Case, sibling
from golden_chameleon import Target
from golden_drafter import words
from torch import Tensor

KINDS = ("lantern_target",)


def is_anole(case: Case) -> bool:
    return case.has("prompt_ids")


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The target of another case, whose weights this one uses."""
    out = tmp_path_factory.mktemp("target") / "bundle"
    model = sibling(case, case.info["weights_from"]).folder
    if is_anole(case):
        return engine.export(out, "anole", chameleon.settings(case), model=model)
    sampling = case.info["sampling"]
    size = f"{16 * sampling['grid_latent_w']}x{16 * sampling['grid_latent_h']}"
    return engine.export(out, "lumina-mgpt", {}, "--sizes", size, model=model)


def prompts(case: Case) -> list[Tensor]:
    """The ids in front of the first tree, conditional and unconditional."""
    if is_anole(case):
        conditional, unconditional = case.long("prompt_ids")
        return [conditional, unconditional[-2:]]
    ids = case.long("prefix_ids")
    return [ids, ids[case.info["image_start_token_id_index"] :]]


@dataclass
class Step:
    """One verified tree of N nodes."""

    name: str
    hidden: Tensor  # [2,N,H]
    accepted: list[int]
    before: int  # committed conditional ids


def replay(case: Case, target: Target) -> list[Step]:
    """Runs all recorded trees; accepted rows are kept. The target is prefilled."""
    mask, depths = words(case.tensors["tree_mask"]), case.long("tree_position_ids")
    steps = []
    for number, info in enumerate(case.info["steps"]):
        ids = case.long(f"step{number}.tree_tokens").expand(2, -1)
        hidden = target.run(ids, target.lengths[:, None] + depths, mask)
        accepted = info["accepted_node_indices"]
        steps.append(Step(f"step{number}", hidden, accepted, int(target.lengths[0])))
        path, count = torch.tensor([accepted]), torch.tensor([len(accepted) - 1])
        engine.operators().compact_cache(target.cache, target.lengths, path, count)
        target.lengths = target.lengths + len(accepted)
    return steps


def prefilled(case: Case, bundle: Path) -> tuple[Target, list[Tensor]]:
    rows = [case.info["steps"][-1]["committed_length_after"], *map(len, prompts(case))]
    target = Target(bundle, 2, max(rows))
    return target, target.prefill(prompts(case))


def test_prefill(case: Case, bundle: Path) -> None:
    target, hidden = prefilled(case, bundle)
    tolerance = case.info["tolerance"]["hidden_abs"]
    if not is_anole(case):
        for name, rows in zip(("cond", "uncond"), hidden, strict=True):
            engine.assert_recorded(case, f"prefill_{name}_hidden_last", rows[-1], tolerance)
        return
    for rows, recorded in zip(hidden, case.tensors["prefill_hidden"], strict=True):
        engine.assert_close("prompt", rows, recorded[-len(rows) :], tolerance)
    logits = target.logits(torch.stack([rows[-1] for rows in hidden]))
    expected = case.tensors["prefill_last_logits"][:, target.image_ids]
    engine.assert_close("logits", logits, expected, tolerance)
    assert_guided(case, target, "prefill", logits, case.tensors["prefill_cfg_scores"])


def assert_guided(case: Case, target: Target, name: str, logits: Tensor, scores: Tensor) -> None:
    """Logits [2,...,V] after guidance; recorded scores [...,ids] suppress all but image ids."""
    conditional, unconditional = logits
    guided = unconditional + case.info["sampling"]["cfg_scale"] * (conditional - unconditional)
    expected = scores[..., target.image_ids]
    engine.assert_close(name, guided, expected, case.info["tolerance"]["cfg_scores_abs"])
    others = torch.ones(scores.shape[-1], dtype=torch.bool)
    others[target.image_ids] = False
    assert (scores[..., others] == torch.finfo(torch.float32).min).all(), f"{name}: other ids"


def test_trees(case: Case, bundle: Path) -> None:
    """Hidden states of every node in every tree; the later ones read the moved rows."""
    target, _ = prefilled(case, bundle)
    ids = prompts(case)[0].tolist()
    for step, info in zip(replay(case, target), case.info["steps"], strict=True):
        assert step.before == info["committed_length_before"]
        if is_anole(case):
            engine.assert_recorded(case, f"{step.name}.hidden", step.hidden, "hidden_abs")
            scores = case.tensors[f"{step.name}.cfg_scores"]
            assert_guided(case, target, step.name, target.logits(step.hidden), scores)
        else:
            names = [f"{step.name}.{part}_hidden" for part in ("cond", "uncond")]
            for hidden, name in zip(step.hidden, names, strict=True):
                engine.assert_recorded(case, name, hidden, "hidden_abs")
        ids += case.long(f"{step.name}.tree_tokens")[step.accepted].tolist()
        assert ids == case.long(f"{step.name}.committed_ids").tolist()
    assert target.lengths[0] == len(ids)


def test_cache_after_compaction(case: Case, bundle: Path) -> None:
    if not is_anole(case):
        pytest.skip("no recorded cache")
    target, _ = prefilled(case, bundle)
    replay(case, target)
    keys, values = target.cache.unbind(1)
    for row, length in enumerate(target.lengths.tolist()):
        expected = chameleon.adjacent(case.tensors["final_keys"][:, row, :, -length:])
        tolerance = case.info["tolerance"]["kv_abs"]
        engine.assert_close("keys", keys[:, row, :, :length], expected, tolerance)
        expected = case.tensors["final_values"][:, row, :, -length:]
        engine.assert_close("values", values[:, row, :, :length], expected, tolerance)


def test_scores_of_nodes(case: Case, bundle: Path) -> None:
    """Guidance and top-k where a code is due; where a row ends, the grid's own id."""
    if is_anole(case):
        pytest.skip("guided scores of all nodes are recorded instead")
    grid = engine.manifest(bundle)["grids"][0]
    target, _ = prefilled(case, bundle)
    first = case.info["image_start_token_id_index"] + len(grid["before"])
    settings, depths = case.info["sampling"], case.long("tree_position_ids")
    kinds = set()
    for step in replay(case, target):
        present = step.before + depths + 1 - first  # codes and row ends up to the node
        ends = (present + 1) % (grid["columns"] + 1) == 0
        expected = torch.where(ends, grid["row_end"][0], -1)
        assert torch.equal(case.long(f"{step.name}.forced_id_per_node"), expected)
        for part, node in (("root", 0), ("last_accepted", step.accepted[-1])):
            scores = case.tensors[f"{step.name}.scores_{part}"]
            kinds.add(bool(ends[node]))
            if ends[node]:
                assert (scores > -torch.inf).nonzero().tolist() == [grid["row_end"]]
                continue
            assert not (scores > -torch.inf)[target.image_ids.stop :].any()
            assert not (scores > -torch.inf)[: target.image_ids.start].any()
            logits = target.logits(step.hidden[:, node])
            scale, top_k = settings["cfg_scale"], settings["image_top_k"]
            got = engine.probabilities(logits, 1.0, top_k, 1.0, guidance=scale)[0]
            recorded = scores[target.image_ids].softmax(-1)
            engine.assert_same_support(f"{step.name} {part}", got, recorded)
            kept = recorded > 0  # compared as logarithms, which are what has the recorded error
            tolerance = 2 * case.info["tolerance"]["scores_abs"]
            logs = got[kept].log(), recorded[kept].log()
            engine.assert_close(f"{step.name} {part}", *logs, tolerance)
    assert kinds == {False, True}
