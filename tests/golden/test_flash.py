"""The FLASH drafter: published weights, K features of every row, layout and loss of training, compression."""

from __future__ import annotations

from typing import Any

import golden_engine as engine
import pytest
import torch
from golden_cases import Case
from safetensors.torch import load_file
from torch import Tensor

from models.export.checkpoint import load_strictly, read_folder, without
from models.export.config_file import Section
from models.export.drafters.flash import published_config
from models.heads.flash import Flash, published_loss, train_layout
from models.heads.flash_module import FlashModule

KINDS = ("continuous/flash",)


@pytest.fixture(scope="module")
def flash(case: Case) -> Flash:
    """Read as the exporter reads published folders."""
    state = without(read_folder(case.folder), ("layers.rotary_emb.",))
    manifest = {"cache": {"max_length": 256}, "prompt": {"length": 1}}
    config = published_config(Section.read(case.folder / "config.json"), state, manifest)
    flash = Flash(config)
    load_strictly(flash, state, case.name)
    return flash


@pytest.fixture(scope="module")
def head(case: Case) -> Tensor:
    return load_file(case.folder / "lm_head.safetensors")["weight"]


def inputs(case: Case, flash: Flash, run: str) -> Tensor:
    """Embeddings [B,L,H] of the run's tokens."""
    if run == "embeds":
        return case.tensors["in.inputs_embeds"]
    return flash.embed_tokens(case.long("in.input_ids"))


def attended(flash: Flash, x: Tensor) -> Tensor:
    """Causal, from position 0."""
    rows = x.shape[1]
    hidden = torch.ones(rows, rows, dtype=torch.bool).triu(1)
    bias = torch.zeros(1, 1, rows, rows).masked_fill(hidden, -torch.inf)
    return flash.layers.attend(x, flash.rotary[:rows], bias)


def scripted(flash: Flash, head: Tensor) -> Any:
    engine.operators()
    module = torch.jit.script(FlashModule(flash, head))
    module.prepare(torch.empty(0))
    return module


def run_module(module: Any, flash: Flash, x: Tensor) -> Tensor:
    """attended() by the engine's operators, row by row behind a cache that the first rows filled."""
    layer, (sequences, rows) = flash.config.layer, x.shape[:2]
    cache = torch.zeros(1, 2, sequences, layer.kv_heads, rows, layer.head_dim)
    causal, parts = torch.empty(0, dtype=torch.int64), []
    starts = [0, *range(rows // 2, rows)]
    for first, last in zip(starts, [*starts[1:], rows], strict=True):
        positions = torch.arange(first, last).expand(sequences, -1).contiguous()
        lengths = torch.full((sequences,), first)
        parts.append(
            module.attend(x[:, first:last].contiguous(), positions, causal, lengths, cache)
        )
    return torch.cat(parts, 1)


@pytest.mark.parametrize("run", ["ids", "embeds"])
def test_features_and_logits(case: Case, flash: Flash, head: Tensor, run: str) -> None:
    x = flash.fused(inputs(case, flash, run), case.tensors["in.hidden_states"])
    module, tolerance = scripted(flash, head), case.tolerance("features")
    engine.assert_recorded(case, f"{run}.fused", x, tolerance)
    for name, out in (("plain", attended(flash, x)), ("scripted", run_module(module, flash, x))):
        engine.assert_recorded(case, f"{run}.attn_out", out, tolerance)
        features = flash.features(out) if name == "plain" else module.ahead_of(out)
        engine.assert_recorded(case, f"{run}.head", features, tolerance)
        logits, expected = (
            module.heads(out[:, -1:].contiguous()),
            case.tensors[f"{run}.draft_logits"],
        )
        engine.assert_close(f"{name} logits", logits, expected, case.tolerance("logits"))


@pytest.mark.parametrize("run", ["ids", "embeds"])
def test_layout_and_loss(case: Case, head: Tensor, run: str) -> None:
    features = case.tensors[f"{run}.head"]
    for name, pad in (("train_layout", 0.0), ("train_layout_pad5", 5.0)):
        if case.has(f"{run}.{name}"):
            assert torch.equal(train_layout(features, pad), case.tensors[f"{run}.{name}"])
    loss = published_loss(features, head, case.tensors["loss.target"], case.tensors["loss.mask"])
    expected, relative = case.tensors[f"{run}.loss"], case.tolerance("loss")
    torch.testing.assert_close(torch.stack(loss), expected, rtol=relative, atol=0)


def test_compression(case: Case, flash: Flash, head: Tensor) -> None:
    """Of all rows; in the engine's form row 0 is the prompt's last one, which stays."""
    queries, visual = case.tensors["comp.queries"], case.tensors["comp.visual"]
    tolerance = case.tolerance("compression")
    flash.queries = torch.nn.Parameter(queries, requires_grad=False)
    flash.config.queries, flash.config.window = len(queries), 1
    large = torch.cat([case.tensors["comp.large.visual_row0"], visual[:, 1:]], 1)
    for name, rows in (("comp", visual), ("comp.large", large)):
        weights, expected = flash.weights(rows), case.tensors[f"{name}.weights"]
        engine.assert_close(f"{name} weights", weights, expected, tolerance)
    compressed, expected = flash.compressed(visual), case.tensors["comp.compressed"]
    engine.assert_close("compressed", compressed, expected, tolerance)
    module = scripted(flash, head)
    count = torch.full((len(visual),), visual.shape[1])
    got = module.compress(torch.nn.functional.pad(visual, (0, 0, 1, 0)), count)
    engine.assert_close("compressed by the module", got, expected, tolerance)
    text = flash.fused(case.tensors["comp.text_next_embed"], case.tensors["comp.text"])
    engine.assert_recorded(case, "comp.fused_text", text, tolerance)
    x, expected = torch.cat([compressed, text], 1), case.tensors["comp.head"]
    engine.assert_recorded(case, "comp.drafter_input", x, tolerance)
    engine.assert_close("features", flash.features(attended(flash, x)), expected, tolerance)
    out = module.ahead_of(run_module(module, flash, x))
    engine.assert_close("features of the module", out, expected, tolerance)
