"""LlamaGen with LANTERN's drafter from prompt to pixels: exporter, compiled loop and operators.

The recorded drafter attends to the padding of the prompt, and so it does in the compiled loop. The
recorded trees also reach past the image, so that whole runs, and runs with recorded trees,
are repeated cycle by cycle in Python.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case, sibling
from golden_drafter import Warper
from golden_loop import Replay, Tree, padded_features, verified
from safetensors.torch import load_file
from torch import Tensor

from models.export.config_file import Section
from models.export.llamagen.config import Hints
from models.export.llamagen.networks import load_gpt
from models.llamagen.gpt import GPT

KINDS = ("llamagen_end_to_end",)
NUMERIC_ERROR = 5e-5  # of guided logits; a smaller gap between two of them decides nothing


def part(case: Case, name: str) -> Case:
    """The case of the target, the drafter, the text encoder or the image tokenizer."""
    return sibling(case, case.info["model"][f"{name}_case"])


def target_folder(case: Case) -> Path:
    return next(path.parent for path in case.weights() if path.suffix == ".safetensors")


@pytest.fixture(scope="module")
def bundle(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Path:
    (vq,) = part(case, "vq").weights()
    parts = {
        "gpt": target_folder(case),
        "vq": vq,
        "t5": next(part(case, "text").folder.rglob("spiece.model")).parent,
    }
    out = engine.export(
        tmp_path_factory.mktemp("end_to_end") / "bundle", "llamagen", {"gpt": {}}, **parts
    )
    drafter = next(path for path in case.weights() if path.is_dir())
    table = next(path for path in case.weights() if path.suffix == ".npy")
    engine.attach_drafter(out, "lantern", drafter, neighbours=table)
    return out


@pytest.fixture(scope="module")
def plain(case: Case) -> GPT:
    return load_gpt(target_folder(case), Section({}, ""), Hints())


@pytest.fixture(scope="module")
def padded(case: Case, plain: GPT) -> Tensor:
    """Features of all prompt rows, padding included."""
    return padded_features(plain, case.tensors["cond"], case.long("emb_masks"))


def prompt_features(case: Case) -> Tensor:
    """[1,n,C] without padding."""
    return case.tensors["cond"][:, case.long("emb_masks")[0].bool()]


def autoregressive_scales(case: Case) -> dict[str, float]:
    """Guidance by the end of a run's name: the runs that share it share the tokens."""
    ends = [name.removeprefix("ar_greedy_").removesuffix(".tokens") for name in case.tensors
            if name.startswith("ar_greedy_") and name.endswith(".tokens")
            and "lantern" not in name]  # fmt: skip
    found = {}
    for end in ends:
        scales = {run["cfg"] for name, run in case.info["runs"].items() if name.endswith(f"_{end}")}
        (found[end],) = scales
    return found


def start(case: Case, bundle: Path, padded: Tensor, run: dict[str, Any], root: int | None
          ) -> tuple[Replay, Tensor, int]:  # fmt: skip
    """After the prompt: the replay, the drafter's last hidden row and the first token."""
    keys = ("temperature", "top_k", "top_p")
    settings = {key: run[key] for key in keys} if run["temperature"] > 0 else None
    replay = Replay(bundle, "lantern", prompt_features(case), Warper(run["cfg"], settings))
    tolerance = part(case, "target").tolerance("logits")
    engine.assert_close("prompt", replay.prompt, padded[:, -replay.valid :], tolerance)
    if root is None:
        root = int(replay.warper.guided(replay.first_logits).argmax())
    return replay, replay.start(padded, root), root


def static_paths(case: Case, name: str) -> list[list[int]]:
    trees = part(case, "drafter").info["static_trees"]
    return next(paths for tree, paths in trees.items() if f"_{tree}_" in f"{name}_")


def draft(case: Case, name: str, replay: Replay, last: Tensor, root: int) -> Tree:
    if case.info["runs"][name]["static"]:
        return replay.draft_static(last, root, static_paths(case, name))
    shape = part(case, "drafter").info["model"]
    return replay.draft_dynamic(last, root, shape, shape["total_token"] - 1)


def rule(run: dict[str, Any], neighbours: Tensor) -> dict[str, Any]:
    """Options of verify_tree: a parameter above 1 is lambda, else delta."""
    if not run.get("lantern"):
        return {"rule": "exact"}
    kind = "lantern++" if run["ld"] > 1 else "lantern"
    return {"rule": kind, "k": run["lk"], "bound": run["ld"], "neighbours": neighbours}


def neighbours(bundle: Path) -> Tensor:
    return load_file(bundle / "neighbours.safetensors")["neighbours"].int()


def greedy_runs(case: Case) -> list[str]:
    return [name for name, run in case.info["runs"].items() if run["temperature"] == 0]


def recorded_cycles(case: Case, name: str) -> Iterator[str]:
    number = 0
    while case.has(f"{name}.cycle{number}.tree_tokens"):
        yield f"{name}.cycle{number}"
        number += 1


