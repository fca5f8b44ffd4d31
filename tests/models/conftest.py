"""Fixtures of the exporter tests."""

from __future__ import annotations

from pathlib import Path

import pytest
import sentencepiece
import torch
from llamagen_files import GPT_SHAPE, T5_SHAPE, VQ_SHAPE, Files

from models.llamagen.gpt import GPT
from models.llamagen.t5 import T5Encoder
from models.llamagen.vq import VQModel


@pytest.fixture(scope="module")
def states() -> dict[str, dict[str, torch.Tensor]]:
    torch.manual_seed(5)
    models = {"gpt": GPT(GPT_SHAPE), "vq": VQModel(VQ_SHAPE, False), "t5": T5Encoder(T5_SHAPE)}
    return {name: model.state_dict() for name, model in models.items()}


@pytest.fixture(scope="module")
def spiece(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("spiece")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["a red boat on the sea", "a tree in the snow"] * 20),
        model_prefix=str(folder / "spiece"), vocab_size=40, hard_vocab_limit=False,
        pad_id=0, eos_id=1, unk_id=2, bos_id=-1, minloglevel=2,
    )  # fmt: skip
    return folder / "spiece.model"


@pytest.fixture
def files(tmp_path: Path, states: dict[str, dict[str, torch.Tensor]]) -> Files:
    return Files(tmp_path, states)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A bundle of a small LlamaGen target alone, for drafters."""
    torch.manual_seed(6)
    files = Files(tmp_path, {"gpt": GPT(GPT_SHAPE).state_dict(), "vq": {}})
    files.write_config({"gpt": {"n_head": GPT_SHAPE.n_head, "grid": GPT_SHAPE.grid}})
    assert files.export_gpt() == 0
    return files.out
