"""Bundles of every family: small random checkpoints in official layouts, run through the exporters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from models.chameleon.vqgan import VQGAN, VQGANConfig
from models.export.__main__ import main as export
from models.heads.flash import Flash, FlashConfig, FlashLayerConfig

CASES = (
    Path(__file__).parents[1] / "golden" / "cases"
)  # small models in published layouts among them
TOKENIZER = CASES / "bpe" / "bpe_chameleon" / "tokenizer.json"
CODES = 48
VOCABULARY = 10240  # more than the tokenizer's ids
TEXT_LENGTH = 80  # ids of a caption
State = dict[str, Tensor]

META = {
    "model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output",
    "model.layers": "layers", "self_attn": "attention", "mlp": "feed_forward",
    "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
    "q_proj": "wq", "k_proj": "wk", "v_proj": "wv", "o_proj": "wo", "q_norm": "q_normalization",
    "k_norm": "k_normalization", "gate_proj": "w1", "down_proj": "w2", "up_proj": "w3",
}  # fmt: skip


@dataclass(frozen=True)
class Shape:
    dim: int = 32
    heads: int = 4
    kv_heads: int = 4
    ffn: int = 48
    layers: int = 2

    @property
    def head_dim(self) -> int:
        return self.dim // self.heads


class Weights:
    """Random tensors by seed."""

    def __init__(self, shape: Shape, seed: int) -> None:
        self.shape = shape
        self.random = torch.Generator().manual_seed(seed)

    def normal(self, *size: int, std: float, mean: float = 0.0) -> Tensor:
        return mean + std * torch.randn(*size, generator=self.random)

    def norm(self, *size: int) -> Tensor:
        return self.normal(*size, std=0.1, mean=1.0)

    def layer(self, prefix: str, branch: float, norms: str) -> State:
        """A layer whose branches add about `branch` to inputs of norm 1.

        norms: of queries and keys, one per "head" or per "part" of the heads, or a "vector".
        """
        s, width = self.shape, self.shape.dim**-0.5
        kv_width = s.kv_heads * s.head_dim
        state = {
            "input_layernorm.weight": self.norm(s.dim),
            "post_attention_layernorm.weight": self.norm(s.dim),
            "self_attn.q_proj.weight": self.normal(s.dim, s.dim, std=width),
            "self_attn.k_proj.weight": self.normal(kv_width, s.dim, std=width),
            "self_attn.v_proj.weight": self.normal(kv_width, s.dim, std=width),
            "self_attn.o_proj.weight": self.normal(s.dim, s.dim, std=branch * width),
            "mlp.gate_proj.weight": self.normal(s.ffn, s.dim, std=width),
            "mlp.up_proj.weight": self.normal(s.ffn, s.dim, std=width),
            "mlp.down_proj.weight": self.normal(s.dim, s.ffn, std=branch * s.ffn**-0.5),
        }
        for name, heads in (("q_norm", s.heads), ("k_norm", s.kv_heads)):
            size = {"head": (heads, s.head_dim), "part": (1, s.head_dim), "vector": (s.head_dim,)}
            state[f"self_attn.{name}.weight"] = self.norm(*size[norms])
            state[f"self_attn.{name}.bias"] = self.normal(*size[norms], std=0.1)
        return {prefix + name: tensor for name, tensor in state.items()}

    def target(self, norms: str) -> State:
        """Weights with Hugging Face names; the next id depends mostly on the last one."""
        s = self.shape
        state = {
            "model.embed_tokens.weight": self.normal(VOCABULARY, s.dim, std=1.0),
            "model.norm.weight": self.norm(s.dim),
            "lm_head.weight": self.normal(VOCABULARY, s.dim, std=0.5),
        }
        for number in range(s.layers):
            state.update(self.layer(f"model.layers.{number}.", 0.4, norms))
        return state

    def drafter(self, embeddings: Tensor, norms: str) -> State:
        """Weights with LANTERN's names; the drafted features are mostly the embedding of their id."""
        width = self.shape.dim
        mix = torch.cat([torch.eye(width), torch.zeros(width, width)], 1)
        return {
            "embed_tokens.weight": embeddings.clone(),
            "fc.weight": mix + self.normal(width, 2 * width, std=0.02),
            "fc.bias": self.normal(width, std=0.02),
            **self.layer("layers.0.", 0.3, norms),
        }


