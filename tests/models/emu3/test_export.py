"""The Emu3 exporter: layouts, what a bundle holds, what is refused."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from export_run import ExportRun, refused
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor

from models.archive import archived_tensor
from models.export.__main__ import main
from models.export.checkpoint import ExportError
from models.export.emu3.bundle import Names, size_grid
from models.export.emu3.models import EMU3
from models.export.emu3.tokenizer import FIRST, find_tokenizer

MODEL = Path(__file__).parents[2] / "golden/cases/emu3/emu3_generate_tiny/model"
ENCODER = MODEL.parents[1] / "emu3_encoder/encoder.safetensors"
CODES = 40
# transformers' name of a part -> the official one, the longer ones first; of the target, then of the tokenizer.
TEXT = {"text_model.model.": "model.", "text_model.lm_head.": "lm_head."}
VISION = {
    "middle_block.attn_norm.": "mid.attn_1.norm.", "middle_block.": "mid.", "up_block.up.": "up.",
    "down_block.down.": "down.",
    "attn_norms.0.": "attn.0.norm.", "attn_norms.1.": "attn.1.norm.", "vqmodel.": "",
    "q_proj.": "q.", "k_proj.": "k.", "v_proj.": "v.", "out_proj.": "proj_out.",
}  # fmt: skip


class Files(ExportRun):
    """A copy of the recorded folder, to be changed, and a call of the exporter."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.out = folder, folder / "model", folder / "bundle"
        shutil.copytree(MODEL, self.model)
        self.config = folder / "settings.json"
        self.config.write_text(json.dumps({"sizes": ["8x6"], "text_length": 100}))

    def export(self, *words: object) -> int:
        command = ["emu3", "--model", self.model, "--config", self.config, "--out", self.out]
        return main([*map(str, command), *map(str, words)])

    def change(self, file: str, part: str | None = None, **values: Any) -> None:
        content = json.loads((self.model / file).read_text(encoding="utf-8"))
        (content[part] if part else content).update(values)
        (self.model / file).write_text(json.dumps(content), encoding="utf-8")

    def state(self) -> dict[str, Tensor]:
        return load_file(self.model / "model.safetensors")

    def save(self, state: dict[str, Tensor]) -> None:
        tensors = {name: tensor.contiguous() for name, tensor in state.items()}
        save_file(tensors, self.model / "model.safetensors")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_whole_bundle(files: Files) -> None:
    assert files.export("--dtype", "bf16") == 0
    manifest, pieces = files.manifest(), Tokenizer.from_file(str(MODEL / "tokenizer.json"))
    ids = {name: pieces.token_to_id(f"<|extra_{name}|>") for name in (200, 201, 203, 204)}
    assert manifest["family"] == "emu3" and manifest["licence"] == "Apache License 2.0"
    prompt = manifest["prompt"]
    text = "{prompt}<|image start|>{rows}*{columns}<|image token|>"
    assert prompt["text"] == prompt["negative_text"] == text
    assert prompt["prefix"] == prompt["unconditional"] == [ids[203]]
    assert prompt["negative_prompt"].startswith("lowres, bad anatomy")
    assert prompt["length"] == 101
    first = pieces.token_to_id("<|visual token 000000|>")
    assert manifest["tokens"]["first_image_id"] == first
    assert manifest["tokens"]["codebook_size"] == manifest["target"]["head"] == CODES
    (grid,) = manifest["grids"]
    assert (grid["rows"], grid["columns"], grid["before"]) == (3, 4, [])
    end = [ids[201], pieces.token_to_id("<|image end|>"), ids[204]]
    assert (grid["row_end"], grid["after"]) == ([ids[200]], end)
    assert manifest["cache"]["max_length"] == 101 + 3 * 4 + 2
    assert manifest["decoder"] == {"codebook_size": CODES, "downsample": 2, "pixels": "truncate"}
    assert manifest["sampling"] == {
        "cfg_scale": 3.0, "temperature": 1.0, "top_k": 2048, "top_p": 1.0, "order": "ar",
    }  # fmt: skip
    head = files.state()["text_model.lm_head.weight"][first : first + CODES]
    assert torch.equal(archived_tensor(files.out / "target.pt", "head"), head)


def decoded(bundle: Path) -> Tensor:
    decoder = torch.jit.load(str(bundle / "image_decoder.pt"))
    decoder.prepare(torch.empty(0))
    return decoder.decode(torch.arange(12).view(1, 3, 4))


def test_names_of_transformers_5(files: Files) -> None:
    """The names that its modules have."""
    inner = {"text_model.lm_head.": "lm_head.", "text_model.model.": "model.text_model.",
             "vqmodel.": "model.vqmodel."}  # fmt: skip
    state = files.state()
    assert files.export() == 0
    expected = decoded(files.out)
    for old, new in inner.items():
        state = {new + k.removeprefix(old) if k.startswith(old) else k: v for k, v in state.items()}
    files.save(state)
    assert files.export("--overwrite") == 0
    assert torch.equal(decoded(files.out), expected)


