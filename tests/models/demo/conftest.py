"""A folder in which a small demo model can be trained."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from demo_files import add_shard

from models.demo.training import model
from models.demo.training.text import PREFIX, pretrain_text
from models.demo.training.vq_model import DemoTokenizer, save_tokenizer
from models.llamagen.config import GPTConfig

SMALL = GPTConfig(
    dim=48,
    n_layer=4,
    n_head=2,
    ffn_dim=64,
    vocab_size=1024,
    grid=16,
    cls_token_num=PREFIX,
    caption_dim=128,
    prefix_rotation="identity",
)


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with one shard, a tokenizer and a text encoder of one step."""
    torch.set_num_threads(1)
    work = tmp_path_factory.mktemp("demo")
    pretrain_text(work, SMALL.dim, minutes=0)
    add_shard(work, 0)
    save_tokenizer(DemoTokenizer(), work / "codes.pt")
    return work


@pytest.fixture()
def work(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the prepared folder, with the small model in place of the real one."""
    monkeypatch.setattr(model, "gpt_config", lambda: replace(SMALL))
    return Path(shutil.copytree(prepared, tmp_path / "work"))
