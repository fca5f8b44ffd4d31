"""Records a case of an image encoder: the official one with small random weights on soft random images.

    VENV/bin/python tests/golden/record_encoders.py OUT emu3
    VENV/bin/python tests/golden/record_encoders.py OUT janus --source Janus/janus/models/vq_model.py
    VENV/bin/python tests/golden/record_encoders.py OUT cosmos --source SimpleAR

VENV as in record_emu3.py; for Cosmos' code it needs einops, loguru and mediapy as well. The encoder completes
the model of another case; OUT gets its weights, images, latents and codes.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import recording
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import Emu3Config, JanusVQVAEConfig
from transformers.models.emu3.modeling_emu3 import Emu3VQVAE
from transformers.models.janus.modeling_janus import JanusVQVAE

CASES = Path(__file__).parent / "cases"
TOLERANCE = {"latents": 1e-4, "margin": 1e-4}


def draw(model: nn.Module, parts: tuple[str, ...], seed: int) -> None:
    """Fills the tensors under these names with numbers that bf16 holds."""
    random = torch.Generator().manual_seed(seed)
    for name, tensor in sorted(named(model, parts, None).items()):
        if tensor.is_floating_point():
            tensor.copy_(recording.drawn(name, tensor, random).bfloat16().float())


def named(
    model: nn.Module, parts: tuple[str, ...], dtype: torch.dtype | None = torch.bfloat16
) -> recording.State:
    """The tensors under these names, in this precision or as they are."""
    state = {name: tensor for name, tensor in model.state_dict().items() if name.startswith(parts)}
    return {
        name: tensor.to(dtype) if dtype and tensor.is_floating_point() else tensor
        for name, tensor in state.items()
    }


def complete(model: nn.Module, state: recording.State, drawn_parts: tuple[str, ...]) -> None:
    """Loads a decoder and a codebook; all that is missing has to be drawn."""
    result = model.load_state_dict({k: v.float() for k, v in state.items()}, strict=False)
    odd = [name for name in result.missing_keys if not name.startswith(drawn_parts)]
    assert not result.unexpected_keys and set(odd) <= {"quantize.codebook_used"}, result


def margin_of(latents: Tensor, table: Tensor) -> Tensor:
    """How much farther the second nearest row is, squared: latents [C,h,w] -> [h,w]."""
    rows = latents.double().permute(1, 2, 0)[..., None, :]
    best = (rows - table.double()).square().sum(-1).topk(2, largest=False).values
    return (best[..., 1] - best[..., 0]).float()


class Emu3:
    """transformers' Emu3VQVAE, which repeats a picture as often as it has frames at once."""

    base, cell, sizes = "emu3/emu3_generate_tiny", 2, ((20, 16), (12, 24))
    source = None

    def __init__(self, out: Path, seed: int, _: Path | None) -> None:
        folder, parts = CASES / self.base / "model", ("encoder.", "quant_conv.")
        self.model = Emu3VQVAE(Emu3Config.from_pretrained(folder).vq_config).eval()
        state = load_file(folder / "model.safetensors")
        own = {k.removeprefix("vqmodel."): v for k, v in state.items() if k.startswith("vqmodel.")}
        complete(self.model, own, parts)
        draw(self.model, parts, seed)
        self.model.quant_conv.conv.weight *= 16  # else most latents are nearest to one row
        encoder = {f"vqmodel.{k}": v for k, v in named(self.model, parts).items()}
        save_file(encoder, out / "encoder.safetensors")

    def encode(self, rgb: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        frames = rgb[:, None].repeat(1, self.model.config.temporal_downsample_factor, 1, 1, 1)
        hidden = self.model.encoder(frames).permute(0, 2, 1, 3, 4)
        latents = self.model.quant_conv(hidden)[0, :, 0]
        codes = self.model.encode(rgb, torch.tensor([rgb.shape[2:]])).image_tokens[0]
        return latents, codes, margin_of(latents, self.model.quantize.embedding.weight), {}


class Janus:
    """The official VQModel; transformers' has the same latents and compares rows as they are stored."""

    base, cell, sizes = "janus/janus_generate_8x8", 16, ((128, 128), (80, 80))
    source = {
        "repository": "github:deepseek-ai/Janus",
        "commit": "1daa72fa409002d40931bd7b36a9280362469ead",
        "files": ["janus/models/vq_model.py"],
        "transformers": transformers.__version__,
    }

    def __init__(self, out: Path, seed: int, source: Path | None) -> None:
        assert source, "--source: vq_model.py"
        spec = importlib.util.spec_from_file_location("vq_model", source)
        assert spec and spec.loader
        official = sys.modules["vq_model"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(official)
        prefix, parts = "gen_vision_model.", ("encoder.", "quant_conv.")
        state: recording.State = {}
        for path in (CASES / self.base / "model").glob("*.bin"):
            state |= {
                k.removeprefix(prefix): v
                for k, v in torch.load(path).items()
                if k.startswith(prefix)
            }
        official.Encoder = partial(official.Encoder, ch=32)
        official.Decoder = partial(official.Decoder, ch=32)
        codes, width = state["quantize.embedding.weight"].shape
        z, ones = state["post_quant_conv.weight"].shape[0], [1] * 5
        sizes = {"codebook_size": codes, "codebook_embed_dim": width, "z_channels": z}
        self.model = official.VQModel(
            official.ModelArgs(encoder_ch_mult=ones, decoder_ch_mult=ones, **sizes)
        ).eval()
        complete(self.model, state, parts)
        draw(self.model, parts, seed)
        encoder = {f"{prefix}{k}": v for k, v in named(self.model, parts).items()}
        save_file(encoder, out / "encoder.safetensors")
        config = JanusVQVAEConfig(
            embed_dim=width, num_embeddings=codes, latent_channels=z, base_channels=32,
            channel_multiplier=ones,
        )  # fmt: skip
        self.converted = JanusVQVAE(config).eval()
        self.converted.load_state_dict(
            {converted_name(k): v for k, v in self.model.state_dict().items() if "_used" not in k}
        )

    def encode(self, rgb: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        latents = self.model.quant_conv(self.model.encoder(rgb))
        codes = self.model.encode(rgb)[2][2].view(latents.shape[2:])
        again = self.converted.quant_conv(self.converted.encoder(rgb))
        assert float((again - latents).abs().max()) < 1e-5
        other = self.converted.encode(rgb).image_tokens.view(codes.shape)
        facts = {"codes_that_transformers_gives_otherwise": int((other != codes).sum())}
        table = F.normalize(self.model.quantize.embedding.weight, dim=-1)
        return latents[0], codes, margin_of(F.normalize(latents[0], dim=0), table), facts


def converted_name(name: str) -> str:
    """transformers' name of one of the official tensors."""
    name = re.sub(r"^encoder\.conv_blocks\.", "encoder.down.", name)
    name = re.sub(r"^decoder\.conv_blocks\.", "decoder.up.", name).replace(".res.", ".block.")
    for number, block in enumerate(("block_1", "attn_1", "block_2")):
        name = name.replace(f".mid.{number}.", f".mid.{block}.")
    return name


class Cosmos:
    """The discrete tokenizer of videos on one frame, as SimpleAR has it."""

    base, cell, sizes = "cosmos/cosmos_dv_decoder", 16, ((64, 48), (32, 80))
    source = {
        "repository": "github:wdrink/SimpleAR",
        "commit": "d56b6e5cf7f62976062bb46b096c102d5597ea6a",
        "files": ["simpar/model/tokenizer/cosmos_tokenizer/networks/discrete_video.py"],
    }

    def __init__(self, out: Path, seed: int, source: Path | None) -> None:
        sys.path.insert(0, str(source))
        from simpar.model.tokenizer.cosmos_tokenizer.networks import TokenizerConfigs
        from simpar.model.tokenizer.cosmos_tokenizer.networks.discrete_video import (
            CausalDiscreteVideoTokenizer,
        )

        config = {**TokenizerConfigs.DV.value, "channels": 4, "dtype": torch.float32}
        whole = CausalDiscreteVideoTokenizer(**config).float().eval()
        self.model = whole.encoder_jit()
        draw(self.model, ("encoder.", "quant_conv."), seed)
        save_archive(self.model, out / "encoder.jit")

    def encode(self, rgb: Tensor) -> tuple[Tensor, Tensor, Tensor, dict[str, Any]]:
        frame = rgb[:, :, None]
        latents = self.model.quant_conv(self.model.encoder(frame))[0, :, 0]
        codes = self.model(frame)[0][0, 0]
        quantizer = self.model.quantizer
        bounded = quantizer.bound(latents.permute(1, 2, 0))
        margin = (0.5 - (bounded - bounded.round()).abs()).amin(-1)
        latents = (bounded / (quantizer._levels // 2)).permute(2, 0, 1)  # what is rounded
        return latents, codes, margin, {}


def save_archive(model: nn.Module, path: Path) -> None:
    """Parameters and buffers in bf16, without code."""
    root = nn.Module()
    tensors = dict(model.named_parameters()) | dict(model.named_buffers())
    del tensors["quantizer.implicit_codebook"]  # large, and follows from the levels
    for name, tensor in tensors.items():
        *folders, last = name.split(".")
        inner = root
        for folder in folders:
            if not hasattr(inner, folder):
                inner.add_module(folder, nn.Module())
            inner = getattr(inner, folder)
        half = tensor.detach().bfloat16() if tensor.is_floating_point() else tensor.detach()
        inner.register_buffer(last, half)
    torch.jit.script(root).save(str(path))


FAMILIES = {"emu3": Emu3, "janus": Janus, "cosmos": Cosmos}


def image(width: int, height: int, cell: int, seed: int) -> Tensor:
    """Soft random colours with some noise: uint8 [3,h,w]."""
    random = torch.Generator().manual_seed(seed)
    shape = (1, 3, height // cell + 1, width // cell + 1)
    soft = F.interpolate(torch.rand(shape, generator=random), (height, width), mode="bicubic")
    noise = 0.1 * torch.randn(3, height, width, generator=random)
    return ((soft[0] + noise).clamp(0, 1) * 255).round().byte()


def runs(encoder: Any, seed: int) -> Iterator[tuple[dict[str, Any], recording.State]]:
    for number, (width, height) in enumerate(encoder.sizes):
        pixels = image(width, height, encoder.cell, seed + number)
        latents, codes, margin, facts = encoder.encode(pixels.float()[None] / 255 * 2 - 1)
        about = {
            "run": number, "width": width, "height": height, "least_margin": float(margin.min()),
            "distinct_codes": int(codes.unique().numel()), **facts,
        }  # fmt: skip
        found = {
            "image": pixels.permute(1, 2, 0), "latents": latents, "codes": codes.int(), "margin": margin
        }  # fmt: skip
        yield about, {f"{name}_{number}": tensor for name, tensor in found.items()}


@torch.inference_mode()
def record(out: Path, family: str, seed: int, source: Path | None) -> None:
    out.mkdir(parents=True)
    encoder = FAMILIES[family](out, seed, source)
    component = f"the image encoder of {family}: pixels, latents, codes"
    base = {"completes": encoder.base}
    recording.write_case(out, component, base, seed, runs(encoder, seed), TOLERANCE, encoder.source)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--source", type=Path, help="the official code")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    record(options.out, options.family, options.seed, options.source)
