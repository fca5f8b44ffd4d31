"""The LlamaGen exporter: official containers, configurations, errors, what a bundle holds."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from models.export.__main__ import main
from models.llamagen.config import GPTConfig, T5Config, VQConfig
from models.llamagen.gpt import GPT
from models.llamagen.t5 import T5Encoder
from models.llamagen.vq import VQModel

GPT_SHAPE = GPTConfig(
    dim=32, n_layer=2, n_head=2, ffn_dim=48, vocab_size=40, grid=4, cls_token_num=6, caption_dim=16
)
VQ_SHAPE = VQConfig(
    ch=32, encoder_ch_mult=(1, 1), decoder_ch_mult=(1, 1), num_res_blocks=0, z_channels=32,
    codebook_size=40,
)  # fmt: skip
T5_SHAPE = T5Config(d_model=16, d_kv=8, num_heads=2, d_ff=24, num_layers=2, vocab_size=160)
CONFIG: dict[str, Any] = {"gpt": {"n_head": 2, "grid": 4}}


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


class Files:
    """Checkpoints in a folder and a call of the exporter."""

    def __init__(self, folder: Path, states: dict[str, dict[str, torch.Tensor]]) -> None:
        self.folder, self.states = folder, states
        self.gpt, self.vq, self.t5 = folder / "gpt.pt", folder / "vq.pt", folder / "t5"
        self.config, self.out = folder / "config.json", folder / "bundle"
        self.save_gpt()
        torch.save({"model": states["vq"]}, self.vq)
        self.write_config(CONFIG)

    def save_gpt(self, container: str | None = "model", **more: Any) -> None:
        state = dict(self.states["gpt"])
        torch.save({container: state, **more} if container else {**state, **more}, self.gpt)

    def write_config(self, value: Any) -> None:
        self.config.write_text(json.dumps(value))

    def save_t5(self, spiece: Path | None, **tensors: torch.Tensor) -> None:
        self.t5.mkdir()
        if spiece:
            (self.t5 / "spiece.model").write_bytes(spiece.read_bytes())
        settings = {**T5_SHAPE.__dict__, "feed_forward_proj": "gated-gelu"}
        (self.t5 / "config.json").write_text(json.dumps(settings))
        (self.t5 / "tokenizer_config.json").write_text('{"extra_ids": 7}')
        if tensors:
            save_file(tensors, self.t5 / "model.safetensors")

    def export(self, *arguments: object) -> int:
        return main(["llamagen", "--out", str(self.out), *map(str, arguments)])

    def export_gpt(self, *arguments: object) -> int:
        return self.export("--gpt", self.gpt, "--config", self.config, *arguments)

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.out / "manifest.json").read_text())


@pytest.fixture
def files(tmp_path: Path, states: dict[str, dict[str, torch.Tensor]]) -> Files:
    return Files(tmp_path, states)


def failure(files: Files, capsys: pytest.CaptureFixture[str], code: int, *arguments: object) -> str:
    """The one error line of an export that must fail and leave nothing behind."""
    assert files.export(*arguments) == code
    text = capsys.readouterr().err
    assert text.startswith("error: ") and text.count("\n") == 1
    assert not list(files.folder.glob("*bundle*"))
    return text


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


def test_archives_hold_code_and_tensors_only(files: Files) -> None:
    assert files.export_gpt() == 0
    reader = torch._C.PyTorchFileReader(str(files.out / "target.pt"))
    records = reader.get_all_records()
    assert not [name for name in records if name.endswith(".debug_pkl")]
    code = b"".join(reader.get_record(name) for name in records if name.startswith("code/"))
    assert b"lamplighter" in code and str(files.folder).encode() not in code


def test_recorded_calls_can_be_replayed(files: Files) -> None:
    assert files.export_gpt("--dtype", "bf16") == 0
    manifest, tensors = files.manifest(), load_file(files.out / "golden.safetensors")
    assert manifest["modules"]["target"]["dtype"] == "bfloat16"
    target = torch.jit.load(files.out / "target.pt")
    target.prepare(torch.empty(0))
    changed = 0
    for record in manifest["golden"]["records"]:
        inputs = [tensors[name].clone() for name in record["inputs"]]
        result = getattr(target, record["method"])(*inputs)
        results = result if isinstance(result, tuple) else (result,)
        for name, tensor in zip(record["outputs"], results, strict=True):
            torch.testing.assert_close(tensor, tensors[name], atol=record["tolerance"], rtol=0)
        for name in record.get("mutated", []):
            torch.testing.assert_close(inputs[-1], tensors[name], atol=record["tolerance"], rtol=0)
            changed += not torch.equal(tensors[name], tensors[record["inputs"][-1]])
    assert changed == 1


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


@pytest.mark.parametrize(
    ("config", "arguments", "code", "message"),
    [
        ({}, [], 2, "expected blocks gpt, vq or t5"),
        ({"gpt": {}}, [], 3, "dim 32 with 2 layers is no published size"),
        ({"gpt": {"n_head": 2}}, [], 2, "give --image-size"),
        ({"gpt": {"n_head": 3, "grid": 4}}, [], 3, "n_head 3 does not fit"),
        ({"gpt": {"n_head": 2, "grid": 4, "dim": 64}}, [], 3, "dim is 32 in the checkpoint"),
        ({"gpt": {"n_head": 2, "grid": 4, "depth": 2}}, [], 2, "unknown configuration key depth"),
        ({"gpt": {"n_head": 2, "grid": [4, 5]}}, [], 2, "not square"),
        ({"gpt": {"n_head": 2, "grid": 4}, "x": {}}, [], 2, "unknown key x"),
        ({**CONFIG, "sampling": {"top_k": "all"}}, [], 3, "manifest $.sampling.top_k: 'all'"),
        ({**CONFIG, "sampling": {"topk": 1}}, [], 3, "manifest $.sampling: "),
        (CONFIG, ["--image-size", "256"], 3, "grid disagrees"),
        (CONFIG, ["--stage", "2"], 3, "--image-size (512 px) says 32, grid says 4"),
        (CONFIG, ["--size", "XL"], 3, "size XL has dim 1280"),
        (CONFIG, ["--dtype", "int8"], 2, "--dtype int8"),
        (CONFIG, ["--dtype", "vq=fp16"], 2, "--dtype vq=fp16"),
    ],
)
def test_wrong_configurations(
    files: Files, capsys: pytest.CaptureFixture[str], config: Any, arguments: list[str], code: int,
    message: str,
) -> None:  # fmt: skip
    files.write_config(config)
    options = ("--gpt", files.gpt, "--config", files.config, *arguments)
    assert message in failure(files, capsys, code, *options)


def test_published_file_name_fixes_the_grid(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    stage2 = files.gpt.rename(files.folder / "t2i_XL_stage2_512.pt")
    text = failure(files, capsys, 3, "--gpt", stage2, "--config", files.config)
    assert "the published file name (512 px) says 32, grid says 4" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("drop", "missing keys: layers.1.feed_forward.w2.weight"),
        ("add", "unexpected keys: extra.weight"),
        ("shape", "layers.1.ffn_norm.weight has shape [31], expected [32]"),
        ("integer", "norm.weight is torch.int64"),
    ],
)
def test_wrong_tensors(
    files: Files, capsys: pytest.CaptureFixture[str], change: str, message: str
) -> None:
    state = dict(files.states["gpt"])
    if change == "drop":
        del state["layers.1.feed_forward.w2.weight"]
    elif change == "add":
        state["extra.weight"] = torch.zeros(1)
    elif change == "shape":
        state["layers.1.ffn_norm.weight"] = torch.zeros(31)
    else:
        state["norm.weight"] = torch.zeros(32, dtype=torch.int64)
    torch.save({"model": state}, files.gpt)
    options = ("--gpt", files.gpt, "--config", files.config)
    assert message in failure(files, capsys, 3, *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<!DOCTYPE html><html>", "got an HTML page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS pointer"),
        (b"", "damaged or no checkpoint"),
        (b"PK\x03\x04 truncated", "damaged or no checkpoint"),
        (None, "no such file"),
    ],
)
def test_files_that_are_no_checkpoint(
    files: Files, capsys: pytest.CaptureFixture[str], content: bytes | None, message: str
) -> None:
    files.vq.unlink()
    if content is not None:
        files.vq.write_bytes(content)
    assert message in failure(files, capsys, 3, "--vq", files.vq)


def test_checkpoint_code_is_not_run(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    class Payload:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (Path.touch, (files.folder / "ran",))  # type: ignore[return-value]

    torch.save({"model": Payload()}, files.vq)
    failure(files, capsys, 3, "--vq", files.vq)
    assert not (files.folder / "ran").exists()


def test_parts_that_do_not_fit(
    files: Files, capsys: pytest.CaptureFixture[str], spiece: Path
) -> None:
    state = dict(files.states["vq"])
    state["quantize.embedding.weight"] = torch.randn(41, 8)
    torch.save({"model": state}, files.vq)
    options = ("--gpt", files.gpt, "--config", files.config)
    assert "41 codes" in failure(files, capsys, 3, *options, "--vq", files.vq)
    files.save_t5(spiece, **files.states["t5"])
    narrow = json.loads((files.t5 / "config.json").read_text())
    narrow["num_heads"] = 3
    (files.t5 / "config.json").write_text(json.dumps(narrow))
    assert "expected [24, 16]" in failure(files, capsys, 3, "--t5", files.t5)


def test_nothing_to_export(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to export" in failure(files, capsys, 2)


def test_unwritable_output(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.out = files.gpt / "bundle"  # below a file
    assert files.export("--vq", files.vq) == 7
    assert capsys.readouterr().err.count("\n") == 1


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
