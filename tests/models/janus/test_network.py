"""Janus-Pro: the network for the engine against the one in plain PyTorch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from janus_files import SHAPE, random_state
from stepwise import hidden_by_steps

from models import ops
from models.janus.config import JanusConfig
from models.janus.network import Janus, code_table
from models.janus.target_module import TargetModule
from models.transformer.by_block import prepared_by_block

CONFIGS = {
    "grouped": SHAPE,
    "every head its own": replace(SHAPE, n_kv_head=4),
    "deeper aligner": replace(SHAPE, aligner_depth=3),
    "one linear layer": replace(SHAPE, aligner_depth=1),
}


def make(config: JanusConfig) -> tuple[Janus, TargetModule]:
    ops.load()
    state = random_state(config)
    target = TargetModule(config, config.max_positions, state.__getitem__)
    return Janus(config, state.__getitem__), target


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.inference_mode()
def test_target_is_the_plain_network(config: JanusConfig) -> None:
    """A prompt, then ids one by one, of text and of codes."""
    plain, target = make(config)
    ids = torch.randint(config.vocab_size, (2, 9), generator=torch.Generator().manual_seed(2))
    ids[:, -3:] = config.text_ids + torch.tensor([0, 7, config.codes - 1])
    target, hidden = hidden_by_steps(target, config, ids)
    expected = plain.trunk(ids)[-1]
    torch.testing.assert_close(hidden, expected, atol=1e-5, rtol=1e-5)
    assert target.logits(hidden).shape[-1] == config.codes
    torch.testing.assert_close(target.logits(hidden), plain.logits(expected), atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("width", [1, 71])
@torch.inference_mode()
def test_a_row_has_its_logits_whatever_rides_along(width: int, dtype: torch.dtype) -> None:
    """Torch's own gelu gives other bits to a single number than to one among others."""
    _, target = make(replace(SHAPE, head_width=width))
    target.prepare(torch.empty(0, dtype=dtype))
    hidden = torch.randn(3, 170, SHAPE.dim, generator=torch.Generator().manual_seed(1)).to(dtype)
    logits = target.logits(hidden)
    for sequence in range(3):
        for row in range(0, 170, 4):
            alone = hidden[sequence : sequence + 1, row : row + 1].contiguous()
            assert torch.equal(target.logits(alone)[0, 0], logits[sequence, row])


@torch.inference_mode()
def test_block_by_block() -> None:
    _, target = make(SHAPE)
    partial = prepared_by_block(target, torch.empty(0))
    hidden = torch.randn(1, 4, SHAPE.dim)
    got = partial.logits(hidden)
    target.prepare(torch.empty(0))
    assert torch.equal(got, target.logits(hidden))


def test_the_aligner_is_folded_in_full_precision() -> None:
    state = {name: tensor.bfloat16() for name, tensor in random_state(SHAPE).items()}
    table = code_table(SHAPE, state.__getitem__)
    assert table.dtype == torch.float32
    wide = {name: tensor.double() for name, tensor in state.items()}
    x = wide["codes"] @ wide["aligner.0.weight"].t() + wide["aligner.0.bias"]
    x = torch.nn.functional.gelu(x) @ wide["aligner.1.weight"].t() + wide["aligner.1.bias"]
    torch.testing.assert_close(table.double(), x, atol=1e-5, rtol=1e-5)
