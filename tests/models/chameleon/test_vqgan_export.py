"""Chameleon's image tokenizer: published forms, and what the exporter refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from chameleon_files import VQ_SHAPE
from safetensors.torch import save_file
from torch import Tensor

from models.chameleon.vqgan import VQGAN
from models.export.checkpoint import ExportError
from models.export.image_decoders.vqgan import load_vqgan, read_yaml, vqgan_parts

YAML = """\
# a comment: with a colon
model:
  target: taming.models.vqgan.VQModel
  params:
    embed_dim: 5
    n_embed: 20  # codes
    ddconfig:
      double_z: false
      z_channels: 6
      resolution: 16
      in_channels: 3
      ch: 32
      ch_mult: [1, 2]
      num_res_blocks: 1
      attn_resolutions:
      - 8
      dropout: 0.0
    lossconfig:
      target: taming.modules.losses.vqperceptual.DummyLoss
      params:
        ch: 7
    ckpt_path: unused
"""


@pytest.fixture(scope="module")
def state() -> dict[str, Tensor]:
    torch.manual_seed(1)
    return VQGAN(VQ_SHAPE).state_dict()


@pytest.fixture
def original(tmp_path: Path, state: dict[str, Tensor]) -> Path:
    """vqgan.ckpt, with what training leaves in it, beside vqgan.yaml."""
    loss = {"loss.discriminator.main.0.weight": torch.zeros(2), "loss.logvar": torch.zeros(())}
    torch.save({"state_dict": {**state, **loss}, "epoch": 3}, tmp_path / "vqgan.ckpt")
    (tmp_path / "vqgan.yaml").write_text(YAML, encoding="utf-8")
    return tmp_path / "vqgan.ckpt"


def save_folder(folder: Path, state: dict[str, Tensor], **vq_config: Any) -> Path:
    """A Hugging Face folder in two shards; the second holds a layer of the language model too."""
    keys = sorted(state)
    shards = {
        "model-00001-of-00002.safetensors": keys[::2],
        "model-00002-of-00002.safetensors": keys[1::2],
    }
    listed = {}
    for file, names in shards.items():
        tensors = {f"model.vqmodel.{name}": state[name].clone() for name in names}
        tensors[f"model.layers.{len(listed)}.weight"] = torch.zeros(1)
        save_file(tensors, folder / file)
        listed.update(dict.fromkeys(tensors, file))
    index = json.dumps({"weight_map": listed})
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    config = json.dumps({"model_type": "chameleon", "vq_config": vq_config})
    (folder / "config.json").write_text(config, encoding="utf-8")
    return folder


def refused(path: Path, config: Path | None = None) -> str:
    with pytest.raises(ExportError) as error:
        load_vqgan(path, config)
    text = str(error.value)
    assert "\n" not in text and error.value.exit_code == 4
    return text


def test_all_published_forms_are_one_model(
    original: Path, tmp_path: Path, state: dict[str, Tensor]
) -> None:
    bare = tmp_path / "bare.pt"
    torch.save(state, bare)
    folder = tmp_path / "hf"
    folder.mkdir()
    save_folder(
        folder, state, base_channels=32, channel_multiplier=[1, 2], num_embeddings=20,
        latent_channels=6, attn_resolutions=None, double_latent=False, out_channels=3,
    )  # fmt: skip
    for path in (original, original.parent, bare, folder):
        model = load_vqgan(path)
        assert model.config == VQ_SHAPE
        found = model.state_dict()
        assert found.keys() == state.keys()
        assert all(torch.equal(found[name], state[name]) for name in state)


def test_decoder_alone(original: Path, state: dict[str, Tensor]) -> None:
    kept = {k: v for k, v in state.items() if not k.startswith(("encoder.", "quant_conv."))}
    torch.save({"state_dict": kept}, original)
    model = load_vqgan(original)
    assert model.config == VQ_SHAPE and not model.has_encoder
    assert set(vqgan_parts(original)[0]) == {"image_decoder"}
    (original.parent / "vqgan.yaml").unlink()
    assert load_vqgan(original).config.widths == VQ_SHAPE.widths


def test_part_of_a_bundle(original: Path, state: dict[str, Tensor]) -> None:
    parts, entry = vqgan_parts(original)
    assert entry == {"codebook_size": 20, "downsample": 2, "pixels": "truncate"}
    assert {part.dtype for part in parts.values()} == {torch.float32}
    buffers = parts["image_decoder"].module.state_dict()
    assert torch.equal(buffers["codebook"], state["quantize.embedding.weight"])
    assert not any("encoder" in name or "quant_conv" in name for name in buffers)
    parts, _ = vqgan_parts(original, dtype=torch.bfloat16)
    for part in parts.values():
        assert {t.dtype for t in part.module.state_dict().values()} == {torch.bfloat16}


def test_precision_of_the_checkpoint(original: Path, state: dict[str, Tensor]) -> None:
    torch.save({"state_dict": {k: v.bfloat16() for k, v in state.items()}}, original)
    for wanted, found in ((None, torch.bfloat16), (torch.float32, torch.float32)):
        parts, _ = vqgan_parts(original, dtype=wanted)
        assert {role: part.dtype for role, part in parts.items()} == {
            "image_decoder": found, "image_encoder": found
        }  # fmt: skip


class Callback:
    """An object that a training framework leaves in its checkpoints."""

    def __init__(self, file: Path) -> None:
        self.file = str(file)

    def __setstate__(self, state: dict[str, str]) -> None:
        Path(state["file"]).touch()


def test_objects_of_the_training_framework(
    original: Path, tmp_path: Path, state: dict[str, Tensor]
) -> None:
    hooks = {"callbacks": {Callback: {"best": 1}}, "hook": Callback(tmp_path / "ran")}
    torch.save({"state_dict": state, **hooks}, original)
    assert load_vqgan(original).config == VQ_SHAPE
    assert not (tmp_path / "ran").exists()
    torch.load(original, weights_only=False)
    assert (tmp_path / "ran").exists()  # what reading it otherwise would do


def test_no_code_is_run(original: Path, tmp_path: Path, state: dict[str, Tensor]) -> None:
    class Payload:
        def __reduce__(self) -> tuple[Any, tuple[str]]:
            return (os.system, (f"touch {tmp_path}/ran",))

    torch.save({"state_dict": state, "hook": Payload()}, original)
    assert "damaged or no checkpoint" in refused(original)
    original.write_bytes(original.read_bytes()[:-4000])
    assert "damaged or no checkpoint" in refused(original)
    assert not (tmp_path / "ran").exists()


def test_reads_the_yaml_of_these_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(YAML, encoding="utf-8")
    sections = read_yaml(tmp_path / "a.yaml")
    assert sections["params"]["n_embed"] == 20
    assert sections["params"]["ckpt_path"] == "unused"
    assert sections["ddconfig"] == {
        "double_z": False, "z_channels": 6, "resolution": 16, "in_channels": 3, "ch": 32,
        "ch_mult": [1, 2], "num_res_blocks": 1, "attn_resolutions": [8], "dropout": 0.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("line", "change", "message"),
    [
        ("ch_mult: [1, 2]", "ch_mult: [1, 1]", ".yaml: ch_mult is [1, 1], expected [1, 2]"),
        ("ch: 32\n", "ch: 64\n", "ch is 64, expected 32"),
        ("z_channels: 6", "z_channels: 7", "z_channels is 7, expected 6"),
        ("n_embed: 20", "n_embed: 21", "n_embed is 21, expected 20"),
        ("double_z: false", "double_z: true", "double_z is true, expected false"),
        ("double_z: false", "tanh_out: true", "tanh_out is true, expected false"),
        ("      - 8\n", "      - 16\n", "levels [0], expected levels [1]"),
        ("ddconfig:", "dd:", "got no ch_mult, expected model.params.ddconfig"),
    ],
)
def test_contradicting_configuration(
    original: Path, tmp_path: Path, line: str, change: str, message: str
) -> None:
    assert line in YAML
    other = tmp_path / "other.yaml"
    other.write_text(YAML.replace(line, change, 1), encoding="utf-8")
    text = refused(original, other)
    assert message in text and "other.yaml" in text


def test_contradicting_folder(tmp_path: Path, state: dict[str, Tensor]) -> None:
    save_folder(tmp_path, state, num_embeddings=40)
    assert "config.json: num_embeddings is 40, expected 20 as in " in refused(tmp_path)
    (tmp_path / "config.json").write_text('{"vq_config": [1]}', encoding="utf-8")
    assert "vq_config: expected an object, got list" in refused(tmp_path)


def test_no_decoder(tmp_path: Path, state: dict[str, Tensor]) -> None:
    save_folder(tmp_path, {k: v for k, v in state.items() if not k.startswith("decoder.")})
    text = refused(tmp_path)
    assert "no decoder weights" in text
    assert "Meta's vqgan.ckpt or the folder of leloy/Anole-7b-v0.1-hf" in text


def test_no_tokenizer(tmp_path: Path) -> None:
    save_folder(tmp_path, {})
    text = refused(tmp_path)
    assert "no image tokenizer" in text and "vqgan.ckpt" in text


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("decoder.conv_in.bias", None, "missing keys: decoder.conv_in.bias"),
        ("decoder.up.0.block.0.conv1.weight", None, "missing key decoder.up.0.block.0.conv1"),
        ("encoder.extra", [3], "unexpected keys: encoder.extra"),
        ("quant_conv.bias", [9], "quant_conv.bias has shape [9], expected [5]"),
        ("post_quant_conv.weight", [6, 5], "shape [6, 5], expected 4 dimensions"),
        ("encoder.conv_in.weight", [48, 3, 3, 3], "expected multiples of ch = 48"),
        ("decoder.conv_out.weight", [4, 32, 3, 3], "expected [3, 32, 3, 3]"),
    ],
)
def test_wrong_tensors(
    original: Path, state: dict[str, Tensor], name: str, shape: list[int] | None, message: str
) -> None:
    changed = {k: v for k, v in state.items() if k != name}
    if shape is not None:
        changed[name] = torch.zeros(shape)
    torch.save({"state_dict": changed}, original)
    assert message in refused(original)


def test_files_that_are_not_there(original: Path, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "missing.ckpt")
    assert "missing.yaml: no such file" in refused(original, tmp_path / "missing.yaml")
    (tmp_path / "empty").mkdir()
    assert "no weights" in refused(tmp_path / "empty")
    (tmp_path / "vqgan.yaml").write_bytes(b"\xff\xfe\x00")
    assert "vqgan.yaml: not readable as text" in refused(original)
    original.write_bytes(b"<!DOCTYPE html><html>")
    assert "got an HTML page" in refused(original)