def save(folder: Path, name: str, state: State) -> None:
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, folder / name)


def write_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def published_config(shape: Shape, **more: object) -> dict[str, Any]:
    return {
        "model_type": "chameleon", "hidden_size": shape.dim, "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads, "num_hidden_layers": shape.layers,
        "intermediate_size": shape.ffn, "vocab_size": VOCABULARY, "rms_norm_eps": 1e-5,
        "max_position_embeddings": 512, "rope_theta": 10000.0, "hidden_act": "silu", **more,
    }  # fmt: skip


def write_shards(folder: Path, shape: Shape, state: State, count: int) -> Path:
    """Writes a Hugging Face folder of `count` shards."""
    folder.mkdir()
    write_json(folder / "config.json", published_config(shape))
    names = sorted(state)
    places = {
        name: f"model-{number % count + 1:05}.safetensors" for number, name in enumerate(names)
    }
    for file in sorted(set(places.values())):
        save(folder, file, {name: state[name] for name in names if places[name] == file})
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": places})
    return folder


def write_meta(folder: Path, shape: Shape, state: State) -> Path:
    """Writes the layout of Meta's files."""
    folder.mkdir()
    renamed = {}
    for name, tensor in state.items():
        for published, own in META.items():
            name = name.replace(published + ".", own + ".")
        renamed[name] = tensor
    torch.save(renamed, folder / "consolidated.pth")
    model = {"dim": shape.dim, "n_layers": shape.layers, "n_heads": shape.heads,
             "n_kv_heads": shape.kv_heads, "norm_eps": 1e-5, "rope_theta": 10000.0,
             "qk_normalization": True, "swin_norm": False}  # fmt: skip
    write_json(folder / "params.json", {"model": model})
    return folder


def image_tokenizer() -> State:
    torch.manual_seed(4)
    config = VQGANConfig(ch=32, ch_mult=(1,) * 5, num_res_blocks=0, z_channels=32, embed_dim=32,
                         n_embed=CODES)  # fmt: skip
    return VQGAN(config).state_dict()


def write_vqgan(folder: Path) -> Path:
    """Writes Meta's image tokenizer."""
    torch.save({"state_dict": image_tokenizer()}, folder / "vqgan.ckpt")
    lines = ["model:", "  params:", "    embed_dim: 32", f"    n_embed: {CODES}", "    ddconfig:",
             "      double_z: false", "      z_channels: 32", "      resolution: 64",
             "      in_channels: 3", "      out_ch: 3", "      ch: 32",
             "      ch_mult: [1, 1, 1, 1, 1]", "      num_res_blocks: 0",
             "      attn_resolutions: []"]  # fmt: skip
    (folder / "vqgan.yaml").write_text("\n".join(lines) + "\n")
    return folder / "vqgan.ckpt"


def run_exporter(*words: object) -> None:
    assert export([str(word) for word in words]) == 0


def add_drafter(
    folder: Path, bundle: Path, weights: Weights, embeddings: Tensor, norms: str
) -> None:
    """Attaches a drafter in LANTERN's layout as `main`."""
    (folder / "drafter").mkdir()
    settings = published_config(weights.shape, num_hidden_layers=1)
    write_json(folder / "drafter" / "config.json", settings)
    save(folder / "drafter", "model.safetensors", weights.drafter(embeddings, norms))
    run_exporter("drafter", "--bundle", bundle, "--name", "main", "--drafter", folder / "drafter")