def write_authors(files: Files) -> Path:
    """Splits the folder into the two official ones, with the official names; returns the image tokenizer's."""
    state, folder = {}, files.folder / "vision"
    for name, tensor in files.state().items():
        is_text = name.startswith("text_model.")
        for old, new in (TEXT if is_text else VISION).items():
            name = name.replace(old, new)
        is_product = not is_text and tensor.dim() == 2 and ".attn" in name
        state[name] = tensor[:, :, None, None] if is_product else tensor
    own = tuple(TEXT.values())
    folder.mkdir()
    vision = {k: v.contiguous() for k, v in state.items() if not k.startswith(own)}
    save_file(vision, folder / "model.safetensors")
    files.save({k: v for k, v in state.items() if k.startswith(own)})
    config = json.loads((files.model / "config.json").read_text())
    old = {"base_channels": "ch", "channel_multiplier": "ch_mult", "latent_channels": "z_channels"}
    vq = {old.get(k, k): v for k, v in config["vq_config"].items() if k != "num_attention_heads"}
    (folder / "config.json").write_text(json.dumps(vq | {"model_type": "Emu3VisionVQ"}))
    text = config["text_config"]
    rope = text.pop("rope_parameters")["rope_theta"]
    text |= {"model_type": "Emu3", "rope_theta": rope}
    (files.model / "config.json").write_text(json.dumps(text))
    return folder


def test_the_authors_layout(files: Files) -> None:
    assert files.export("--dtype", "fp32") == 0
    expected, target = decoded(files.out), files.manifest()["files"]["target.pt"]
    vision = write_authors(files)
    assert files.export("--dtype", "fp32", "--vq", vision, "--overwrite") == 0
    assert torch.equal(decoded(files.out), expected)
    assert files.manifest()["files"]["target.pt"] == target
    files.config.write_text(json.dumps({"sizes": ["32x24"]}))  # of the published codes
    assert files.export("--overwrite") == 0
    assert set(files.manifest()["modules"]) == {"target"}
    words = ["emu3", "--vq", vision, "--out", files.out, "--overwrite"]
    assert main([str(word) for word in words]) == 0
    assert set(files.manifest()["modules"]) == {"image_decoder"}
    assert files.manifest()["licence"] == "Apache License 2.0"


def encoded(bundle: Path) -> Tensor:
    encoder = torch.jit.load(str(bundle / "image_encoder.pt"))
    encoder.prepare(torch.empty(0))
    latents = encoder.latents(torch.linspace(-1, 1, 3 * 6 * 8).view(1, 3, 6, 8))
    assert latents.shape == (1, 4, 3, 4)
    return latents  # type: ignore[no-any-return]


def test_encoders_in_both_layouts(files: Files) -> None:
    files.save(files.state() | load_file(ENCODER))
    assert files.export() == 0
    modules = files.manifest()["modules"]
    assert modules["image_encoder"]["dtype"] == modules["image_decoder"]["dtype"] == "float32"
    expected = encoded(files.out)
    vision = write_authors(files)
    names = set(load_file(vision / "model.safetensors"))
    assert {"encoder.down.1.attn.0.q.weight", "encoder.mid.attn_1.norm.weight"} <= names
    assert files.export("--vq", vision, "--overwrite") == 0
    assert torch.equal(encoded(files.out), expected)


def test_a_tokenizer_of_ranks(tmp_path: Path) -> None:
    """Merges are those that make each token of earlier ones; texts are composed and split as Qwen's."""
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [b"re", b" re", b"ed", b" red", "é".encode(), b"12"]
    lines = [f"{base64.b64encode(token).decode()} {rank}" for rank, token in enumerate(tokens)]
    (tmp_path / "emu3.tiktoken").write_text("\n".join(lines) + "\n")
    (tmp_path / "emu3_vision_tokens.txt").write_text("<|image token|>\n<|visual token 000000|>\n")
    tokenizer = Tokenizer.from_file(str(find_tokenizer(tmp_path, tmp_path)))
    last = len(tokens) + len(FIRST)
    for text, ids in {
        "a red": [ord("a"), tokens.index(b" red")],
        "reed": [tokens.index(b"re"), tokens.index(b"ed")],
        "e\u0301": [tokens.index("é".encode())],
        "12": [ord("1"), ord("2")],
        "<|im_end|>\u0338": [*b"<|im_end|", *"\u226f".encode()],
        "<|endoftext|>x<|image token|><|visual token 000000|>": [
            len(tokens),
            ord("x"),
            last,
            last + 1,
        ],
    }.items():
        assert tokenizer.encode(text, add_special_tokens=False).ids == ids, text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("YQ== x", "expected lines of a token in base 64"),
        ("YQ== 1", "expected ranks from 0 to 0"),
        ("YQ== 0\nYg== 1\nYWJh 2", "token 2 is made of 3 earlier ones"),
    ],
)
def test_odd_ranks(tmp_path: Path, lines: str, message: str) -> None:
    (tmp_path / "emu3.tiktoken").write_text(lines)
    (tmp_path / "emu3_vision_tokens.txt").write_text("")
    with pytest.raises(ExportError, match=message):
        find_tokenizer(tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("size", "fits"),
    [((720, 720), True), ((832, 624), True), ((960, 544), True), ((512, 512), False),
     ((1024, 1024), False), ((2160, 240), False)],
)  # fmt: skip
def test_sizes_that_were_trained(size: tuple[int, int], fits: bool) -> None:
    """Of the published model: the area of 720 x 720 pixels, in any usual shape."""
    ids = dict.fromkeys(("eof_token", "eoi_token", "eos_token"), 5)
    names = Names(MODEL, {}, ids, 4, 10, EMU3.codes)
    if fits:
        assert size_grid(EMU3, names, *size, 8)["columns"] == size[0] // 8
        return
    with pytest.raises(ExportError, match="the model was trained on about 8100"):
        size_grid(EMU3, names, *size, 8)


