"""EAGLE-3's drafter on recorded passes, and the dynamic trees that it grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from golden_drafter import draft_dynamic, root_to_leaf
from safetensors.torch import load_file
from torch import Tensor

from models.eagle.config import DrafterConfig
from models.eagle.drafter import Context
from models.eagle.eagle3 import Eagle3Config, Eagle3Drafter
from models.eagle.eagle3_module import Eagle3Module
from models.export.drafters.eagle3 import completed, load_eagle3

KINDS = ("methods/eagle3_drafter/",)
CAUSAL = torch.empty(0, dtype=torch.int64)


def read_drafter(case: Case) -> Eagle3Drafter:
    dims = case.info["dims"]
    layer = DrafterConfig(
        dims["hidden"], dims["heads"], dims["mlp_hidden"], dims["vocabulary"],
        dims["positions_max"], dims["kv_heads"], norm_eps=dims["rms_eps"], rotary="line",
        rope_base=dims["rope_theta"],
    )  # fmt: skip
    config = Eagle3Config(layer, dims["fused_feature_width"], dims["draft_vocabulary"])
    state = load_file(case.folder / "weights.safetensors")
    manifest = {"modules": {"target": {"file": ""}}}
    return load_eagle3(config, completed(state, config, Path(), manifest), case.name)


class Warper:
    def probabilities(self, logits: Tensor, depth: int = 0) -> Tensor:
        return logits.softmax(-1)


@dataclass
class Drafting:
    """The scripted drafter with its cache; what draft_dynamic asks for."""

    drafter: Eagle3Drafter
    module: Any
    cache: Tensor
    committed: int = 0
    extra: int = 0  # rows of the tree in the cache

    def run(self, ids: Tensor, features: Tensor, positions: Tensor, mask: Tensor) -> Tensor:
        """ids [R], features [R,..], positions [R] -> [1,R,H]; mask bool [R,columns], or none."""
        lengths, bits = torch.tensor([self.committed]), CAUSAL
        if mask.numel():
            bits = (mask.long() << torch.arange(mask.shape[1])).sum(1).view(1, -1, 1)
            lengths = torch.tensor([[self.committed], [self.committed + self.extra]])
        embedded = self.module.embed(ids[None])
        out: Tensor = self.module.forward(
            embedded, features[None].contiguous(), positions[None].contiguous(), bits, lengths,
            self.cache,
        )  # fmt: skip
        self.extra += len(ids)
        return out

    def context(self, ids: Tensor, features: Tensor, positions: Tensor) -> Tensor:
        self.extra = 0
        out = self.run(ids, features, positions, CAUSAL)
        self.committed, self.extra = self.committed + len(ids), 0
        return out

    def logits(self, hidden: Tensor) -> Tensor:
        result: Tensor = self.module.logits(hidden)
        return result

    def level(self, features: Tensor, codes: Tensor, mask: Tensor, depth: int) -> Tensor:
        positions = torch.full_like(codes, self.committed + depth - 1)
        return self.run(codes, features[0], positions, mask)


@pytest.fixture
def drafting(case: Case) -> Iterator[Drafting]:
    engine.operators()
    drafter = read_drafter(case)
    layer = drafter.config.layer
    module = torch.jit.script(Eagle3Module(drafter, 0, layer.vocabulary))
    module.prepare(torch.empty(0))
    cache = torch.zeros(1, 2, 1, layer.kv_heads, layer.max_length, layer.head_dim)
    with torch.inference_mode():
        yield Drafting(drafter, module, cache)


def recorded(case: Case, call: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor]:
    name = call["call"]
    return (
        case.long(f"{name}.input_ids"), case.tensors[f"{name}.hidden_in"],
        case.long(f"{name}.position_ids"),
    )  # fmt: skip


def test_passes(case: Case, drafting: Drafting) -> None:
    """Hidden rows, logits, and the committed part of the cache."""
    tolerance = case.info["tolerance"]["float32_abs"]
    layer, ids = (
        drafting.drafter.config.layer,
        drafting.drafter.d2t + torch.arange(drafting.drafter.config.draft_vocabulary),
    )
    for call in case.info["calls"]:
        name, inputs = call["call"], recorded(case, call)
        if call["kind"] == "context":
            out = drafting.context(*inputs)
        else:
            out = drafting.run(*inputs, case.tensors[f"{name}.tree_mask"].bool())
        engine.assert_recorded(case, f"{name}.hidden_out", out[0], tolerance)
        logits, expected = drafting.logits(out)[0], case.tensors[f"{name}.logits"]
        engine.assert_close(f"{name} logits", logits[:, ids], expected, tolerance)
        others = torch.ones(layer.vocabulary, dtype=torch.bool)
        others[ids] = False
        assert not logits[:, others].softmax(-1).numel() or float(logits[:, others].max()) < -1e3
        values = drafting.cache[0, 1, 0, :, call["past"] : call["past"] + call["rows"]]
        engine.assert_recorded(case, f"{name}.new_value", values, tolerance)


def test_plain_form(case: Case, drafting: Drafting) -> None:
    """The form that is trained, on the first context."""
    call = case.info["calls"][0]
    ids, features, positions = recorded(case, call)
    hidden = torch.ones(len(ids), len(ids), dtype=torch.bool).triu(1)
    bias = torch.zeros(1, 1, *hidden.shape).masked_fill(hidden, -torch.inf)
    drafter, tolerance = drafting.drafter, case.info["tolerance"]["float32_abs"]
    out, _ = drafter(drafter.embed_tokens(ids)[None], features[None], positions, Context(bias))
    engine.assert_recorded(case, f"{call['call']}.hidden_out", out[0], tolerance)
    logits = drafter.logits(out)[0]
    engine.assert_recorded(case, f"{call['call']}.logits", logits, tolerance)


def test_trees(case: Case, drafting: Drafting) -> None:
    shape = case.info["tree"]
    calls = {call["call"]: call for call in case.info["calls"]}
    for turn in case.info["rounds"]:
        name = f"round{turn['round']}"
        last = drafting.context(*recorded(case, calls[f"call{turn['first_call']}"]))[:, -1:]
        root = int(case.long(f"{name}.all_tokens")[-1])
        passes, nodes = shape["levels_after_first"], shape["nodes_including_root"] - 1
        candidates = shape["candidates_per_node"]
        tree = draft_dynamic(drafting, last, root, Warper(), candidates, passes, nodes)
        for what, got in (
            ("draft_tokens", tree.tokens), ("parent", tree.parents), ("tree_mask", tree.mask),
            ("tree_position_ids", tree.depths),
        ):  # fmt: skip
            assert torch.equal(got.long(), case.long(f"{name}.{what}")), f"{name}: other {what}"
        paths = case.long(f"{name}.retrieve_indices").tolist()
        assert root_to_leaf(tree) == {tuple(n for n in path if n >= 0) for path in paths}, name
