"""Janus-Pro as transformers lays it out: the same weights give the same bundle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import refused
from janus_files import SHAPE, TOKENIZER, VQ_SHAPE, Files, State, random_state
from safetensors.torch import load_file, save_file

# DeepSeek's name -> that of transformers, in the order of replacement.
NAMES = (
    ("gen_vision_model.decoder.conv_blocks.", "model.vqmodel.decoder.up."),
    ("gen_vision_model.encoder.conv_blocks.", "model.vqmodel.encoder.down."),
    ("gen_vision_model.", "model.vqmodel."),
    (".res.", ".block."),
    ("coder.mid.0.", "coder.mid.block_1."),
    ("coder.mid.1.", "coder.mid.attn_1."),
    ("coder.mid.2.", "coder.mid.block_2."),
    ("gen_aligner.layers.0.", "model.generation_aligner.fc1."),
    ("gen_aligner.layers.2.", "model.generation_aligner.hidden_layers.0."),
    ("gen_head.output_mlp_projector.", "model.generation_head.proj_out."),
    ("gen_head.vision_head.", "model.generation_head.vision_head."),
    ("gen_embed.", "model.generation_embeddings."),
    ("language_model.lm_head.", "lm_head."),
    ("language_model.model.", "model.language_model."),
    ("vision_model.vision_tower.norm.", "model.vision_model.post_layernorm."),
)


def converted_name(name: str) -> str:
    for old, new in NAMES:
        if not name.startswith("model."):
            name = new + name.removeprefix(old) if name.startswith(old) else name
        if name.startswith("model.vqmodel."):
            name = name.replace(old, new) if old.startswith((".", "coder.mid")) else name
    return f"model.{name}" if name.startswith("aligner.") else name


def settings() -> dict[str, Any]:
    """As transformers 5 saves it, which leaves out the defaults of nested parts."""
    return {
        "architectures": ["JanusForConditionalGeneration"], "model_type": "janus",
        "tie_word_embeddings": False, "dtype": "float32", "image_token_id": 3,
        "text_config": {
            "model_type": "llama", "hidden_size": SHAPE.dim, "num_hidden_layers": SHAPE.n_layer,
            "num_attention_heads": SHAPE.n_head, "num_key_value_heads": SHAPE.n_kv_head,
            "intermediate_size": SHAPE.ffn_dim, "vocab_size": SHAPE.text_ids,
            "max_position_embeddings": SHAPE.max_positions, "rms_norm_eps": SHAPE.norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": SHAPE.rope_base},
        },
        "vision_config": {"model_type": "janus_vision_model", "image_size": 384},
        "vq_config": {
            "model_type": "janus_vqgan", "num_embeddings": SHAPE.codes, "projection_dim": SHAPE.dim,
            "base_channels": VQ_SHAPE.ch, "channel_multiplier": list(VQ_SHAPE.decoder_ch_mult),
            "num_res_blocks": VQ_SHAPE.num_res_blocks, "image_token_embed_dim": SHAPE.head_width,
        },
    }  # fmt: skip


def convert(files: Files) -> None:
    """Rewrites a folder of DeepSeek's layout."""
    state: State = torch.load(files.model / "pytorch_model.bin")
    shutil.rmtree(files.model)
    files.model.mkdir()
    shutil.copyfile(TOKENIZER, files.model / "tokenizer.json")
    (files.model / "config.json").write_text(json.dumps(settings()))
    dropped = ("gen_vision_model.quantize.codebook_used", "rotary_emb.inv_freq")
    named = {converted_name(n): t for n, t in state.items() if not n.endswith(dropped)}
    assert len(named) + 2 == len(state)
    save_file(named, files.model / "model.safetensors")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, random_state(SHAPE), "bin")


def test_both_layouts_give_equal_bundles(files: Files) -> None:
    assert files.export() == 0
    original = files.out.rename(files.folder / "original")
    convert(files)
    state = load_file(files.model / "model.safetensors")
    tokenizer = {name for name in state if name.startswith("model.vqmodel.")}
    assert "model.vqmodel.encoder.down.4.block.0.conv1.weight" in tokenizer
    assert "model.vqmodel.decoder.mid.attn_1.q.weight" in tokenizer
    assert not any(".res." in name or ".mid.0." in name for name in tokenizer)
    assert files.export("--overwrite") == 0
    assert (files.out / "image_encoder.pt").exists()
    names = sorted(path.name for path in original.iterdir())
    assert names == sorted(path.name for path in files.out.iterdir())
    for name in names:
        assert (original / name).read_bytes() == (files.out / name).read_bytes(), name


@pytest.mark.parametrize(
    ("outer", "inner"), [("", ""), ("net.", "net.model."), ("model.", "model.model.")]
)
def test_prefixes(files: Files, outer: str, inner: str) -> None:
    """Of the head for text, and of the model beside it; the bare model has neither."""
    convert(files)
    assert files.export() == 0
    target = (files.out / "target.pt").read_bytes()
    path = files.model / "model.safetensors"
    state = load_file(path)
    renamed = {
        inner + name.removeprefix("model.") if name.startswith("model.") else outer + name: tensor
        for name, tensor in state.items()
    }
    save_file({k: v for k, v in renamed.items() if outer or k != "lm_head.weight"}, path)
    assert files.export("--overwrite") == 0
    assert (files.out / "target.pt").read_bytes() == target


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("vq_config", "num_embeddings"), 41, "vq_config.num_embeddings is 41, expected 40"),
        (("vq_config", "embed_dim"), 9, "vq_config.embed_dim is 9, expected 8"),
        (("vq_config", "double_latent"), True, "vq_config.double_latent is true, expected false"),
        (("vq_config", "num_hidden_layers"), 3, "num_hidden_layers is 3, expected 2"),
        (("vq_config",), ..., "vq_config is missing, expected an object"),
        (("text_config",), ..., "text_config is missing, expected an object"),
        (("text_config", "hidden_size"), 48, "vq_config.projection_dim is 32, expected 48"),
        (
            ("text_config", "rope_parameters"),
            {"rope_type": "llama3", "rope_theta": 1e4},
            "expected rotations of type default",
        ),
    ],
)
def test_configurations(
    files: Files,
    capsys: pytest.CaptureFixture[str],
    path: tuple[str, ...],
    value: Any,
    message: str,
) -> None:
    convert(files)
    files.change("config.json", *path, value=value)
    assert message in refused(files, capsys, 4)
