"""The Janus-Pro exporter: containers, what a bundle holds, what is refused."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import refused
from janus_files import SHAPE, VQ_SHAPE, Files, State, random_state, save_model

from models.eagle.drafter import Drafter
from models.eagle.features import load_module, load_target
from models.eagle.train import drafter_config
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.drafters.attach import target_head
from models.export.janus.bundle import PUBLISHED, target_entries
from models.export.janus.weights import read_folder
from models.export.settings import Settings
from models.heads.flash import Flash, FlashConfig
from models.transformer.head import head_of, in_fp32, logits_of


@pytest.fixture(scope="module")
def state() -> State:
    return random_state(SHAPE)


@pytest.fixture
def files(tmp_path: Path, state: State) -> Files:
    return Files(tmp_path, state)


@pytest.mark.parametrize("container", ["safetensors", "bin", "bin shards"])
def test_containers(tmp_path: Path, state: State, container: str) -> None:
    folder = read_folder(save_model(tmp_path / "model", SHAPE, state, container))
    assert folder.weights.config == SHAPE
    for name, tensor in state.items():
        assert torch.equal(folder.weights.read(name), tensor), name
    assert folder.vq.config.decoder_ch_mult == VQ_SHAPE.decoder_ch_mult


def test_whole_bundle(files: Files) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest = files.manifest()
    assert manifest["family"] == "janus" and "DeepSeek" in manifest["licence"]
    assert {role: entry["dtype"] for role, entry in manifest["modules"].items()} == {
        "target": "bfloat16", "image_decoder": "float32", "image_encoder": "float32",
    }  # fmt: skip
    assert manifest["prompt"] == {
        "kind": "tokens", "length": 34, "align": "start", "prefix": [609],
        "text": "<|User|>: {prompt}\n\n<|Assistant|>:", "empty_text": "<|User|>:<|Assistant|>:",
        "strip": True, "suffix": [612], "unconditional": [609], "unconditional_pad": 611,
    }  # fmt: skip
    assert manifest["tokens"] == {"vocabulary": 680, "first_image_id": 640, "codebook_size": 40}
    assert manifest["target"] == {"hidden": 32, "features": 32, "head": 40, "head_layers": 2}
    assert manifest["cache"] == {"layers": 3, "kv_heads": 2, "head_dim": 8, "max_length": 34 + 16}
    assert manifest["decoder"] == {"codebook_size": 40, "downsample": 16, "pixels": "truncate"}
    assert manifest["sampling"] == {
        "cfg_scale": 5.0, "temperature": 1.0, "top_k": 0, "top_p": 1.0, "order": "ar",
    }  # fmt: skip
    assert manifest["tokenizer"] == {"kind": "bpe", "file": "tokenizer.json", "max_length": 32}
    assert {r["module"] for r in manifest["golden"]["records"]} == set(manifest["modules"])


def test_folders_without_an_encoder(files: Files) -> None:
    for path in files.model.glob("*.bin"):
        state = torch.load(path)
        kept = {k: v for k, v in state.items() if not k.startswith(ENCODER)}
        torch.save(kept, path)
    assert files.export() == 0
    assert set(files.manifest()["modules"]) == {"target", "image_decoder"}


def test_encoder_of_other_sizes(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    for path in files.model.glob("*.bin"):
        state = torch.load(path)
        deepest = "gen_vision_model.encoder.conv_blocks.4."
        torch.save({k: v for k, v in state.items() if not k.startswith(deepest)}, path)
    assert "the encoder has 4 levels, the decoder 5" in refused(files, capsys, 4)


def test_names_of_the_first_janus(files: Files) -> None:
    assert files.export("--roles", "User,Assistant") == 0
    assert files.manifest()["prompt"]["text"] == "User: {prompt}\n\nAssistant:"


def test_ids_are_looked_up_by_name(files: Files) -> None:
    """The published models give the tags other ids."""
    tokens = [{"id": 600 + k, "content": text, "single_word": False, "lstrip": False,
               "rstrip": False, "normalized": False, "special": True}
              for k, text in enumerate(("<begin_of_image>", "<｜▁pad▁｜>", "<｜begin▁of▁sentence｜>"))]  # fmt: skip
    files.change("tokenizer.json", "added_tokens", value=tokens)
    assert files.export() == 0
    prompt = files.manifest()["prompt"]
    assert prompt["prefix"] == [602] and prompt["suffix"] == [600]
    assert prompt["unconditional_pad"] == 601


def test_only_the_trained_size_by_default(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """384 pixels a side, for which this model has no positions."""
    files.config.write_text("{}")
    assert files.export() == 2
    assert "images of 576 codes behind prompts of 258 ids take 834" in capsys.readouterr().err


def test_published_models_generate_the_trained_size_alone() -> None:
    config = replace(SHAPE, codes=16384, max_positions=16384)
    entries = partial(target_entries, config, prompt={"length": 258}, downsample=16)
    assert [grid["width"] for grid in entries(PUBLISHED)["grids"]] == [384]
    with pytest.raises(ExportError, match="size 512x384: the model was trained on 384x384 alone"):
        entries(Settings([(384, 384), (512, 384)], 256))


LANGUAGE = "language_config"
ENCODER = ("gen_vision_model.encoder.", "gen_vision_model.quant_conv.")


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("model_type",), "llava", "model_type is llava, expected multi_modality"),
        (("gen_head_config",), ..., "no gen_head_config, expected a model that generates"),
        (("gen_aligner_config", "params", "projector_type"), "linear", "projector_type is linear, expected mlp_gelu"),
        (("gen_aligner_config", "cls"), "Other", "gen_aligner_config.cls is Other, expected MlpProjector"),
        (("gen_vision_config", "cls"), "VQ-8", "gen_vision_config.cls is VQ-8, expected VQ-16"),
        (("gen_vision_config", "params", "image_token_size"), 41, "image_token_size is 41, expected 40"),
        (("gen_head_config", "params", "n_embed"), 31, "gen_head_config.params.n_embed is 31, expected 32"),
        (("gen_head_config", "params"), 3, "gen_head_config.params is 3, expected an object"),
        ((LANGUAGE, "rope_scaling"), {"factor": 2}, 'language_config.rope_scaling is {"factor": 2}, expected rotations of type default'),
        ((LANGUAGE, "attention_bias"), True, "language_config.attention_bias is true, expected false"),
        ((LANGUAGE, "hidden_act"), "gelu", "language_config.hidden_act is gelu, expected silu"),
        ((LANGUAGE, "num_attention_heads"), 5, "language_config.hidden_size: 5 heads and 2 key/value heads do not fit a width of 32"),
        ((LANGUAGE, "num_attention_heads"), "4", 'num_attention_heads is "4", expected a whole number'),
        ((LANGUAGE, "head_dim"), 16, "language_config.head_dim is 16, expected 8"),
        ((LANGUAGE, "vocab_size"), 641, "embed_tokens.weight has shape [640, 32], expected [641, 32]"),
        ((LANGUAGE, "intermediate_size"), ..., "gate_proj.weight has shape [48, 32], expected [11008, 32]"),
        ((LANGUAGE, "num_hidden_layers"), 2, "unexpected keys: language_model.model.layers.2."),
        ((LANGUAGE,), ..., "language_config is missing, expected an object"),
    ],
)  # fmt: skip
def test_configurations(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    path: tuple[str, ...],
    value: Any,
    message: str,
) -> None:
    files.change("config.json", *path, value=value)
    assert message in refused(files, capsys, 4)


def test_other_files(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    assert "--roles: got 'User'" in refused(files, capsys, 2, "--roles", "User")
    files.config.write_text('{"size": 1}')
    assert "unknown key size, expected sizes, text_length, sampling" in refused(files, capsys, 2)
    files.config.write_text('{"sizes": ["40x64"]}')
    assert "size 40x64: expected multiples of 16 pixels" in refused(files, capsys, 2)
    files.change("processor_config.json", "sft_format", value="plain")
    assert "sft_format is plain, expected deepseek" in refused(files, capsys, 4)
    files.change("processor_config.json", "sft_format", value="deepseek")
    beyond = {"id": 640, "content": "<x>"}
    files.change("tokenizer.json", "added_tokens", value=[beyond])
    assert "<x> has id 640, the model embeds 0 to 639" in refused(files, capsys, 4)
    files.change("tokenizer.json", "added_tokens", value=[])
    assert "no token <｜begin▁of▁sentence｜>" in refused(files, capsys, 4)
    (files.model / "tokenizer.json").unlink()
    assert "tokenizer.json: no such file" in refused(files, capsys, 4)
    (files.model / "pytorch_model-00002-of-00002.bin").unlink()
    assert "1 of 2 shards are missing" in refused(files, capsys, 4)


@pytest.mark.parametrize(
    ("drop", "message"),
    [
        ("gen_head.vision_head.bias", "missing keys: gen_head.vision_head.bias"),
        ("gen_embed.weight", "missing keys: gen_embed.weight"),
        ("gen_vision_model.decoder.conv_out.bias", "missing keys: decoder.conv_out.bias"),
        ("gen_vision_model.quant_conv.bias", "missing keys: quant_conv.bias"),
    ],
)
def test_missing_tensors(
    files: Files, capsys: pytest.CaptureFixture[str], drop: str, message: str
) -> None:
    for path in files.model.glob("*.bin"):
        torch.save({k: v for k, v in torch.load(path).items() if k != drop}, path)
    assert message in refused(files, capsys, 4)


def test_no_folder(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.model.rename(files.folder / "elsewhere")
    assert "model: no such folder" in refused(files, capsys, 4)
    assert main(["janus", "--out", str(files.out)]) == 2
    assert capsys.readouterr().err == "error: nothing to export: give --model\n"


@pytest.mark.parametrize("kind", ["drafter", "flash"])
def test_drafters_share_both_layers_of_the_head(files: Files, kind: str) -> None:
    """As trainers read it, and as the drafter's archive has it."""
    assert files.export() == 0
    model = load_target(files.out)
    hidden = torch.randn(2, 3, SHAPE.dim)
    expected = model.target.logits(hidden)
    torch.testing.assert_close(logits_of(hidden, model.head), expected)
    layer = drafter_config(model)
    plain = Drafter(layer) if kind == "drafter" else Flash(FlashConfig(layer, heads=3))
    made = {"config": asdict(plain.config), "model": plain.state_dict()}
    torch.save(made, files.folder / "drafter.pt")
    words = (kind, "--bundle", files.out, "--name", "own", "--drafter", files.folder / "drafter.pt")
    assert main([*map(str, words), "--dtype", "fp32"]) == 0
    module = load_module(files.out / "drafter-own.pt")
    module.prepare(torch.zeros(1))
    if kind == "drafter":
        torch.testing.assert_close(module.logits(hidden), expected)
    else:
        rows = hidden[:, :1].contiguous()
        found = module.heads(rows)
        wanted = model.target.logits(module.ahead_of(rows).squeeze(1))
        torch.testing.assert_close(found, wanted)


def test_heads_of_rounded_bundles(files: Files, state: State) -> None:
    assert files.export("--dtype", "int8") == 0
    hidden = torch.randn(2, 3, SHAPE.dim)
    found = logits_of(hidden, in_fp32(target_head(files.out, files.manifest())))
    expected = logits_of(hidden, head_of(state))
    assert 0 < (found - expected).abs().max() < 0.05 * expected.abs().max()


@pytest.mark.parametrize("name", ["head_in", "head_bias"])
def test_heads_of_other_sizes(files: Files, name: str) -> None:
    assert files.export() == 0
    target = torch.jit.load(files.out / "target.pt")
    setattr(target, name, getattr(target, name)[1:].clone())
    target.save(files.out / "target.pt")
    with pytest.raises(ExportError, match=rf"{name}: got shape .*, expected shape"):
        target_head(files.out, files.manifest())
