"""Scripted forms against the plain definitions, with the real operators."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from models import ops
from models.archive import write_archive
from models.llamagen.config import GPTConfig, T5Config
from models.llamagen.gpt import GPT, pad_left
from models.llamagen.t5 import T5Encoder, relative_buckets
from models.llamagen.target_module import ClassTargetModule, TargetModule
from models.llamagen.text_encoder_module import TextEncoderModule

HEAD64 = GPTConfig(
    dim=128, n_layer=3, n_head=2, ffn_dim=96, vocab_size=50, grid=4, cls_token_num=7, caption_dim=12
)
CONFIGS = {
    "head64": HEAD64,
    "head20": replace(HEAD64, dim=80, n_head=4, n_kv_head=4),
    "head16": replace(HEAD64, dim=64, n_head=4, n_kv_head=4),
    "grouped": replace(HEAD64, n_head=4, n_kv_head=2),
    "identity": replace(HEAD64, prefix_rotation="identity"),
    "class": replace(HEAD64, model_type="c2i", cls_token_num=1, num_classes=9),
}
CAUSAL = torch.empty(0, dtype=torch.int64)


@pytest.fixture(scope="module", autouse=True)
def operators() -> None:
    ops.load()


def plain_model(config: GPTConfig) -> GPT:
    torch.manual_seed(3)
    model = GPT(config).eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            torch.nn.init.normal_(weight, std=0.1)
        else:
            torch.nn.init.uniform_(weight, 0.5, 1.5)
    return model


def scripted(module: torch.nn.Module, folder: Path) -> torch.jit.ScriptModule:
    """As the engine gets it: through an archive, then prepared."""
    write_archive(module, folder / "module.pt")
    loaded = torch.jit.load(folder / "module.pt")
    loaded.prepare(torch.empty(0))
    return loaded


class Decoder:
    """Drives a scripted target for one image: row 0 conditional, row 1 unconditional."""

    def __init__(self, target: torch.jit.ScriptModule, config: GPTConfig, valid: int) -> None:
        self.target, self.config, self.valid = target, config, valid
        shape = (config.n_layer, 2, 2, config.n_kv_head, config.max_length, config.head_dim)
        self.cache = torch.full(shape, torch.nan)  # what was never written must not be read
        self.length = 0

    def __call__(self, x: torch.Tensor, tree: torch.Tensor = CAUSAL) -> torch.Tensor:
        rows = x.shape[1]
        start = self.config.cls_token_num - self.valid + self.length
        positions = torch.arange(start, start + rows).expand(2, -1).contiguous()
        lengths = torch.full((2,), self.length)
        hidden, features = self.target.forward(x, positions, tree, lengths, self.cache)
        assert torch.equal(hidden, features)
        self.length += rows
        return self.target.logits(hidden)


@pytest.mark.parametrize("name", CONFIGS)
def test_target_equals_plain(name: str, tmp_path: Path) -> None:
    config = CONFIGS[name]
    model = plain_model(config)
    tokens = torch.randint(config.vocab_size, (1, config.tokens))
    if config.model_type == "c2i":
        valid, cond, plain_cond, mask = 1, torch.tensor([[4]]), torch.tensor([4]), None
        target = scripted(ClassTargetModule(model), tmp_path)
    else:
        valid = 4
        cond = torch.randn(1, valid, config.caption_dim)
        padded = torch.nn.functional.pad(cond, (0, 0, 0, config.cls_token_num - valid))
        ones = (torch.arange(config.cls_token_num) < valid).long()[None]
        plain_cond, mask = pad_left(padded, ones)
        target = scripted(TargetModule(model), tmp_path)
    expected = torch.cat(
        [
            model(tokens[:, :-1], plain_cond, mask),
            model(tokens[:, :-1], plain_cond, mask, drop=torch.tensor([True])),
        ]
    )
    ones = torch.ones(1, valid, dtype=torch.int64)
    with torch.inference_mode():
        prefix = [target.embed_condition(cond, ones), target.embed_unconditional(ones)]
        decoder = Decoder(target, config, valid)
        got = [decoder(torch.cat(prefix))[:, -1:]]
        for first, last in ((0, 1), (1, 2), (2, 7), (7, config.tokens - 1)):  # one or more rows
            got.append(decoder(target.embed(tokens[:, first:last].expand(2, -1).contiguous())))
    torch.testing.assert_close(torch.cat(got, 1), expected, atol=1e-4, rtol=1e-4)


def test_parts_of_the_layers_are_the_whole(tmp_path: Path) -> None:
    """What they leave, what they write into the cache, and the final norm of every part."""
    model = plain_model(HEAD64)
    target = scripted(TargetModule(model), tmp_path)
    rows = torch.randn(2, 3, HEAD64.dim)
    decoders = [Decoder(target, HEAD64, 3) for _ in range(2)]
    positions = torch.tensor([[4, 5, 6]] * 2)
    lengths = torch.zeros(2, dtype=torch.int64)
    expected, _ = target.forward(rows, positions, CAUSAL, lengths, decoders[0].cache)
    residual = rows
    for first, end in ((0, 1), (1, 1), (1, 3)):
        part = torch.tensor([first, end])
        before = residual.clone()
        left, hidden = target.forward_layers(
            residual, positions, CAUSAL, lengths, decoders[1].cache, part
        )
        assert torch.equal(residual, before)
        torch.testing.assert_close(hidden, model.norm(left))
        residual = left
    assert torch.equal(hidden, expected)
    written = [decoder.cache[..., :3, :] for decoder in decoders]
    assert torch.equal(*written)


def test_padded_condition_rows_are_ignored(tmp_path: Path) -> None:
    target = scripted(TargetModule(plain_model(HEAD64)), tmp_path)
    features = torch.randn(2, 5, HEAD64.caption_dim)
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    full = target.embed_condition(features, mask)
    assert not full[0, 3:].any()
    torch.testing.assert_close(
        full[:1, :3], target.embed_condition(features[:1, :3].contiguous(), mask[:1, :3])
    )
    null = target.embed_unconditional(mask)
    torch.testing.assert_close(null[0, :3], null[1, 2:])  # the last rows of one table
    assert not null[0, 3:].any()


def test_tree_rows_equal_the_chain_they_belong_to(tmp_path: Path) -> None:
    config = HEAD64
    target = scripted(TargetModule(plain_model(config)), tmp_path)
    ones = torch.ones(1, 3, dtype=torch.int64)
    features = torch.randn(1, 3, config.caption_dim)
    prefix = torch.cat([target.embed_condition(features, ones), target.embed_unconditional(ones)])
    chain, tree = Decoder(target, config, 3), Decoder(target, config, 3)
    chain(prefix), tree(prefix)
    root, left, right = torch.randn(3, 2, 1, config.dim)
    expected = chain(torch.cat([root, right], 1))
    rows = torch.cat([root, left, right], 1)
    positions = torch.tensor([[7, 8, 8]] * 2)
    bits = torch.tensor([[[0b001], [0b011], [0b101]]])
    hidden, _ = target.forward(rows, positions, bits, torch.tensor([3, 3]), tree.cache)
    torch.testing.assert_close(target.logits(hidden)[:, [0, 2]], expected, atol=1e-5, rtol=1e-5)


def test_bfloat16_storage_runs_in_both_precisions(tmp_path: Path) -> None:
    model = plain_model(HEAD64)
    target = TargetModule(model.to(torch.bfloat16))
    write_archive(target, tmp_path / "module.pt")
    hidden = torch.randn(1, 2, HEAD64.dim)
    logits = {}
    for dtype in (torch.float32, torch.bfloat16):
        loaded = torch.jit.load(tmp_path / "module.pt")
        loaded.prepare(torch.empty(0, dtype=dtype))
        assert loaded.rotary.dtype == torch.float32
        logits[dtype] = loaded.logits(hidden.to(dtype))
        assert logits[dtype].dtype == dtype
    torch.testing.assert_close(
        logits[torch.bfloat16].float(), logits[torch.float32], atol=0.05, rtol=0.05
    )


def test_relative_buckets_are_the_published_table() -> None:
    # Starts of the buckets 8..15 of distances to earlier positions.
    starts = [8, 12, 16, 23, 32, 46, 64, 91]
    row = relative_buckets(130, 32, 128)[-1].flip(0)  # distances 0, 1, 2, ... backwards
    expected = [d if d < 8 else 7 + sum(d >= s for s in starts) for d in range(130)]
    assert row.tolist() == expected
    forward = relative_buckets(130, 32, 128)[0]
    assert forward[1:].tolist() == [16 + b for b in expected[1:]]


@pytest.mark.parametrize("length", [1, 5, 150])
def test_text_encoder_equals_plain(length: int, tmp_path: Path) -> None:
    torch.manual_seed(4)
    config = T5Config(d_model=32, d_kv=8, num_heads=3, d_ff=40, num_layers=2, vocab_size=30)
    model = T5Encoder(config).eval().requires_grad_(False)
    encoder = scripted(TextEncoderModule(model), tmp_path)
    ids = torch.randint(30, (2, length))
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, (length + 1) // 2 :] = 0
    expected, got = model(ids, mask), encoder.encode(ids, mask)
    seen = mask.bool()
    torch.testing.assert_close(got[seen], expected[seen], atol=1e-4, rtol=1e-4)
    short = ids[1:, : int(mask[1].sum())].contiguous()
    alone = encoder.encode(short, torch.ones_like(short))
    torch.testing.assert_close(alone[0], got[1][seen[1]], atol=1e-4, rtol=1e-4)