CHANGES: dict[str, tuple[str, dict[str, Any], str]] = {
    "model_type": ("", {"model_type": "llama"}, "model_type is llama, expected emu3 or Emu3"),
    "bias": ("text_config", {"attention_bias": True}, "attention_bias is true"),
    "scaled": ("text_config", {"rope_parameters": {"rope_type": "linear", "factor": 2.0}}, "rope_param"),
    "heads": ("vq_config", {"num_attention_heads": 2}, "vq_config.num_attention_heads is 2"),
    "frames": ("vq_config", {"temporal_downsample_factor": 8}, "expected 4"),
    "attention": ("vq_config", {"attn_resolutions": [0]}, "attn_resolutions is [0], expected [1]"),
    "codes": ("vq_config", {"codebook_size": 41}, "vq_config.codebook_size is 41, expected 40"),
    "tied": ("text_config", {"tie_word_embeddings": True}, "tie_word_embeddings is false, and true in"),
    "quantised": ("", {"quantization_config": {"quant_method": "awq"}}, "quantised (awq)"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_contradictions(files: Files, capsys: pytest.CaptureFixture[str], change: str) -> None:
    part, values, message = CHANGES[change]
    files.change("config.json", part or None, **values)
    assert message in refused(files, capsys, 4)


def test_tensors(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Missing, unknown and misshapen ones of both parts."""
    state = files.state()
    encoder = load_file(ENCODER)
    time = "vqmodel.decoder.time_conv.1.conv.conv.weight"
    halving = "vqmodel.encoder.time_conv.1.conv.conv.weight"
    more = {name: tensor for name, tensor in encoder.items() if name != halving}
    for name, tensor, message in (
        ("text_model.model.norm.weight", None, "missing keys: model.norm.weight"),
        ("text_model.model.extra", torch.ones(2), "unexpected keys: model.extra"),
        (time, None, "missing keys: decoder.time_conv.1.conv.conv.weight"),
        (time, torch.ones(4, 4, 4, 3, 3), "has shape [4, 4, 4, 3, 3], expected [4, 4, 3, 3, 3]"),
        ("vqmodel.decoder.odd", torch.ones(2), "unexpected keys: decoder.odd"),
        ("vqmodel.quant_conv.conv.bias", torch.ones(4), "unexpected keys: quant_conv.conv.bias"),
    ):
        changed = {k: v for k, v in state.items() if k != name}
        files.save(changed | ({} if tensor is None else {name: tensor}))
        assert message in refused(files, capsys, 4)
    files.save(state | more)
    assert "missing keys: encoder.time_conv.1.conv.conv.weight" in refused(files, capsys, 4)
    files.save(state | more | {halving: torch.ones(4, 4, 3, 3, 3)})
    assert "has shape [4, 4, 3, 3, 3], expected [4, 4, 4, 3, 3]" in refused(files, capsys, 4)


def test_tokens(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    """Tags by the names that tokenizer_config.json gives them, codes that follow one another."""
    files.change("tokenizer_config.json", eof_token="<|extra_9|>")
    assert "no added token <|extra_9|>" in refused(files, capsys, 4)
    files.change("tokenizer_config.json", eof_token="<|extra_201|>")
    content = json.loads((files.model / "tokenizer.json").read_text(encoding="utf-8"))
    for token in content["added_tokens"]:
        token["content"] = token["content"].replace("000007", "000077")
    files.change("tokenizer.json", added_tokens=content["added_tokens"])
    config = json.loads((files.model / "config.json").read_text(encoding="utf-8"))
    del config["vocabulary_map"]["<|visual token 000007|>"]
    files.change("config.json", vocabulary_map=config["vocabulary_map"])
    assert "code 7 has id None" in refused(files, capsys, 4)


def test_positions(files: Files, capsys: pytest.CaptureFixture[str]) -> None:
    files.config.write_text(json.dumps({"sizes": ["48x48"], "text_length": 100}))
    assert "takes 599 positions and its prompt 101, the model has 512" in refused(files, capsys, 2)


def test_what_an_image_processor_does_is_reported(
    files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    (files.model / "preprocessor_config.json").write_text('{"image_mean": [0.4, 0.5, 0.5]}')
    assert files.export() == 0
    assert "image_mean is [0.4, 0.5, 0.5]" in capsys.readouterr().out
