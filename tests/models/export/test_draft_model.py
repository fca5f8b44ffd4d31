"""The target of one bundle as drafter of another: what is taken over, what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from llamagen_files import GPT_SHAPE, T5_SHAPE, VQ_SHAPE, Files
from safetensors.torch import load_file

from models.export.__main__ import main
from models.llamagen.config import GPTConfig
from models.llamagen.gpt import GPT
from models.llamagen.t5 import T5Encoder
from models.llamagen.vq import VQModel

SMALL = replace(GPT_SHAPE, dim=16, n_layer=1, n_kv_head=1, ffn_dim=24)
Edit = Callable[[dict[str, Any]], None]


class Pair:
    """A bundle, and that of a smaller target of the same prompts and codes."""

    def __init__(self, folder: Path, spiece: Path) -> None:
        torch.manual_seed(6)
        self.folder, self.spiece = folder, spiece
        self.model, self.source = folder / "model", folder / "source"
        self.vq = VQModel(VQ_SHAPE, False).state_dict()
        self.t5 = T5Encoder(T5_SHAPE).state_dict()
        self.make(self.model, GPT_SHAPE, self.vq)
        self.make(self.source, SMALL, self.vq)

    def make(
        self, out: Path, shape: GPTConfig, vq: dict[str, torch.Tensor] | None,
        t5: dict[str, torch.Tensor] | None = None,
    ) -> None:  # fmt: skip
        folder = self.folder / f"files-{out.name}"
        folder.mkdir()
        files = Files(folder, {"gpt": GPT(shape).state_dict(), "vq": vq or self.vq})
        files.out = out
        files.write_config({"gpt": {"n_head": shape.n_head, "grid": shape.grid}})
        files.save_t5(self.spiece, **(t5 or self.t5))
        parts = ["--t5", files.t5, "--vq", files.vq] if vq else []
        assert files.export_gpt(*parts) == 0

    def attach(self, *arguments: object) -> int:
        words = ["--model", self.model, "--from", self.source, "--name", "small", *arguments]
        return main(["draft-model", *map(str, words)])

    def manifest(self, bundle: Path) -> dict[str, Any]:
        return json.loads((bundle / "manifest.json").read_text())

    def edit(self, bundle: Path, change: Edit) -> None:
        manifest = self.manifest(bundle)
        change(manifest)
        (bundle / "manifest.json").write_text(json.dumps(manifest))


@pytest.fixture
def pair(tmp_path: Path, spiece: Path) -> Pair:
    return Pair(tmp_path, spiece)


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_target_and_its_records_become_a_drafter(pair: Pair) -> None:
    before = pair.manifest(pair.model)
    assert pair.attach() == 0
    manifest, theirs = pair.manifest(pair.model), pair.manifest(pair.source)
    assert manifest["drafters"]["small"] == {
        "file": "drafter-small.pt", "dtype": "float32", "kind": "model",
        "layers": 1, "kv_heads": 1, "head_dim": 8, "max_length": theirs["cache"]["max_length"],
    }  # fmt: skip
    for key in before.keys() - {"drafters", "files", "golden"}:
        assert manifest[key] == before[key]
    archive = (pair.source / "target.pt").read_bytes()
    assert (pair.model / "drafter-small.pt").read_bytes() == archive
    own = [r for r in manifest["golden"]["records"] if r["module"] == "small"]
    expected = [r for r in theirs["golden"]["records"] if r["module"] == "target"]
    assert [r["method"] for r in own] == [r["method"] for r in expected]
    assert {"embed_condition", "embed_unconditional", "forward"} <= {r["method"] for r in own}
    golden = load_file(pair.model / "golden.safetensors")
    for record in manifest["golden"]["records"]:
        for name in (*record["inputs"], *record["outputs"], *record.get("mutated", [])):
            assert name in golden


def test_a_drafter_is_replaced_only_where_that_is_asked_for(
    pair: Pair, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pair.attach() == 0
    first = content(pair.model)
    assert pair.attach() == 7
    assert "has small already; give --overwrite" in capsys.readouterr().err
    assert content(pair.model) == first
    assert pair.attach("--overwrite") == 0
    assert content(pair.model) == first


def test_a_target_without_other_parts_will_do(pair: Pair, tmp_path: Path) -> None:
    pair.source = tmp_path / "alone"
    pair.make(pair.source, SMALL, None)
    assert pair.attach() == 0


def other_codes(pair: Pair) -> None:
    shutil.rmtree(pair.source)
    vq = {name: tensor + 1 for name, tensor in pair.vq.items()}
    shutil.rmtree(pair.folder / "files-source")
    pair.make(pair.source, SMALL, vq)


def other_features(pair: Pair) -> None:
    shutil.rmtree(pair.source)
    shutil.rmtree(pair.folder / "files-source")
    pair.make(pair.source, SMALL, pair.vq, T5Encoder(T5_SHAPE).state_dict())


def editing(change: Edit) -> Callable[[Pair], None]:
    return lambda pair: pair.edit(pair.source, change)


def damaged(pair: Pair) -> None:
    target = pair.source / "target.pt"
    target.write_bytes(target.read_bytes()[:-1])


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (other_codes, 4, "image_decoder: got other codes than in"),
        (other_features, 4, "text_encoder: got other features than in"),
        (editing(lambda m: m["tokens"].update(codebook_size=39)), 4, "tokens.codebook_size: got 39"),
        (editing(lambda m: m["tokens"].update(vocabulary=41)), 4, "tokens.vocabulary: got 41"),
        (editing(lambda m: m["grids"][0].update(row_end=[3])), 4, "grids: got"),
        (editing(lambda m: m["prompt"].update(length=5)), 4, "prompt.length: got 5"),
        (editing(lambda m: m["prompt"].update(align="start")), 4, "prompt.align: got start"),
        (editing(lambda m: m["tokenizer"].update(cleaning="lower")), 4, "tokenizer: got another"),
        (editing(lambda m: m["cache"].update(max_length=21)), 4, "cache.max_length: got 21"),
        (editing(lambda m: m["modules"].pop("target")), 4, "no target"),
        (damaged, 4, "changed or damaged"),
        (lambda pair: shutil.rmtree(pair.source), 4, "no such file"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_in_one_line(
    pair: Pair, change: Callable[[Pair], None], code: int, words: str,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    change(pair)
    capsys.readouterr()
    before = content(pair.model)
    assert pair.attach() == code
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1 and words in text
    assert content(pair.model) == before


def test_names_of_modules_are_refused(pair: Pair, capsys: pytest.CaptureFixture[str]) -> None:
    assert pair.attach("--name", "target") == 2
    assert "--name target" in capsys.readouterr().err