def test_prompt(case: Case, bundle: Path) -> None:
    """Tokens by the compiled tokenizer, features by the exported encoder."""
    manifest = engine.manifest(bundle)
    tokenizer = manifest["tokenizer"]
    request = {"text": case.info["prompt"], "cleaning": tokenizer["cleaning"]}
    words = (tokenizer["file"], tokenizer["max_length"], tokenizer["extra_ids"])
    output = engine.run(
        engine.BUILD / "tokenize", bundle / words[0], *words[1:], stdin=json.dumps(request) + "\n"
    )
    ids = json.loads(output)["ids"]
    expected = case.tensors["t5_ids"][0]
    assert ids == expected[: len(ids)].tolist() and not expected[len(ids) :].any()
    valid = torch.tensor([ids])
    with torch.inference_mode():
        features = engine.load_module(bundle, "text_encoder").encode(valid, torch.ones_like(valid))
    tolerance = part(case, "text").tolerance("features")
    engine.assert_close("features", features, prompt_features(case), tolerance)


def test_autoregressive(case: Case, bundle: Path) -> None:
    """Greedy tokens of the compiled loop without a drafter."""
    features = prompt_features(case)
    inputs = {"features": features, "mask": torch.ones(1, features.shape[1], dtype=torch.int64)}
    options = {"temperature": 0.0, "top_k": 0, "top_p": 1.0}
    found = autoregressive_scales(case)
    for end, scale in found.items():
        tokens = engine.decode(bundle, inputs, cfg_scale=scale, **options)["tokens"]
        assert torch.equal(tokens, case.tensors[f"ar_greedy_{end}.tokens"]), end
    assert found


def test_pixels(case: Case, bundle: Path) -> None:
    decoder = engine.load_module(bundle, "image_decoder")
    for end in autoregressive_scales(case):
        if not case.has(f"ar_greedy_{end}.image_uint8"):
            continue
        side = case.info["model"]["grid"]
        codes = case.long(f"ar_greedy_{end}.tokens").view(1, side, side)
        with torch.inference_mode():
            image = decoder.decode(codes).permute(0, 2, 3, 1).double()
        scaled = (127.5 * image + 128).clamp(0, 255)
        off = (scaled.int() - case.tensors[f"ar_greedy_{end}.image_uint8"].int()).abs()
        edge = (scaled - scaled.round()).abs() <= 0.02
        assert int(off.max()) <= 1 and not (off.bool() & ~edge).any()


def assert_cycle(case: Case, cycle: str, tree: Tree, guided: Tensor, undecided: bool) -> bool:
    """Tree and target logits of a recorded cycle; False when another tree is no fault."""
    tokens = case.long(f"{cycle}.tree_tokens")
    if not torch.equal(tree.tokens, tokens):
        assert undecided, f"{cycle}: another tree"
        return False
    assert torch.equal(tree.depths, case.long(f"{cycle}.position_offset")), cycle
    if case.has(f"{cycle}.tree_mask"):
        assert torch.equal(tree.mask, case.tensors[f"{cycle}.tree_mask"].bool()), cycle
    if case.has(f"{cycle}.target_logits_cfg"):
        engine.assert_recorded(case, f"{cycle}.target_logits_cfg", guided, "target_logits_cfg")
    return True


def along(tree: Tree, tokens: list[int]) -> Tree:
    """The tree with the nodes off the path of these tokens, root first, made unacceptable."""
    kept = [0]
    for token in tokens[1:]:
        below = (tree.parents == kept[-1]) & (tree.tokens == token)
        kept += below.nonzero()[:1, 0].tolist()
    chosen = torch.full_like(tree.tokens, -1)
    chosen[kept] = tree.tokens[kept]
    return replace(tree, tokens=chosen)


def loop_options(case: Case, name: str) -> dict[str, Any]:
    """How the compiled loop samples a recorded greedy run."""
    run = case.info["runs"][name]
    options = {"method": "eagle-2", "drafter": "lantern", "cfg_scale": run["cfg"],
               "temperature": 0.0, "top_k": 0, "top_p": 1.0}  # fmt: skip
    if run["static"]:
        tree = f"lantern-{1 + len(static_paths(case, name))}"
        return {**options, "method": "eagle", "tree": tree}
    shape = part(case, "drafter").info["model"]
    keys = {"depth": "dynamic_depth", "top_k": "dynamic_width"}
    return {
        **options,
        "dynamic_nodes": shape["total_token"] - 1,
        **{option: shape[key] for key, option in keys.items()},
    }


