"""The plain EAGLE drafter: published layouts, rotations, and drafting row by row."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from models.eagle.batch import causal_bias, make_batch
from models.eagle.config import DrafterConfig
from models.eagle.drafter import Context, Drafter, rotary_table, rotate
from models.eagle.losses import draft
from models.export.drafters.files import load_drafter
from models.export.messages import ExportError
from models.llamagen import gpt
from models.llamagen.config import GPTConfig

GRID, PROMPT, TOKENS = 3, 4, 9
LLAMAGEN = DrafterConfig(
    hidden=16, heads=2, ffn=24, vocabulary=11, max_length=20, grid=GRID, prompt_length=PROMPT
)
CHAMELEON = replace(
    LLAMAGEN, rotary="line", input_norm=True, qk_norm=True, norm_eps=1e-5, kv_heads=1
)
CONFIGS = {
    "llamagen": LLAMAGEN,
    "chameleon": CHAMELEON,
    "own": replace(LLAMAGEN, input_norm=True, fc_bias=False, prefix_rotation="identity"),
}


def random_drafter(config: DrafterConfig) -> Drafter:
    torch.manual_seed(3)
    drafter = Drafter(config).eval().requires_grad_(False)
    for weight in drafter.parameters():
        weight.normal_(std=0.3)
    return drafter


def test_published_names() -> None:
    layer = "layers.0."
    llamagen = {"embed_tokens.weight", "fc.weight", "fc.bias"}
    llamagen |= {f"{layer}self_attn.{p}_proj.weight" for p in "qkvo"}
    llamagen |= {f"{layer}mlp.{p}_proj.weight" for p in ("gate", "up", "down")}
    llamagen |= {f"{layer}post_attention_layernorm.weight"}
    norms = {f"{layer}self_attn.{p}_norm.{w}" for p in "qk" for w in ("weight", "bias")}
    assert set(Drafter(LLAMAGEN).state_dict()) == llamagen
    chameleon = llamagen | norms | {f"{layer}input_layernorm.weight"}
    assert set(Drafter(CHAMELEON).state_dict()) == chameleon


def test_shared_norms_are_repeated() -> None:
    config = replace(CHAMELEON, heads=4, kv_heads=4)
    weights = random_drafter(config).state_dict()
    name = "layers.0.self_attn.q_norm.weight"
    weights[name] = weights[name][:2]
    loaded = load_drafter(config, weights, "drafter").state_dict()[name]
    assert torch.equal(loaded, weights[name][[0, 0, 1, 1]])
    with pytest.raises(ExportError, match="fc.weight"):
        load_drafter(config, {k: v for k, v in weights.items() if k != "fc.weight"}, "drafter")


@pytest.mark.parametrize("prefix", ["zero", "identity"])
def test_grid_rotation_is_that_of_the_next_token(prefix: str) -> None:
    table = rotary_table(replace(LLAMAGEN, prefix_rotation=prefix))
    target = gpt.rotary_table(
        GPTConfig(dim=16, n_layer=1, n_head=2, grid=GRID, cls_token_num=PROMPT,
                  prefix_rotation=prefix)
    )  # fmt: skip
    rows = PROMPT + TOKENS - 1
    assert torch.equal(table[:rows], target[1:])
    assert table.shape == (20, 4, 2) and not table[rows:].any()


def test_rotations_turn_the_right_pairs() -> None:
    x, angle = torch.randn(1, 2, 5, 8), torch.randn(5, 4)
    turn = torch.stack([angle.cos(), angle.sin()], -1)
    factor = torch.polar(torch.ones_like(angle), angle)
    adjacent = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (4, 2))) * factor)
    torch.testing.assert_close(rotate(x, turn, True), adjacent.flatten(-2))
    a, b = x.chunk(2, -1)
    halves = torch.complex(a, b) * factor
    torch.testing.assert_close(rotate(x, turn, False), torch.cat([halves.real, halves.imag], -1))


def row_by_row(drafter: Drafter, features: Tensor, ids: Tensor, root: int, steps: int) -> Tensor:
    """Predictions [steps,H] of a draft from a root: one causal pass over a growing sequence."""
    known = features[: root + 1]
    for _ in range(steps):
        rows = len(known)
        bias = torch.full((rows, rows), -torch.inf).triu(1)
        embeddings = drafter.embed_tokens(ids[:rows])
        out, _ = drafter(embeddings[None], known[None], torch.arange(rows), Context(bias))
        known = torch.cat([known, out[0, -1:]])
    return known[root + 1 :]


@pytest.mark.parametrize("name", CONFIGS)
def test_drafts_of_all_roots_equal_drafting_row_by_row(name: str) -> None:
    drafter = random_drafter(CONFIGS[name])
    torch.manual_seed(4)
    features = torch.randn(2, 2, PROMPT + TOKENS - 1, 16)
    codes = torch.randint(11, (2, TOKENS))
    batch = make_batch(features, codes, torch.full((2,), PROMPT), PROMPT, prompts=5)
    steps = 4
    drafts = list(draft(drafter, batch, steps))
    assert [d.shape[1] for d in drafts] == [TOKENS - 1 - s for s in range(steps)]
    ids = torch.cat([torch.full((PROMPT - 1,), 5), codes[1]])
    for root in (0, 2, TOKENS - 1 - steps):
        expected = row_by_row(drafter, features[1, 0], ids, PROMPT - 1 + root, steps)
        got = torch.stack([d[2, root] for d in drafts])
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-4)


def test_padding_is_not_seen() -> None:
    drafter = random_drafter(LLAMAGEN)
    features = torch.randn(1, 1, PROMPT + TOKENS - 1, 16)
    codes, valid = torch.randint(11, (1, TOKENS)), torch.tensor([2])
    batch = make_batch(features, codes, valid, PROMPT, 0)
    changed = features.clone()
    changed[:, :, : PROMPT - 2] = 7.0
    other = make_batch(changed, codes, valid, PROMPT, 0)
    for one, two in zip(draft(drafter, batch, 2), draft(drafter, other, 2)):
        assert torch.equal(one, two)
    changed[:, :, PROMPT - 2] = 7.0
    seen = next(draft(drafter, make_batch(changed, codes, valid, PROMPT, 0), 1))
    assert not torch.allclose(seen, next(draft(drafter, batch, 1)))


def test_bias_lets_padding_see_itself_only() -> None:
    bias = causal_bias(torch.tensor([2]), 4, 6)[0, 0]
    expected = [[0], [1], [2], [2, 3], [2, 3, 4], [2, 3, 4, 5]]
    assert [row.isfinite().nonzero().flatten().tolist() for row in bias] == expected


@pytest.mark.parametrize(
    "change", [{"rotary": "spiral"}, {"heads": 3}, {"kv_heads": 3}, {"max_length": 8}]
)
def test_shapes_that_do_not_fit_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(change))):
        replace(LLAMAGEN, **change)
