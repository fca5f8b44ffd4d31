"""The plain LlamaGen GPT: sizes, rotations, prefix rules, cached sampling."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from models.llamagen.config import GPT_SIZES, GPTConfig
from models.llamagen.generate import filter_logits, generate
from models.llamagen.gpt import GPT, pad_left, rotary_table

TINY = GPTConfig(
    dim=32, n_layer=2, n_head=2, ffn_dim=48, vocab_size=40, grid=3, cls_token_num=6, caption_dim=10
)
CLASSES = replace(TINY, model_type="c2i", cls_token_num=1, num_classes=7)


def tiny_model(config: GPTConfig) -> GPT:
    torch.manual_seed(1)
    model = GPT(config).eval()
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            torch.nn.init.normal_(weight, std=0.3)
    return model


def caption(valid: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(2)
    features = torch.randn(len(valid), TINY.cls_token_num, TINY.caption_dim)
    mask = (torch.arange(TINY.cls_token_num)[None] < torch.tensor(valid)[:, None]).long()
    return pad_left(features, mask)


# Published parameter counts: class table of 1001 rows; the null caption of t2i is a buffer.
@pytest.mark.parametrize(
    ("size", "c2i", "t2i"),
    [
        ("B", 110_888_448, 112_282_368),
        ("L", 342_910_976, 345_031_680),
        ("XL", 774_699_520, 777_678_080),
        ("XXL", 1_410_972_672, 1_414_940_160),
        ("XXXL", 3_893_027_840, 3_902_261_760),
        ("1B", 1_199_616_000, 1_205_954_560),
        ("3B", 3_096_659_200, 3_110_249_600),
        ("7B", 6_614_589_440, 6_635_655_168),
    ],
)
def test_published_sizes(size: str, c2i: int, t2i: int) -> None:
    for kind, count, prefix in (("c2i", c2i, 1), ("t2i", t2i, 120)):
        with torch.device("meta"):
            model = GPT(
                GPTConfig(**GPT_SIZES[size], grid=16, model_type=kind, cls_token_num=prefix)
            )
        assert sum(p.numel() for p in model.parameters()) == count
    assert set(GPT_SIZES) == {"B", "L", "XL", "XXL", "XXXL", "1B", "3B", "7B"}


def test_state_dict_keys() -> None:
    with torch.device("meta"):
        keys = set(GPT(GPTConfig(**GPT_SIZES["XL"], grid=32)).state_dict())
    assert len(keys) == 258
    assert {"cls_embedding.uncond_embedding", "layers.35.attention.wqkv.weight"} <= keys


def test_rotary_table_prefix_and_cells() -> None:
    table = rotary_table(TINY)
    assert table.shape == (6 + 9, 8, 2)
    assert not table[:6].any()
    assert torch.equal(table[6], torch.tensor([1.0, 0.0]).expand(8, 2))  # cell (0,0)
    row, column = 2, 1
    theta = torch.tensor([10000.0 ** (-2 * j / 8) for j in range(4)])
    angles = torch.cat([row * theta, column * theta])
    cell = table[6 + row * 3 + column]
    torch.testing.assert_close(cell, torch.stack([angles.cos(), angles.sin()], -1))
    identity = rotary_table(replace(TINY, prefix_rotation="identity"))
    assert torch.equal(identity[:6], torch.tensor([1.0, 0.0]).expand(6, 8, 2))
    assert torch.equal(identity[6:], table[6:])


def test_fresh_model_is_uniform() -> None:
    features, mask = caption([4])
    logits = GPT(TINY).eval()(torch.zeros(1, 2, dtype=torch.long), features, mask)
    assert logits.shape == (1, 3, 40)
    assert not logits.any()


def test_zero_rotation_makes_prefix_attention_a_mean_of_values() -> None:
    attention = tiny_model(TINY).layers[0].attention
    x = torch.randn(1, 4, 32)
    rotation = torch.zeros(4, 1, 8, dtype=torch.complex64)
    q, k, v = attention.project(x, rotation)
    assert not q.any() and not k.any()
    hidden = torch.full((4, 4), -torch.inf).triu(1)
    mean = v.cumsum(2) / torch.arange(1, 5).view(1, 1, 4, 1)
    expected = attention.wo(mean.transpose(1, 2).flatten(2))
    torch.testing.assert_close(attention.attend(q, k, v, hidden), expected)


def test_padding_does_not_change_image_logits() -> None:
    model = tiny_model(TINY)
    features, mask = caption([4])
    idx = torch.randint(40, (1, 5))
    with torch.no_grad():
        padded = model(idx, features, mask)
        x = torch.cat([model.embed_condition(features)[:, 2:], model.tok_embeddings(idx)], 1)
        rotation = model.rotation
        model.rotation = rotation[2:]
        short = model.output(model.trunk(x, None)[0][:, 3:])
    torch.testing.assert_close(padded, short, atol=1e-5, rtol=1e-5)


def test_dropped_caption_is_the_null_caption() -> None:
    model = tiny_model(TINY)
    features, mask = caption([4, 6])
    idx = torch.randint(40, (2, 3))
    with torch.no_grad():
        mixed = model(idx, features, mask, drop=torch.tensor([True, False]))
        null = model(idx, model.unconditional(features), mask)
        plain = model(idx, features, mask)
    assert torch.equal(mixed[0], null[0]) and torch.equal(mixed[1], plain[1])
    assert not torch.equal(null, plain)


def test_returned_layers_are_the_residual_stream() -> None:
    model = tiny_model(TINY)
    features, mask = caption([4])
    logits, (first, last) = model(torch.randint(40, (1, 3)), features, mask, return_layers=(1, 2))
    torch.testing.assert_close(model.output(model.norm(last)[:, 5:]), logits)
    assert first.shape == last.shape == (1, 9, 32)


@pytest.mark.parametrize("config", [TINY, CLASSES, replace(TINY, n_kv_head=1)])
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_cached_greedy_equals_uncached(config: GPTConfig, scale: float) -> None:
    model = tiny_model(config)
    cond, mask = caption([4, 6])
    if config.model_type == "c2i":
        cond, mask = torch.tensor([3, 5]), None
    tokens = generate(model, cond, mask, cfg_scale=scale, top_k=1)
    assert tokens.shape == (2, 9)
    with torch.no_grad():
        logits = model(tokens[:, :-1], cond, mask)
        null = model(tokens[:, :-1], cond, mask, drop=torch.tensor([True, True]))
    assert torch.equal((null + (logits - null) * scale).argmax(-1), tokens)


def test_batch_of_captions_equals_single_captions() -> None:
    model = tiny_model(TINY)
    features, mask = caption([2, 6])
    both = generate(model, features, mask, cfg_scale=2.0, top_k=1)
    for i in range(2):
        alone = generate(model, features[i : i + 1], mask[i : i + 1], cfg_scale=2.0, top_k=1)
        assert torch.equal(alone[0], both[i])


def test_filters_keep_ties_and_the_crossing_token() -> None:
    logits = torch.tensor([[2.0, 1.0, 1.0, 0.0]])
    assert (filter_logits(logits, 1.0, 2, 1.0) > 0).tolist() == [[True, True, True, False]]
    spread = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    assert (filter_logits(spread, 1.0, 0, 0.6) > 0).tolist() == [[True, True, False, False]]
    torch.testing.assert_close(filter_logits(spread, 1.0, 0, 1.0), spread.exp())


def test_rotations_survive_a_change_of_dtype() -> None:
    model = tiny_model(TINY).to(torch.bfloat16)
    assert model.rotation.dtype == torch.complex64
    features, mask = caption([4])
    assert model(torch.zeros(1, 2, dtype=torch.long), features.bfloat16(), mask).shape[1] == 3


@pytest.mark.parametrize(
    "wrong",
    [{"n_head": 3}, {"n_kv_head": 4}, {"model_type": "i2i"}, {"prefix_rotation": "none"}],
)
def test_impossible_shapes_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        replace(TINY, **wrong)