def test_compiled_loop(case: Case, bundle: Path) -> None:
    """Exact greedy runs: tokens, and accept lengths until a near tie decides one.

    Cycles whose tree leaves the image are not compared: there the loop clamps positions.
    """
    features = prompt_features(case)
    inputs = {"features": features, "mask": torch.ones(1, features.shape[1], dtype=torch.int64)}
    deepest = {name: max(map(len, static_paths(case, name))) if case.info["runs"][name]["static"]
               else part(case, "drafter").info["model"]["depth"] + 1
               for name in greedy_runs(case) if not case.info["runs"][name].get("lantern")}  # fmt: skip
    for name, depth in deepest.items():
        found = engine.decode(bundle, inputs, **loop_options(case, name))
        assert torch.equal(found["tokens"], case.tensors[f"{name}.tokens"]), f"{name}: tokens"
        expected = case.long(f"{name}.accept_length")
        gaps = torch.minimum(*(case.tensors[f"{name}.{kind}_gap"] for kind in ("draft", "target")))
        committed = 1 + torch.cumsum(expected + 1, 0) - (expected + 1)
        cycles = int((committed + depth <= found["tokens"].shape[1]).sum())
        wrong = (found["accept_lengths"].long()[:cycles] != expected[:cycles]).nonzero()[:1, 0]
        if len(wrong):
            cycles = int(wrong[0])
            assert float(gaps[cycles]) < NUMERIC_ERROR, f"{name} cycle {cycles}: accept length"
        assert cycles > len(expected) // 2, f"{name}: {cycles} cycles compared"
    assert deepest


@pytest.mark.parametrize("relaxed", [False, True], ids=["exact", "relaxed"])
def test_greedy(case: Case, bundle: Path, padded: Tensor, relaxed: bool) -> None:
    """Tokens, and per cycle the accept length until a near tie changes the tree.

    Under a relaxed rule paths of one length may be right; the recorded one is then taken.
    """
    table = neighbours(bundle)
    found = [n for n in greedy_runs(case) if bool(case.info["runs"][n].get("lantern")) == relaxed]
    for name in found:
        run = case.info["runs"][name]
        options = rule(run, table)
        replay, last, root = start(case, bundle, padded, run, None)
        expected = case.tensors[f"{name}.tokens"][0].tolist()
        lengths = case.long(f"{name}.accept_length").tolist()
        bonus = case.long(f"{name}.bonus_token").tolist()
        gaps = torch.minimum(*(case.tensors[f"{name}.{kind}_gap"] for kind in ("draft", "target")))
        same, number = True, 0
        while len(replay.tokens) <= run["max_length"]:
            tree = draft(case, name, replay, last, root)
            features, logits = replay.verify(tree)
            guided = replay.warper.guided(logits)
            path, root, _ = verified(tree, guided.softmax(-1), 0.0, **options)
            if same:
                undecided = float(gaps[number]) < NUMERIC_ERROR
                if case.has(f"{name}.cycle{number}.tree_tokens"):
                    same = assert_cycle(case, f"{name}.cycle{number}", tree, guided, undecided)
                first = len(replay.tokens)
                tokens = expected[first : first + lengths[number] + 1]
                if relaxed and len(tokens) == len(path):
                    recorded = along(tree, tokens)
                    path, root, _ = verified(recorded, guided.softmax(-1), 0.0, **options)
                got, wanted = (len(path) - 1, root), (lengths[number], bonus[number])
                if same and got != wanted:
                    message = f"accepts {got[0]}, then token {got[1]}; recorded {wanted}"
                    assert undecided, f"{name} cycle {number}: {message}"
                    same = False
                number += same
            last = replay.commit(tree, features, path, root)
        if same or not relaxed:
            assert replay.tokens[: len(expected)] == expected, f"{name}: tokens"
        assert not same or number == len(lengths), f"{name}: {number} cycles"
    assert found


def test_sampled_cycles(case: Case, bundle: Path, padded: Tensor) -> None:
    """Recorded trees: target logits, draft distributions, decisions, last distribution and token."""
    table = neighbours(bundle)
    seen = 0
    for name, run in case.info["runs"].items():
        if run["temperature"] == 0:
            continue
        options = rule(run, table)
        roots = case.long(f"{name}.root_token").tolist()
        replay, last, root = start(case, bundle, padded, run, roots[0])
        for number, cycle in enumerate(recorded_cycles(case, name)):
            tokens = case.long(f"{cycle}.tree_tokens")
            if run["static"]:
                tree = replay.draft_static(last, root, static_paths(case, name), tokens)
                engine.assert_recorded(case, f"{cycle}.draft_rows_probs", tree.rows, 2e-4)
            else:
                tree = draft(case, name, replay, last, root)
            features, logits = replay.verify(tree)
            assert assert_cycle(case, cycle, tree, replay.warper.guided(logits), False)
            target = replay.warper.probabilities(logits)[0]
            uniforms = case.tensors[f"{cycle}.uniforms"].float()
            path, _, final = verified(
                tree, target, run["temperature"], uniforms, sampled=run["static"],
                residual="official-static" if run["static"] else "official-dynamic", **options,
            )  # fmt: skip
            assert len(path) - 1 == int(case.long(f"{name}.accept_length")[number]), cycle
            engine.assert_recorded(case, f"{cycle}.final_probs", final, "final_probs")
            root = int((final / case.tensors[f"{cycle}.bonus_noise"]).argmax())
            assert root == int(case.long(f"{name}.bonus_token")[number]), cycle
            last = replay.commit(tree, features, path, root)
            seen += 1
    assert seen
