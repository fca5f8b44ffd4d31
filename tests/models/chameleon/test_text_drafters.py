"""Drafters of texts: where they stand in a bundle, which head they have, what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from chameleon_files import CONFIG, SHAPE, Files, save_model, tokenizer
from torch import Tensor

from models.eagle.config import DrafterConfig
from models.eagle.drafter import Drafter
from models.export.__main__ import main
from models.heads.flash import Flash, FlashConfig, FlashLayerConfig

POSITIONS = 100


@pytest.fixture
def files(tmp_path: Path, state: dict[str, Tensor]) -> Files:
    files = Files(tmp_path)
    save_model(files.model, SHAPE, state, "heads")
    files.write_config({**CONFIG, "sizes": ["32x32"], "max_positions": POSITIONS})
    tokenizer(files.model)
    assert files.export_model("--text") == 0
    return files


def sizes() -> dict[str, Any]:
    return {
        "hidden": SHAPE.dim, "heads": 4, "ffn": 24, "vocabulary": SHAPE.vocab_size, "max_length": 40,
        "rotary": "line",
    }  # fmt: skip


def attach(files: Files, kind: str, *words: str) -> int:
    """Attaches a random drafter."""
    torch.manual_seed(2)
    config: Any = DrafterConfig(**sizes())
    network: Any = Drafter(config)
    if kind == "flash":
        config = FlashConfig(FlashLayerConfig(**sizes()), 2)
        network = Flash(config)
    file = files.model.parent / f"{kind}.pt"
    torch.save({"config": asdict(config), "model": network.state_dict()}, file)
    return main([kind, "--bundle", str(files.out), "--drafter", str(file), *words])


@pytest.mark.parametrize("kind", ["drafter", "flash"])
def test_it_has_the_head_of_texts_and_their_positions(files: Files, kind: str) -> None:
    before = files.manifest()
    assert attach(files, kind, "--name", "words", "--text") == 0
    manifest = files.manifest()
    entry = manifest["text"].pop("drafters")["words"]
    assert entry["max_length"] >= POSITIONS > before["cache"]["max_length"]
    assert {**manifest, "files": 0, "golden": 0} == {**before, "files": 0, "golden": 0}
    stored = dict(torch.jit.load(files.out / "drafter-words.pt").named_buffers())
    target = dict(torch.jit.load(files.out / "target.pt").named_buffers())
    assert torch.equal(stored["head"], target["text_head"])
    assert len(stored["rotary"]) == entry["max_length"]
    assert "words" in {record["module"] for record in manifest["golden"]["records"]}


def test_one_replaces_another(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert attach(files, "drafter", "--name", "words", "--text") == 0
    assert attach(files, "flash", "--name", "words", "--text") == 7
    assert "has words already; give --overwrite" in capsys.readouterr().err
    assert attach(files, "flash", "--name", "words", "--text", "--overwrite") == 0
    assert files.manifest()["text"]["drafters"]["words"]["kind"] == "flash"
    records = files.manifest()["golden"]["records"]
    methods = [record["method"] for record in records if record["module"] == "words"]
    assert methods == ["embed", "forward", "forward", "heads"]


@pytest.mark.parametrize("first", [True, False])
def test_names_are_used_once(files: Files, capsys: pytest.CaptureFixture[str], first: bool) -> None:
    texts, images = ("--name", "one", "--text"), ("--name", "one")
    assert attach(files, "drafter", *(texts if first else images)) == 0
    assert attach(files, "drafter", *(images if first else texts), "--overwrite") == 2
    kind = "texts" if first else "images"
    assert f"has a drafter of {kind} of this name" in capsys.readouterr().err


def test_refused(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--name", "words", "--text")
    assert attach(files, "drafter", *words, "--neighbours", "a.npy") == 2
    assert "--neighbours: got a file, expected none beside --text" in capsys.readouterr().err
    manifest = files.manifest()
    del manifest["text"]
    (files.out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    for kind in ("drafter", "flash"):
        assert attach(files, kind, *words) == 4
        assert "describes no images, expected it for --text" in capsys.readouterr().err
