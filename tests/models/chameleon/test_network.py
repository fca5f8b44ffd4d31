"""Chameleon: the network for the engine against the one in plain PyTorch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from chameleon_files import SHAPE
from stepwise import empty_cache, hidden_by_steps

from models import ops
from models.chameleon.config import ChameleonConfig, TokenIds
from models.chameleon.target_module import TargetModule
from models.chameleon.transformer import Chameleon
from models.transformer.by_block import prepared_by_block

IDS = TokenIds(codebook_size=40, end_of_image=44, begin_of_image=45, separator=46)
CONFIGS = {
    "grouped": SHAPE,
    "every head its own": replace(SHAPE, n_kv_head=4),
    "one key head": replace(SHAPE, n_kv_head=1),
    "norms behind": replace(SHAPE, swin_norm=True),
    "other constants": replace(SHAPE, rope_base=500.0, norm_eps=0.1),
}


def make(config: ChameleonConfig) -> tuple[Chameleon, TargetModule]:
    ops.load()
    torch.manual_seed(3)
    plain = Chameleon(config).requires_grad_(False)
    plain.reset()
    weights = plain.state_dict()
    return plain, TargetModule(config, IDS, config.max_positions, weights.__getitem__)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
@torch.inference_mode()
def test_target_is_the_plain_network(config: ChameleonConfig) -> None:
    """A prompt, then ids one by one."""
    plain, target = make(config)
    ids = torch.randint(config.vocab_size, (2, 9))
    target, hidden = hidden_by_steps(target, config, ids)
    torch.testing.assert_close(hidden, plain.trunk(ids)[-1], atol=1e-5, rtol=1e-5)
    expected = plain(ids)[:, -1:, IDS.first_image_id : IDS.first_image_id + IDS.codebook_size]
    torch.testing.assert_close(
        target.logits(hidden[:, -1:].contiguous()), expected, atol=1e-4, rtol=1e-5
    )


def test_the_options_matter() -> None:
    """Every configuration above computes something else."""
    ids = torch.arange(9)[None]
    outputs = []
    with torch.inference_mode():
        for config in (SHAPE, CONFIGS["norms behind"], CONFIGS["other constants"]):
            plain, _ = make(config)
            outputs.append(plain(ids))
    for first in range(3):
        for second in range(first):
            assert (outputs[first] - outputs[second]).abs().max() > 0.1


@torch.inference_mode()
def test_block_by_block() -> None:
    """The same numbers with one prepared block at a time; the module itself stays unprepared."""
    config = SHAPE
    _, target = make(config)
    before = {name: tensor.clone() for name, tensor in target.named_buffers()}
    steps: list[int] = []
    partial = prepared_by_block(target, torch.empty(0), lambda: steps.append(1))
    x = torch.randn(1, 4, config.dim)
    positions = torch.arange(4)[None]
    caches = [empty_cache(config, 1, 4) for _ in range(2)]
    arguments = (x, positions, torch.empty(0, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    got = partial.forward(*arguments, caches[0])[0]
    assert len(steps) == config.n_layer
    for name, tensor in target.named_buffers():
        assert torch.equal(tensor, before[name]), name
    target.prepare(torch.empty(0))
    assert torch.equal(got, target.forward(*arguments, caches[1])[0])
    assert torch.equal(*caches)
    assert torch.equal(partial.logits(x), target.logits(x))


def test_shapes_that_do_not_fit() -> None:
    for wrong in ({"n_head": 3}, {"n_kv_head": 3}, {"dim": 36}):
        with pytest.raises(ValueError, match="do not fit a width of"):
            replace(SHAPE, **wrong)
