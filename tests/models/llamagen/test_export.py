"""The LlamaGen exporter: official containers, what a bundle holds."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from llamagen_files import VQ_SHAPE, Files
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from models.llamagen.config import GPTConfig
from models.llamagen.gpt import GPT
from models.llamagen.vq import VQModel


def test_whole_bundle(files: Files, spiece: Path) -> None:
    decoder = {"decoder.block.0.layer.0.SelfAttention.q.weight": torch.zeros(2, 2)}
    files.save_t5(spiece, **files.states["t5"], **decoder, **{"lm_head.weight": torch.zeros(2)})
    assert files.export_gpt("--vq", files.vq, "--t5", files.t5, "--licence", "MIT") == 0
    manifest = files.manifest()
    assert manifest["family"] == "llamagen-t2i" and manifest["licence"] == "MIT"
    assert set(manifest["modules"]) == {"target", "text_encoder", "image_decoder"}
    assert {m["dtype"] for m in manifest["modules"].values()} == {"float32"}
    assert manifest["prompt"] == {
        "kind": "text_features", "length": 6, "align": "end", "features": 16
    }  # fmt: skip
    grid = manifest["grids"][0]
    assert (grid["width"], grid["rows"], grid["columns"]) == (8, 4, 4)
    assert manifest["cache"] == {"layers": 2, "kv_heads": 2, "head_dim": 16, "max_length": 22}
    assert manifest["tokenizer"]["extra_ids"] == 7 and manifest["tokenizer"]["max_length"] == 6
    on_disk = {path.name for path in files.out.iterdir()} - {"manifest.json"}
    assert set(manifest["files"]) == on_disk
    recorded = {(r["module"], r["method"]) for r in manifest["golden"]["records"]}
    target = ("embed_condition", "embed_unconditional", "embed", "forward", "logits")
    assert recorded == {("target", m) for m in target} | {
        ("text_encoder", "encode"),
        ("image_decoder", "decode"),
    }


def test_encoder_of_the_image_tokenizer(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """The bundle has it where the checkpoint has."""
    torch.save({"model": VQModel(replace(VQ_SHAPE, num_res_blocks=1)).state_dict()}, files.vq)
    words = ("--vq", files.vq, "--dtype")
    assert files.export_gpt(*words, "bf16,image_decoder=fp16,image_encoder=fp32") == 0
    manifest, tensors = files.manifest(), load_file(files.out / "golden.safetensors")
    dtypes = {role: module["dtype"] for role, module in manifest["modules"].items()}
    assert dtypes == {
        "target": "bfloat16", "image_decoder": "float16", "image_encoder": "float32"
    }  # fmt: skip
    encoder = torch.jit.load(files.out / "image_encoder.pt")
    encoder.prepare(torch.empty(0))
    records = [r for r in manifest["golden"]["records"] if r["module"] == "image_encoder"]
    assert [record["method"] for record in records] == ["latents", "nearest"]
    for record in records:
        (given,), (name,) = record["inputs"], record["outputs"]
        found = getattr(encoder, record["method"])(tensors[given])
        assert found.shape[-2:] == (2, 2)
        torch.testing.assert_close(found, tensors[name], atol=record["tolerance"], rtol=0)
    assert files.export_gpt(*words, "image_encoder=int8", "--overwrite") == 2
    assert "an image encoder has no products to round" in capsys.readouterr().err


def test_archives_hold_code_and_tensors_only(files: Files) -> None:
    assert files.export_gpt() == 0
    reader = torch._C.PyTorchFileReader(str(files.out / "target.pt"))
    records = reader.get_all_records()
    assert not [name for name in records if name.endswith(".debug_pkl")]
    code = b"".join(reader.get_record(name) for name in records if name.startswith("code/"))
    assert b"lamplighter" in code and str(files.folder).encode() not in code


def test_recorded_calls_can_be_replayed(files: Files) -> None:
    assert files.export_gpt("--dtype", "bf16") == 0
    assert files.manifest()["modules"]["target"]["dtype"] == "bfloat16"
    files.replay_target()


@pytest.mark.parametrize("container", ["model", "module", "state_dict", None])
def test_containers(files: Files, container: str | None) -> None:
    files.save_gpt(container)
    assert files.export_gpt() == 0


def test_training_containers_and_stale_tensors(files: Files) -> None:
    state = {
        **files.states["gpt"],
        "freqs_cis": torch.zeros(6 + 16, 8, 2),
        "layers.0.attention.kv_cache.k_cache": torch.zeros(1),
    }
    args = Namespace(image_size=64, downsample_size=16)
    torch.save({"model": state, "optimizer": {}, "steps": 3, "args": args}, files.gpt)
    files.write_config({"gpt": {"n_head": 2}})  # the grid comes from the training command line
    assert files.export_gpt() == 0
    assert files.manifest()["grids"][0]["rows"] == 4


def test_existing_bundle_is_kept_without_overwrite(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    assert files.export_gpt() == 0
    before = (files.out / "manifest.json").read_bytes()
    assert files.export_gpt("--name", "other") == 7
    assert "--overwrite" in capsys.readouterr().err
    assert (files.out / "manifest.json").read_bytes() == before
    assert files.export_gpt("--name", "other", "--overwrite") == 0
    assert files.manifest()["name"] == "other"
    assert not [path for path in files.folder.iterdir() if path.name.startswith(".")]


def test_equal_exports_are_equal_bytes(files: Files) -> None:
    assert files.export_gpt() == 0
    first = (files.out / "manifest.json").read_bytes()
    assert files.export_gpt("--overwrite") == 0
    assert (files.out / "manifest.json").read_bytes() == first


def test_storage_precision_by_part(files: Files) -> None:
    arguments = ("--vq", files.vq, "--dtype", "bf16,image_decoder=fp16")
    assert files.export_gpt(*arguments) == 0
    found = {role: m["dtype"] for role, m in files.manifest()["modules"].items()}
    assert found == {"target": "bfloat16", "image_decoder": "float16"}
    with safe_open(files.out / "golden.safetensors", "pt") as golden:
        names = list(golden.keys())
        kinds = {golden.get_tensor(name).dtype for name in names}
    assert kinds == {torch.float32, torch.int64}


def test_class_conditional(files: Files) -> None:
    config = GPTConfig(
        dim=32, n_layer=1, n_head=2, n_kv_head=1, ffn_dim=48, vocab_size=40, grid=4,
        cls_token_num=1, num_classes=9, model_type="c2i",
    )  # fmt: skip
    torch.save(GPT(config).state_dict(), files.gpt)
    assert files.export_gpt() == 0
    manifest = files.manifest()
    assert manifest["family"] == "llamagen-c2i"
    assert manifest["prompt"] == {"kind": "class", "length": 1, "align": "end", "classes": 9}
    assert manifest["cache"]["kv_heads"] == 1


@pytest.mark.parametrize("form", ["safetensors", "sharded", "bin", "alias"])
def test_text_encoder_folders(files: Files, spiece: Path, form: str) -> None:
    files.save_t5(spiece if form != "sharded" else None)
    state = dict(files.states["t5"])
    if form == "bin":
        torch.save(state, files.t5 / "pytorch_model.bin")
    elif form == "sharded":
        names = sorted(state)
        shards = {"model-1.safetensors": names[::2], "model-2.safetensors": names[1::2]}
        for file, keys in shards.items():
            save_file({key: state[key] for key in keys}, files.t5 / file)
        index = {"weight_map": {key: file for file, keys in shards.items() for key in keys}}
        (files.t5 / "model.safetensors.index.json").write_text(json.dumps(index))
    else:
        if form == "alias":
            state["encoder.embed_tokens.weight"] = state.pop("shared.weight")
        save_file(state, files.t5 / "model.safetensors")
    assert files.export("--t5", files.t5) == 0
    manifest = files.manifest()
    assert set(manifest["modules"]) == {"text_encoder"}
    assert ("tokenizer" in manifest) == (form != "sharded")


def test_converted_folder_gives_the_same_target(files: Files) -> None:
    assert files.export_gpt() == 0
    official = files.out.rename(files.folder / "official")
    names = {
        "tok_embeddings.": "model.embed_tokens.", "output.": "lm_head.", "norm.": "model.norm.",
        "cls_embedding.": "model.cls_embedding.", "layers.": "model.layers.",
        "attention.wo": "self_attn.o_proj", "feed_forward.w1": "mlp.gate_proj",
        "feed_forward.w3": "mlp.up_proj", "feed_forward.w2": "mlp.down_proj",
        "attention_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
    }  # fmt: skip
    state = {}
    for key, tensor in files.states["gpt"].items():
        for old, new in names.items():
            key = (
                new + key[len(old) :] if key.startswith(old) else key.replace("." + old, "." + new)
            )
        if "wqkv" in key:
            for part, rows in zip("qkv", tensor.chunk(3), strict=True):
                state[key.replace("attention.wqkv", f"self_attn.{part}_proj")] = rows.clone()
        else:
            state[key] = tensor
    folder = files.folder / "converted"
    folder.mkdir()
    save_file(state, folder / "model.safetensors")
    settings = {"num_attention_heads": 2, "block_size": 16, "rms_norm_eps": 1e-6}
    (folder / "config.json").write_text(json.dumps(settings))
    assert files.export("--gpt", folder) == 0
    tensors = [load_file(path / "golden.safetensors") for path in (official, files.out)]
    assert tensors[0].keys() == tensors[1].keys()
    assert all(torch.equal(tensors[0][name], tensors[1][name]) for name in tensors[0])


def test_the_distance_that_old_files_leave_out_is_said(
    files: Files, spiece: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files.save_t5(spiece, **files.states["t5"])
    key, words = "relative_attention_max_distance", ("--t5", files.t5)
    assert files.export_gpt(*words) == 0
    assert key not in capsys.readouterr().out
    config = json.loads((files.t5 / "config.json").read_text())
    del config[key]
    (files.t5 / "config.json").write_text(json.dumps(config))
    assert files.export_gpt(*words, "--overwrite") == 0
    assert (
        f"config.json: leaves out {key}, takes 128 as the library does" in capsys.readouterr().out
    )