def add_text_drafters(folder: Path, bundle: Path) -> Path:
    """Attaches drafters of texts to what `anole` made in the folder: `words`, and `flash` for 3 tokens.

    Their features are mostly the embedding of the last id.
    """
    drafter = folder / "drafter"
    run_exporter("drafter", "--bundle", bundle, "--name", "words", "--drafter", drafter, "--text")
    embeddings = load_file(drafter / "model.safetensors")["embed_tokens.weight"]
    file = save_flash(folder / "flash.pt", embeddings)
    run_exporter("flash", "--bundle", bundle, "--name", "flash", "--drafter", file, "--text")
    return bundle


def save_flash(file: Path, embeddings: Tensor) -> Path:
    """A file of training: rows attend to themselves, and all features are the embedding of the last id."""
    width, one = embeddings.shape[1], torch.eye(embeddings.shape[1])
    layer = FlashLayerConfig(width, 1, 2 * width, len(embeddings), 512, 1, rotary="line")
    flash = Flash(FlashConfig(layer, 3)).requires_grad_(False)
    random = torch.Generator().manual_seed(6)
    for weight in flash.parameters():
        weight.copy_(0.02 * torch.randn(weight.shape, generator=random))
    flash.embed_tokens.weight.copy_(embeddings)
    flash.fc.weight[:, :width] += one
    for projection in (flash.layers.q_proj, flash.layers.k_proj):
        projection.weight += 2 * one
    for projection in (flash.layers.v_proj, flash.layers.o_proj):
        projection.weight += one
    inner, _, outer = flash.layers.ar_proj
    inner.weight += torch.cat([one, -one])  # silu(x) - silu(-x) is x
    outer.weight += torch.cat([one, -one], 1).repeat(3, 1)
    torch.save({"config": asdict(flash.config), "model": flash.state_dict()}, file)
    return file


def finish(
    folder: Path, family: str, sizes: list[str], weights: Weights, state: State, *parts: object
) -> Path:
    norms = "part" if family == "lumina-mgpt" else "head"
    settings = {"tokens": {"codebook_size": CODES}, "sizes": sizes, "text_length": TEXT_LENGTH,
                "sampling": {"top_k": 30}}  # fmt: skip
    config = write_json(folder / "settings.json", settings)
    bundle = folder / "bundle"
    run_exporter(family, "--out", bundle, "--config", config, *parts)
    add_drafter(folder, bundle, weights, state["model.embed_tokens.weight"], norms)
    return bundle


def chameleon(folder: Path) -> Path:
    """Meta's files; 3 x 4 codes."""
    weights = Weights(Shape(kv_heads=2), 21)
    state = weights.target("vector")
    model = write_meta(folder / "model", weights.shape, state)
    parts = ("--model", model, "--vq", write_vqgan(folder), "--tokenizer", TOKENIZER)
    return finish(folder, "chameleon", ["64x48"], weights, state, *parts)


def anole(folder: Path, *words: object) -> Path:
    """One Hugging Face folder with tokenizer and image tokenizer; norms by head; 4 x 4 codes."""
    weights = Weights(Shape(), 22)
    state = weights.target("head")
    extra = {f"model.vqmodel.{name}": tensor for name, tensor in image_tokenizer().items()}
    model = write_shards(folder / "model", weights.shape, {**state, **extra}, 2)
    (model / "tokenizer.json").write_bytes(TOKENIZER.read_bytes())
    parts = ("--model", model, "--vq", model, *words)
    return finish(folder, "anole", ["64x64"], weights, state, *parts)


def lumina(folder: Path) -> Path:
    """A Hugging Face folder and Meta's image tokenizer; rows of 2, 4 and 2 codes that end."""
    weights = Weights(Shape(layers=1), 23)
    state = weights.target("part")
    model = write_shards(folder / "model", weights.shape, state, 3)
    parts = ("--model", model, "--vq", write_vqgan(folder), "--tokenizer", TOKENIZER)
    return finish(folder, "lumina-mgpt", ["32x96", "64x64", "32x64"], weights, state, *parts)


TOKEN_FAMILIES = {"chameleon": chameleon, "anole": anole, "lumina-mgpt": lumina}


