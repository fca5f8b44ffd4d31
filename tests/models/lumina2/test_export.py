"""The Lumina-mGPT 2.0 exporter: containers, what a bundle holds, what is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import save_container
from safetensors.torch import load_file, save_file

from models.export.__main__ import main
from models.export.chameleon.weights import read_weights
from models.export.image_decoders.movqgan import load_movqgan, movqgan_parts
from models.export.lumina2.bundle import bos_piece, read_names

CASES = Path(__file__).parents[2] / "golden/cases/lumina2"
MODEL = CASES / "lumina2_target_tiny"
VQ = CASES / "lumina2_movq_f8" / "movqgan_270M.ckpt"
NAMES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


class Files:
    """A copy of the published files, to be changed."""

    def __init__(self, folder: Path) -> None:
        self.model, self.out = folder / "model", folder / "bundle"
        self.model.mkdir()
        for name in NAMES:
            shutil.copyfile(MODEL / name, self.model / name)

    def json(self, name: str) -> dict[str, Any]:
        return json.loads((self.model / name).read_text(encoding="utf-8"))

    def change(self, name: str, **values: Any) -> None:
        (self.model / name).write_text(json.dumps({**self.json(name), **values}), encoding="utf-8")

    def tokens(self) -> list[dict[str, Any]]:
        return list(self.json("tokenizer.json")["added_tokens"])

    def export(self, *words: str) -> int:
        command = ["lumina-mgpt-2", "--model", str(self.model), "--out", str(self.out)]
        return main([*command, "--sizes", "96x64", "--text-length", "40", *words])

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.out / "manifest.json").read_text(encoding="utf-8"))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export("--vq", str(VQ), "--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["family"] == "lumina-mgpt-2"
    assert {role: entry["dtype"] for role, entry in manifest["modules"].items()} == {
        "target": "bfloat16", "image_decoder": "float32", "image_encoder": "float32",
    }  # fmt: skip
    assert manifest["prompt"] == {
        "kind": "tokens", "length": 44, "align": "start", "prefix": [428],
        "text": "Generate an image of {width}x{height} according to the following prompt:\n"
        "{prompt}<reserved08706>",
        "suffix": [], "unconditional": [],
    }  # fmt: skip
    assert manifest["tokens"] == {"vocabulary": 621, "first_image_id": 492, "codebook_size": 128}
    assert manifest["target"] == {"hidden": 64, "features": 64, "head": 128}
    assert manifest["cache"]["max_length"] == 44 + 8 * 12 + 7
    assert manifest["grids"] == [
        {"width": 96, "height": 64, "rows": 8, "columns": 12, "before": [448, 456, 457],
         "row_end": [453], "after": [449]}
    ]  # fmt: skip
    assert manifest["decoder"] == {"codebook_size": 128, "downsample": 8, "pixels": "nearest"}
    assert manifest["sampling"] == {
        "cfg_scale": 4.0, "temperature": 1.0, "top_k": 4096, "top_p": 1.0, "order": "ar",
        "schedule": {"kind": "decay", "floor": 4.0},
    }  # fmt: skip
    assert manifest["tokenizer"] == {"kind": "bpe", "file": "tokenizer.json", "max_length": 40}
    assert {r["module"] for r in manifest["golden"]["records"]} == set(manifest["modules"])


def test_official_schedule(files: Files) -> None:
    assert files.export("--official-schedule") == 0
    assert files.manifest()["sampling"]["schedule"] == {
        "kind": "decay", "floor": 4.0, "share": 0.25, "raise": True,
    }  # fmt: skip


@pytest.mark.parametrize("container", ["shards", "bin", "bin shards"])
def test_containers(files: Files, container: str) -> None:
    expected = read_weights(files.model)
    state = load_file(files.model / "model.safetensors")
    (files.model / "model.safetensors").unlink()
    save_container(files.model, state, container)
    found = read_weights(files.model)
    for part in ("embedding", "layers.1.wqkv", "layers.0.qk_norm_bias", "head"):
        assert torch.equal(found.read(part), expected.read(part)), part


def test_a_tied_head_is_the_embedding(files: Files) -> None:
    state = load_file(files.model / "model.safetensors")
    del state["lm_head.weight"]
    save_file(state, files.model / "model.safetensors")
    assert files.export() == 4
    files.change("config.json", tie_word_embeddings=True)
    weights = read_weights(files.model)
    assert torch.equal(weights.read("head"), weights.read("embedding"))
    assert files.export() == 0


def test_a_vq_file_needs_no_encoder(tmp_path: Path) -> None:
    state = torch.load(VQ, weights_only=True)
    unused = ("encoder.", "quant_conv.")
    torch.save({k: v for k, v in state.items() if not k.startswith(unused)}, tmp_path / "vq.ckpt")
    found, expected = load_movqgan(tmp_path / "vq.ckpt"), load_movqgan(VQ)
    assert expected.has_encoder and not found.has_encoder
    assert set(movqgan_parts(found)) == {"image_decoder"}
    whole = expected.state_dict()
    for name, tensor in found.state_dict().items():
        assert torch.equal(tensor, whole[name]), name


def test_ids_are_looked_up_by_name(files: Files) -> None:
    """Ids of codes, sizes and the rest are where the tokenizer has them."""
    tokens = files.tokens()
    for token in tokens:
        if token["content"] in ("<reserved08802>", "<reserved08803>"):
            token["id"] = 457 + 456 - token["id"]
    tokenizer = files.json("tokenizer.json") | {"added_tokens": tokens}
    (files.model / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    assert files.export() == 0
    ids = {token["content"]: token["id"] for token in tokens}
    expected = [ids["<racm3:break>"], ids["<reserved08802>"], ids["<reserved08803>"]]
    assert files.manifest()["grids"][0]["before"] == expected


def test_bos_is_eos_where_there_is_none(files: Files, tmp_path: Path) -> None:
    file = files.model / "tokenizer_config.json"
    assert bos_piece(file) == "<|im_end|>"
    files.change("tokenizer_config.json", eos_token={"content": "<|endoftext|>"})
    assert bos_piece(tmp_path / "none.json", file) == "<|endoftext|>"
    files.change("tokenizer_config.json", bos_token="<|im_start|>")
    assert bos_piece(file) == "<|im_start|>"
    assert read_names(files.model, files.model / "tokenizer.json", 621).bos == 427


def test_names_may_come_from_the_config(files: Files) -> None:
    """vocabulary_map has those that the tokenizer leaves out."""
    tokens = [token for token in files.tokens() if not token["content"].startswith("<MOVQGAN")]
    files.change("tokenizer.json", added_tokens=tokens)
    names = read_names(files.model, files.model / "tokenizer.json", 621)
    assert (names.first_image_id, names.codes) == (492, 128)


def test_positions_and_sizes(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.change("config.json", max_position_embeddings=146)
    assert files.export() == 2
    assert "96x64 takes 103 positions and its prompt 44, the model has 146" in error(capsys)
    files.change("config.json", max_position_embeddings=147)
    assert files.export() == 0
    assert files.export("--overwrite", "--sizes", "100x64") == 2
    assert "100x64: expected multiples of 32 pixels" in error(capsys)
    assert files.export("--overwrite", "--sizes", "1600x64") == 2
    assert "1600x64: the tokenizer has no token <reserved08850>" in error(capsys)
    assert files.manifest()["grids"][0]["width"] == 96  # what was there stays


def error(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_refusals(files: Files, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = torch.load(VQ, weights_only=True)
    for name in [name for name in state if ".conv_y." in name]:
        del state[name]
    torch.save(state, tmp_path / "plain.ckpt")
    assert files.export("--vq", str(tmp_path / "plain.ckpt")) == 4
    assert "norms do not follow the latent" in error(capsys)
    assert files.export("--text-length", "0") == 2
    assert files.export("--tokenizer", str(files.model / "none.json")) == 4
    files.change("config.json", vocab_size=400)
    assert files.export() == 4
    shutil.copyfile(MODEL / "config.json", files.model / "config.json")
    tokens = [token for token in files.tokens() if token["content"] != "<MOVQGAN00007>"]
    files.change("tokenizer.json", added_tokens=tokens)
    files.change("config.json", vocabulary_map={})
    assert files.export() == 4
    assert "code 7 has id None, expected 499" in error(capsys)
    assert not files.out.exists() and not list(tmp_path.glob(".bundle*"))
