"""The SimpleAR exporter: containers, what a bundle holds, what is refused."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import export_run
import pytest
import torch
from simplear_files import (
    DECODER,
    FILES,
    SHAPE,
    TEXT_IDS,
    Files,
    State,
    decoder_state,
    random_state,
    save_decoder,
    save_model,
)

from models.archive import archived_tensor
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.image_decoders.cosmos import load_cosmos
from models.export.settings import Settings
from models.export.simplear.bundle import target_entries
from models.export.simplear.weights import read_folder
from models.simplear.config import ImageIds


@pytest.fixture(scope="module")
def state() -> State:
    return random_state(SHAPE)


@pytest.fixture
def files(tmp_path: Path, state: State) -> Files:
    return Files(tmp_path, state)


@pytest.mark.parametrize("container", ["safetensors", "bin", "shards"])
@pytest.mark.parametrize("tied", [True, False])
def test_containers(tmp_path: Path, container: str, tied: bool) -> None:
    state = random_state(SHAPE, tied)
    weights = read_folder(save_model(tmp_path / "model", SHAPE, state, container, tied))
    assert weights.config == SHAPE
    for name, tensor in state.items():
        assert torch.equal(weights.read(name), tensor), name


def test_a_second_copy_of_a_tied_table(tmp_path: Path, state: State) -> None:
    """The table is the head whatever the copy holds, as the library ties them."""
    folder = save_model(tmp_path / "model", SHAPE, state, "bin")
    file = folder / "pytorch_model.bin"
    published = torch.load(file) | {"lm_head.weight": torch.zeros(SHAPE.vocab_size, SHAPE.dim)}
    torch.save(published, file)
    assert torch.equal(read_folder(folder).read("head"), state["embedding"])


def test_keys_that_are_null_or_left_out(tmp_path: Path) -> None:
    """null stands for as many key/value heads as heads; images depend on none of the others."""
    config = replace(SHAPE, n_kv_head=4)
    folder = save_model(tmp_path / "model", config, random_state(config), "bin")
    settings = json.loads((folder / "config.json").read_text())
    settings["num_key_value_heads"] = None
    del settings["use_sliding_window"]
    (folder / "config.json").write_text(json.dumps(settings))
    assert read_folder(folder).config == config


def test_whole_bundle(files: Files, state: State) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["family"] == "simplear" and "NVIDIA" in manifest["licence"]
    assert {role: entry["dtype"] for role, entry in manifest["modules"].items()} == {
        "target": "bfloat16", "image_decoder": "float32",
    }  # fmt: skip
    prompt = manifest["prompt"]
    assert prompt["text"] == "<|t2i|>A highly realistic image of {prompt}<|soi|>"
    assert prompt["negative_text"] == "<|t2i|>An image of {prompt}<|soi|>"
    assert prompt["negative_prompt"].startswith("aerial view, overexposed")
    assert (prompt["length"], prompt["align"], prompt["unconditional"]) == (48, "start", [])
    assert manifest["tokens"] == {"vocabulary": 515, "first_image_id": 475, "codebook_size": 40}
    assert manifest["target"] == {"hidden": 32, "features": 32, "head": 40}
    assert manifest["cache"] == {"layers": 3, "kv_heads": 2, "head_dim": 8, "max_length": 48 + 16}
    assert manifest["decoder"] == {"codebook_size": 40, "downsample": 16, "pixels": "round"}
    assert manifest["sampling"] == {
        "cfg_scale": 6.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "order": "ar",
    }  # fmt: skip
    head = archived_tensor(files.out / "target.pt", "head")
    assert torch.equal(head, state["embedding"][TEXT_IDS:].bfloat16())


def test_full_head(files: Files, state: State) -> None:
    """All ids are sampled; for the decoder ids of text are code 0."""
    assert files.export("--full-head", "--dtype", "fp32") == 0
    manifest = files.manifest()
    assert manifest["tokens"] == {"vocabulary": 515, "first_image_id": 0, "codebook_size": 515}
    assert manifest["decoder"]["codebook_size"] == manifest["target"]["head"] == 515
    head = archived_tensor(files.out / "target.pt", "head")
    assert torch.equal(head, state["embedding"])
    decoder = torch.jit.load(str(files.out / "image_decoder.pt"))
    decoder.prepare(torch.empty(0))
    text, code_0 = torch.tensor([[[3, TEXT_IDS - 1]]]), torch.full((1, 1, 2), TEXT_IDS)
    assert torch.equal(decoder.decode(text), decoder.decode(code_0))
    assert not torch.equal(decoder.decode(code_0 + 1), decoder.decode(code_0))


def test_parts(files: Files) -> None:
    """A decoder alone has all codes; a model alone has none of it."""
    assert files.export() == 0
    words = ["simplear", "--decoder", files.decoder, "--out", files.out, "--overwrite"]
    assert main([str(word) for word in words]) == 0
    assert files.manifest()["decoder"]["codebook_size"] == 64000
    assert set(files.manifest()["modules"]) == {"image_decoder"}
    words[1:3] = ["--model", files.model, "--config", files.config]
    assert main([str(word) for word in words]) == 0
    assert set(files.manifest()["modules"]) == {"target"}


def test_tokenizers_of_other_files(files: Files) -> None:
    """The slow tokenizer leaves no tokenizer.json."""
    (files.model / "tokenizer.json").unlink()
    for name in ("vocab.json", "merges.txt", "added_tokens.json"):
        (files.model / name).write_bytes((FILES / name).read_bytes())
    assert files.export() == 0
    assert files.manifest()["tokenizer"]["file"] == "tokenizer.json"
    assert (files.out / "tokenizer.json").is_file()


def test_a_repetition_penalty_is_reported(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.change("generation_config.json", "repetition_penalty", value=1.05)
    assert files.export() == 0
    output = capsys.readouterr()
    assert "a repetition penalty of 1.05, which is not applied" in output.out + output.err


def test_the_trained_sizes_by_default(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """For which this model has no positions."""
    files.config.write_text("{}")
    assert "images of 4096 codes behind prompts of 512 ids" in refused(files, capsys, 2)
    files.change("config.json", "max_position_embeddings", value=32768)
    assert files.export() == 0
    sizes = [(grid["width"], grid["height"]) for grid in files.manifest()["grids"]]
    assert sizes == [(1024, 1024), (768, 768), (512, 512), (256, 256)]


@pytest.mark.parametrize("all_ids", [False, True])
def test_published_models_generate_trained_sizes_alone(all_ids: bool) -> None:
    config = replace(SHAPE, vocab_size=TEXT_IDS + 64000, max_positions=32768)
    ids = ImageIds(TEXT_IDS, 64000, all_ids)
    grids = target_entries(config, ids, Settings([(256, 256)], 48))["grids"]
    assert [grid["width"] for grid in grids] == [256]
    expected = "size 512x256: the model was trained on 1024x1024, 768x768, 512x512, 256x256 alone"
    with pytest.raises(ExportError, match=expected):
        target_entries(config, ids, Settings([(512, 256)], 48))


refused = partial(export_run.refused, progress="reading weights")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("model_type", "llama", "model_type is llama, expected qwen2"),
        (
            "rope_scaling",
            {"factor": 2},
            'rope_scaling is {"factor": 2}, expected rotations of type default',
        ),
        ("use_sliding_window", True, "use_sliding_window is true, expected false"),
        ("hidden_act", "gelu", "hidden_act is gelu, expected silu"),
        (
            "num_attention_heads",
            5,
            "config.json: num_attention_heads, num_key_value_heads, hidden_size: 5 heads and 2 key/value "
            "heads do not fit a width of 32",
        ),
        ("num_attention_heads", "4", 'num_attention_heads is "4", expected a whole number'),
        ("head_dim", 16, "head_dim is 16, expected 8"),
        ("vocab_size", 514, "embed_tokens.weight has shape [515, 32], expected [514, 32]"),
        ("vocab_size", ..., "vocab_size is missing"),
        ("num_hidden_layers", 2, "unexpected keys: model.layers.2."),
        ("tie_word_embeddings", False, "missing keys: lm_head.weight"),
    ],
)
def test_configurations(
    files: Files, capsys: pytest.CaptureFixture[str], key: str, value: Any, message: str
) -> None:
    files.change("config.json", key, value=value)
    assert message in refused(files, capsys, 4)


def test_other_files(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.config.write_text('{"size": 1}')
    assert "unknown key size, expected sizes, text_length, sampling" in refused(files, capsys, 2)
    files.config.write_text('{"sizes": ["40x64"]}')
    assert "size 40x64: expected multiples of 16 pixels" in refused(files, capsys, 2)
    files.config.write_text('{"sizes": ["64x64"], "text_length": 48}')
    files.change("tokenizer.json", "added_tokens", value=[{"id": 446, "content": "<x>"}])
    assert "no token <|t2i|>, expected a tokenizer of SimpleAR" in refused(files, capsys, 4)
    files.change("tokenizer.json", "added_tokens", value=[{"id": 640, "content": "<x>"}])
    assert "<x> has id 640, expected 0 to 446" in refused(files, capsys, 4)
    (files.model / "tokenizer.json").unlink()
    assert "no tokenizer, expected tokenizer.json, or vocab.json" in refused(files, capsys, 4)
    (files.model / "model-00002-of-00002.safetensors").unlink()
    assert "1 of 2 shards are missing" in refused(files, capsys, 4)


def changed(**tensors: torch.Tensor | None) -> State:
    state = decoder_state(DECODER)
    for name, tensor in tensors.items():
        if tensor is None:
            del state[name]
        else:
            state[name] = tensor
    return state


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (
            changed(**{"decoder.norm_out.norm.bias": None}),
            "missing keys: decoder.norm_out.norm.bias",
        ),
        (changed(**{"decoder.extra": torch.zeros(1)}), "unexpected keys: decoder.extra"),
        (changed(**{"post_quant_conv.conv3d.bias": torch.zeros(5)}), "has shape [5], expected [6]"),
        ({"x": torch.zeros(1)}, "missing key decoder.up.0.*, expected a decoder.jit of Cosmos"),
    ],
    ids=["missing", "unexpected", "shape", "another"],
)
def test_decoders(
    files: Files, capsys: pytest.CaptureFixture[str], tensors: State, message: str
) -> None:
    save_decoder(files.decoder, tensors)
    assert message in refused(files, capsys, 4)


def test_files_that_are_no_decoder(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    data = files.decoder.read_bytes()
    files.decoder.write_bytes(data[: len(data) // 2])
    assert "damaged or no checkpoint" in refused(files, capsys, 4)
    torch.save({"x": torch.zeros(1)}, files.decoder)
    assert "got a checkpoint, expected a decoder.jit" in refused(files, capsys, 4)
    files.decoder.write_text("<html>")
    assert "got an HTML page" in refused(files, capsys, 4)
    files.decoder.unlink()
    assert "decoder.jit: no such file" in refused(files, capsys, 4)


def test_no_code_of_a_decoder_is_run(files: Files, tmp_path: Path) -> None:
    """Only its tensors are read: the program of the archive is never built."""
    damaged = tmp_path / "no code.jit"
    with zipfile.ZipFile(files.decoder) as archive, zipfile.ZipFile(damaged, "w") as output:
        for name in archive.namelist():
            if "/code/" not in name:
                output.writestr(zipfile.ZipInfo(name), archive.read(name))
    with pytest.raises(RuntimeError):
        torch.jit.load(str(damaged))
    assert load_cosmos(damaged).config.widths == DECODER.widths
