"""Records a case of Tar's de-tokenizer: the published classes make images of codes with small random weights.

    python3 -m venv VENV && VENV/bin/pip install -r tests/golden/record_tar_decoder_requirements.txt
    git clone https://github.com/csuhan/Tar CLONE
    PYTHONPATH=CLONE VENV/bin/python tests/golden/record_tar_decoder.py OUT [--shape NAME] [--seed N]

OUT gets case.json, io.safetensors and the three files of the model, without what nothing reads.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import recording
import tok.ar_dtok.bottleneck  # noqa: F401, names its classes
import tok.ta_tok
import torch
from tok import models
from tok.ar_dtok import generate, vqvae
from tok.ar_dtok.ar_model import ARModel, ModelArgs
from tok.mm_autoencoder import MMAutoEncoder
from torch import Tensor, nn
from transformers import Siglip2VisionConfig, SiglipConfig

TEACHER = "google/siglip2-so400m-patch14-384"
NETWORK = "llama-abs-small"
TOLERANCE = {"features": 1e-4, "logits": 1e-4, "pixels": 1e-4}
State = dict[str, Tensor]


@dataclass(frozen=True)
class Shape:
    """Sizes of the parts."""

    codes: int = 40  # of TA-Tok
    prompt_side: int = 6
    code_width: int = 24
    unit_codes: bool = True
    features: int = 48
    ta_tok_layers: int = 2
    ta_tok_ffn: int = 56
    dim: int = 32
    layers: int = 2
    heads: int = 4
    side: int = 4  # codes of the image
    vocabulary: int = 60
    channels: tuple[int, ...] = (1, 1)  # of the image decoder's levels, times 32


SHAPES = {
    "tiny": Shape(),
    "wide": Shape(
        codes=300, prompt_side=9, code_width=32, unit_codes=False, features=96, ta_tok_layers=3, dim=96,
        layers=3, heads=6, side=6, vocabulary=300, channels=(1, 1, 2),
    ),
    "flat": Shape(codes=17, prompt_side=4, features=24, ta_tok_layers=1, dim=24, layers=1, heads=2, side=3),
}  # fmt: skip


def small_vq(shape: Shape) -> Any:
    """Makes the published image tokenizer with fewer channels."""

    def make(**sizes: Any) -> nn.Module:
        mult = list(shape.channels)
        args = vqvae.ModelArgs(
            encoder_ch_mult=mult,
            decoder_ch_mult=mult,
            z_channels=16,
            codebook_show_usage=False,
            **sizes,
        )
        model = vqvae.VQModel(args)
        model.encoder = vqvae.Encoder(ch=32, ch_mult=mult, z_channels=16)
        model.decoder = vqvae.Decoder(ch=32, ch_mult=mult, z_channels=16)
        return model

    return make


def register(shape: Shape) -> None:
    """Lets the published program make models of these sizes."""
    models.models[NETWORK] = lambda **kwargs: ARModel(
        ModelArgs(n_layer=shape.layers, n_head=shape.heads, dim=shape.dim, **kwargs)
    )
    vqvae.VQ_models["small"] = small_vq(shape)
    tok.ta_tok.Siglip2VisionConfig = functools.partial(
        Siglip2VisionConfig, intermediate_size=shape.ta_tok_ffn
    )


def draw(model: nn.Module, seed: int, gains: dict[str, float]) -> State:
    """Fills a model with numbers that keep the size of what passes, and that bf16 holds."""
    random = torch.Generator().manual_seed(seed)
    state = model.state_dict()
    for name, tensor in sorted(state.items()):
        noise = torch.randn(tensor.shape, generator=random)
        if "embed" in name and tensor.dim() > 1 and "proj" not in name:
            value = noise
        elif tensor.dim() > 1:
            value = noise * tensor[0].numel() ** -0.5
        else:
            is_scale = "norm" in name and name.endswith("weight")
            value = (1.0 if is_scale else 0.0) + (0.1 if is_scale else 0.3) * noise
        for part, gain in gains.items():
            value = value * gain if part in name else value
        tensor.copy_(value.bfloat16().float())
    return {name: tensor.clone() for name, tensor in state.items()}


def write_teacher(folder: Path, shape: Shape) -> None:
    """The configuration of the encoder, which is as wide as the features."""
    sizes = {"hidden_size": shape.features, "intermediate_size": 16, "num_hidden_layers": 2,
             "num_attention_heads": 4}  # fmt: skip
    text = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
            "num_attention_heads": 2, "vocab_size": 8}  # fmt: skip
    vision = {**sizes, "image_size": 12, "patch_size": 6}
    SiglipConfig(text_config=text, vision_config=vision).save_pretrained(folder)


def network_arguments(shape: Shape) -> dict[str, Any]:
    return {
        "model_type": "clip_cond", "cond_dim": shape.features, "vocab_size": shape.vocabulary,
        "cls_token_num": shape.prompt_side**2, "max_seq_len": shape.side**2, "multiple_of": 32,
        "norm_eps": 1e-5, "class_dropout_prob": 0.1,
    }  # fmt: skip


def ta_tok_arguments(shape: Shape, teacher: str) -> dict[str, Any]:
    regularizer = {
        "name": "simvq",
        "args": {"codebook_size": shape.codes, "l2_normalized": shape.unit_codes},
    }
    bottleneck = {"bottleneck_dim": shape.code_width, "norm": "none", "regularizer": regularizer}
    return {
        "bottleneck": {"name": "bottleneck", "args": bottleneck},
        "bottleneck_token_num": shape.prompt_side**2, "input_size": 12, "teacher": teacher,
        "decoder_depth": shape.ta_tok_layers, "select_layer_id": -2,
    }  # fmt: skip


def save(path: Path, content: Any) -> None:
    """Tensors in bf16, which holds them."""
    torch.save(narrow(content), path)


def narrow(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: narrow(value) for key, value in content.items()}
    if isinstance(content, Tensor) and content.is_floating_point():
        return content.bfloat16()
    return content


class Recorder:
    """Runs of one model, which the published program loads from its files."""

    def __init__(self, folder: Path, shape: Shape, seed: int) -> None:
        register(shape)
        self.shape = shape
        self.random = torch.Generator().manual_seed(seed)
        folder.mkdir(parents=True)
        names = {
            "ar_path": "ar_dtok_lp_small.pth",
            "encoder_path": "ta_tok.pth",
            "decoder_path": "vq_ds16_t2i.pt",
        }
        with TemporaryDirectory() as name:
            teacher = Path(name) / "teacher"
            write_teacher(teacher, shape)
            self.write_network(folder / names["ar_path"], seed)
            ta_tok = self.draw_ta_tok(str(teacher), seed + 1)
            for path, where in ((Path(name), str(teacher)), (folder, TEACHER)):
                arguments = ta_tok_arguments(shape, where)
                save(path / "ta_tok.pth", {"model": {"args": arguments, "sd": ta_tok}})
            vq = self.draw_vq(seed + 2)
            save(Path(name) / "vq.pt", {"model": vq})
            read = {k: v for k, v in vq.items() if not k.startswith(("encoder.", "quant_conv."))}
            save(folder / names["decoder_path"], {"model": read})
            self.model = MMAutoEncoder(
                ar_path=str(folder / names["ar_path"]),
                encoder_path=f"{name}/ta_tok.pth",
                decoder_path=f"{name}/vq.pt",
                encoder_args={"input_type": "rec"},
                decoder_args={
                    "model": "small",
                    "codebook_size": shape.vocabulary,
                    "codebook_embed_dim": 8,
                },
            ).eval()

    def write_network(self, path: Path, seed: int) -> None:
        spec = {"name": NETWORK, "args": network_arguments(self.shape)}
        state = draw(
            models.make(spec), seed, {"output": 4.0, "clip_proj.weight": 2.0, "abs_pe": 3.0}
        )
        save(path, {"model": {**spec, "sd": state}})

    def draw_ta_tok(self, teacher: str, seed: int) -> State:
        model = tok.ta_tok.TextAlignedTokenizer(**ta_tok_arguments(self.shape, teacher))
        return draw(model, seed, {"decode_task_layer.2.weight": 2.0})

    def draw_vq(self, seed: int) -> State:
        sizes = {"codebook_size": self.shape.vocabulary, "codebook_embed_dim": 8}
        return draw(vqvae.VQ_models["small"](**sizes), seed, {"conv_out": 0.3})

    def runs(self) -> Iterator[tuple[dict[str, Any], State]]:
        sides = [self.shape.prompt_side // scale for scale in (1, 2, 3)]
        wanted = [(side, scale) for scale in (4.0, 1.0) for side in sides]
        for number, (side, cfg_scale) in enumerate(wanted):
            name = f"greedy_{number}"
            tensors, margin = self.run(side, cfg_scale)
            facts = {"run": name, "side": side, "cfg_scale": cfg_scale, "margin": margin}
            yield facts, {f"{name}.{key}": value for key, value in tensors.items()}

    def run(self, side: int, cfg_scale: float) -> tuple[State, float]:
        """Tensors, and the least distance of a guided logit from the second best one."""
        codes = torch.randint(self.shape.codes, (1, side**2), generator=self.random)
        self.model.ar_model.cls_token_num = side**2
        seen: list[Tensor] = []
        plain = generate.sample

        def sample(logits: Tensor, **settings: Any) -> tuple[Tensor, Tensor]:
            seen.append(logits[:, -1].clone())
            return plain(logits, **settings)

        generate.sample = sample
        try:
            features = self.model.encoder.decode_from_bottleneck(codes)
            made = self.model.ar_sample(features, {"cfg_scale": cfg_scale, "top_k": 1})
        finally:
            generate.sample = plain
        pixels = self.model.decoder.decode_from_bottleneck(made)
        logits = torch.cat(seen)
        best = logits.topk(2).values
        tensors = {
            "codes": codes[0].int(), "features": features[0], "logits": logits, "tokens": made[0].int(),
            "pixels": pixels[0], "image": self.model.post_process(pixels)[0],
        }  # fmt: skip
        return tensors, float((best[:, 0] - best[:, 1]).min())


@torch.no_grad()
def record(out: Path, shape: Shape, seed: int) -> None:
    torch.manual_seed(seed)
    runs = Recorder(out / "model", shape, seed).runs()
    component = "Tar's de-tokenizer from codes to pixels: TA-Tok's decoding half, ARModel, VQVAE"
    source = {"repository": "github:csuhan/Tar", "commit": "47da8e1"}
    recording.write_case(out, component, shape, seed, runs, TOLERANCE, source)


if __name__ == "__main__":
    recording.run_recorder(__doc__.splitlines()[0], SHAPES, record)