def with_sizes(folder: Path, sizes: Sequence[str], text_length: int) -> tuple[object, ...]:
    """Arguments for sizes without a trained model."""
    settings = {"sizes": list(sizes), "text_length": text_length}
    return "--config", write_json(folder / "sizes.json", settings), "--out", folder / "bundle"


def janus(folder: Path, sizes: Sequence[str] = ("64x64",)) -> Path:
    """Padded unconditional rows, a head of two layers; a code for every 16 x 16 pixels."""
    model = CASES / "janus" / "janus_generate_8x8" / "model"
    run_exporter("janus", "--model", model, *with_sizes(folder, sizes, 96))
    return folder / "bundle"


def lumina2(folder: Path, sizes: Sequence[str] = ("32x64",), *words: object) -> Path:
    """Rows that end; a code for every 8 x 8 pixels."""
    vq = CASES / "lumina2" / "lumina2_movq_f8" / "movqgan_270M.ckpt"
    parts = (
        "--model",
        CASES / "lumina2" / "lumina2_target_tiny",
        "--vq",
        vq,
        "--sizes",
        ",".join(sizes),
    )
    run_exporter("lumina-mgpt-2", *parts, "--out", folder / "bundle", *words)
    return folder / "bundle"


def simplear(folder: Path, sizes: Sequence[str] = ("64x64",), *words: object) -> Path:
    """Halves of unequal length, biases, grouped heads; a code for every 16 x 16 pixels."""
    parts = ("--model", CASES / "simplear" / "simplear_target_tiny")
    parts += ("--decoder", CASES / "cosmos" / "cosmos_dv_decoder" / "decoder.jit")
    run_exporter("simplear", *parts, *with_sizes(folder, sizes, 112), *words)
    return folder / "bundle"


def emu3(folder: Path, sizes: Sequence[str] = ("8x6",)) -> Path:
    """Rows that end, negative prompts, the size in the text; a code for every 2 x 2 pixels."""
    model = CASES / "emu3" / "emu3_generate_tiny" / "model"
    run_exporter("emu3", "--model", model, *with_sizes(folder, sizes, 200))
    return folder / "bundle"


def emu35(folder: Path, sizes: Sequence[str] = ("8x6",)) -> Path:
    """Norms of heads that together are wider than the network; a code for every 2 x 2 pixels."""
    case = CASES / "emu3" / "emu35_generate_tiny"
    parts = ("--model", case / "model", "--vq", case / "vq")
    run_exporter("emu3", *parts, *with_sizes(folder, sizes, 200))
    return folder / "bundle"


def glm_image(folder: Path, sizes: Sequence[str] = ("96x64",)) -> Path:
    """A preview in front, norms behind the branches, no image decoder; a code for every 32 x 32 pixels."""
    model = CASES / "glm_image" / "glm_image_generate_tiny" / "model"
    run_exporter("glm-image", "--model", model, *with_sizes(folder, sizes, 100))
    return folder / "bundle"


def tar(folder: Path, sizes: Sequence[str] = ("84x84",)) -> Path:
    """An id of the size in front of the codes, no image decoder; a code for every 14 x 14 pixels."""
    model = CASES / "tar" / "tar_generate_tiny" / "model"
    run_exporter("tar", "--model", model, *with_sizes(folder, sizes, 150))
    return folder / "bundle"


def tar_decoder(folder: Path, _sizes: Sequence[str] = ()) -> Path:
    """Prompts of codes, learned positions; its one size has a code for every 2 x 2 of 8 x 8 pixels."""
    model = CASES / "tar" / "tar_decoder_tiny" / "model"
    heads = write_json(folder / "heads.json", {"n_head": 4})
    parts = ("--gpt", model / "ar_dtok_lp_small.pth", "--ta-tok", model / "ta_tok.pth")
    parts += ("--vq", model / "vq_ds16_t2i.pt", "--config", heads)
    run_exporter("tar-decoder", *parts, "--out", folder / "bundle")
    return folder / "bundle"
