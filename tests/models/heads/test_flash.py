"""FLASH drafters: the scripted form with and without compression, published folders, refusals."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from llamagen_files import GPT_SHAPE
from torch import Tensor
from toy_target import CONFIG, PROMPT, VOCABULARY, WIDTH, toy_images

from models import ops
from models.archive import write_archive
from models.eagle.batch import make_batch
from models.eagle.config import DrafterConfig
from models.export.__main__ import main
from models.heads.flash import Flash, FlashConfig, FlashLayerConfig
from models.heads.flash_module import FlashModule

HIDDEN, CODES = GPT_SHAPE.dim, GPT_SHAPE.vocab_size


def random_flash(config: FlashConfig) -> Flash:
    torch.manual_seed(3)
    flash = Flash(config).requires_grad_(False)
    for weight in flash.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    return flash


@pytest.mark.parametrize(("window", "groups"), [(0, 0), (0, 3), (1, 0), (4, 3), (30, 0)])
def test_the_scripted_form_drafts_as_trained(tmp_path: Path, window: int, groups: int) -> None:
    """Row by row behind a cache, with the rows beyond the window compressed as the engine does it.

    Groups need not divide the heads.
    """
    ops.load()
    layer = FlashLayerConfig(**{**vars(CONFIG), "kv_heads": groups or CONFIG.kv_heads})
    config = FlashConfig(layer, 3, *((2, window) if window else ()))
    flash = random_flash(config)
    flash.begin(torch.randn(VOCABULARY, WIDTH), torch.randn(VOCABULARY, WIDTH))
    write_archive(FlashModule(flash, flash.head), tmp_path / "flash.pt")
    module = torch.jit.load(tmp_path / "flash.pt")
    module.prepare(torch.empty(0))
    shard = toy_images(2, 5)
    batch = make_batch(shard["features"].float(), shard["codes"], shard["valid"], PROMPT, 0)
    expected = torch.nn.functional.linear(flash.ahead(batch), flash.head)
    embeddings, (sequences, rows) = module.embed(batch.ids), batch.features.shape[:2]
    slots = rows + config.queries
    cache = torch.zeros(1, 2, sequences, layer.kv_heads, slots, CONFIG.head_dim)
    for row in range(rows):
        hidden = step(module, config, batch.features, embeddings, row, cache)
        if row >= PROMPT - 1:
            got = module.heads(hidden.contiguous())
            torch.testing.assert_close(got, expected[:, row - PROMPT + 1], atol=1e-5, rtol=1e-4)


def step(
    module: Any, config: FlashConfig, features: Tensor, embeddings: Tensor, row: int, cache: Tensor
) -> Tensor:
    """What follows one row [S,1,H]."""
    sequences = len(features)
    own = [t[:, row : row + 1].contiguous() for t in (embeddings, features)]
    positions = torch.full((sequences, 1), row)
    if not config.queries:
        lengths = torch.full((sequences,), row)
        causal = torch.empty(0, dtype=torch.int64)
        result: Tensor = module.forward(*own, positions, causal, lengths, cache)
        return result
    old = max(0, row - PROMPT + 1 - config.window)
    history, last = features[:, PROMPT - 1 :], torch.full((sequences,), old)
    compressed = (
        row - config.window + 1 - config.queries + torch.arange(config.queries)
    ).clamp_min(0)
    positions = torch.cat([positions, compressed.expand(sequences, -1)], 1)
    columns = torch.arange(row + 1 + config.queries)
    seen = (columns < PROMPT) | ((columns > row - config.window) & (columns <= row))
    seen = seen | ((columns > row) & (old > 0))
    bits = (seen | (columns == row + torch.arange(1 + config.queries)[:, None])).long()
    mask = (bits << columns).sum(1).view(1, -1, 1)
    lengths = torch.tensor([[0] * sequences, [row] * sequences])
    compressed = module.compress(history, last)
    out: Tensor = module.forward_compressed(*own, compressed, positions, mask, lengths, cache)
    return out[:, :1]


def published(
    folder: Path,
    change: Callable[[dict[str, Tensor], dict[str, Any]], object],
    groups: int = 2,
) -> Path:
    """A folder as the published training writes one: 4 heads, 3 tokens in a pass."""
    layer = FlashLayerConfig(**{**vars(config_of(HIDDEN, CODES)), "kv_heads": groups})
    state = random_flash(FlashConfig(layer, 3)).state_dict()
    state["layers.rotary_emb.inv_freq"] = torch.zeros(2)
    settings: dict[str, Any] = {
        "hidden_size": HIDDEN, "num_attention_heads": 4, "k": 3, "rope_theta": 10000.0,
    }  # fmt: skip
    change(state, settings)
    folder.mkdir()
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "config.json").write_text(json.dumps(settings))
    return folder


def config_of(hidden: int, vocabulary: int) -> DrafterConfig:
    return DrafterConfig(hidden, 4, 24, vocabulary, 40, kv_heads=2, rotary="line")


def attach(bundle: Path, drafter: Path, *more: str) -> int:
    words = ["--bundle", str(bundle), "--name", "f", "--drafter", str(drafter), *more]
    return main(["flash", *words])


@pytest.mark.parametrize("groups", [2, 3])
def test_published_folders(bundle: Path, tmp_path: Path, groups: int) -> None:
    """num_key_value_heads of the official configuration is not the number of groups."""

    def change(_: dict[str, Tensor], settings: dict[str, Any]) -> None:
        settings["num_key_value_heads"] = 4

    assert attach(bundle, published(tmp_path / "flash", change, groups)) == 0
    manifest = json.loads((bundle / "manifest.json").read_text())
    entry = manifest["drafters"]["f"]
    assert (entry["kind"], entry["heads"], entry["kv_heads"]) == ("flash", 3, groups)
    assert entry["prompt_id"] == 0 and "queries" not in entry
    methods = {r["method"] for r in manifest["golden"]["records"] if r["module"] == "f"}
    assert methods == {"embed", "forward", "heads"}


def test_files_of_training_with_queries(bundle: Path, tmp_path: Path) -> None:
    length = GPT_SHAPE.cls_token_num
    layer = replace(
        config_of(HIDDEN, CODES), rotary="grid", grid=GPT_SHAPE.grid, prompt_length=length,
        max_length=length + GPT_SHAPE.grid**2,
    )  # fmt: skip
    config = FlashConfig(layer, 2, 5, 3)
    file = tmp_path / "flash.pt"
    torch.save({"config": asdict(config), "model": random_flash(config).state_dict()}, file)
    assert attach(bundle, file) == 0
    manifest = json.loads((bundle / "manifest.json").read_text())
    entry = manifest["drafters"]["f"]
    assert (entry["heads"], entry["queries"], entry["window"]) == (2, 5, 3)
    methods = {r["method"] for r in manifest["golden"]["records"] if r["module"] == "f"}
    assert methods == {"embed", "forward", "heads", "compress", "forward_compressed"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state, _: state.pop("fc.bias"), "missing keys: fc.bias"),
        (lambda state, _: state.update(extra=torch.zeros(1)), "unexpected keys: extra"),
        (
            lambda _, settings: settings.update(num_attention_heads=3),
            "num_attention_heads is 3, expected",
        ),
        (lambda _, settings: settings.pop("hidden_size"), "hidden_size is missing, expected"),
        (
            lambda state, _: state.update({"embed_tokens.weight": torch.zeros(3, HIDDEN)}),
            "embeds 3 tokens",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Tensor], dict[str, Any]], object],
    message: str,
) -> None:
    before = (bundle / "manifest.json").read_bytes()
    assert attach(bundle, published(tmp_path / "flash", change)) != 0
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert (bundle / "manifest.json").read_bytes() == before
