#!/usr/bin/env python3
"""Measures the error of rounding: a target's teacher-forced distributions in bf16, int8 and int4.

    .venv/bin/python scripts/compare_precision.py [--bundle DIR] --captions FILE [-n 64]

generates the first n lines of FILE with the engine in bf16 at temperature 1, runs the target over these tokens in
every precision, and compares all guided distributions with bf16: mean KL(bf16 || other) in millinats, the share of
tokens with the same likeliest code, and the mean of the largest difference of a probability. fp32 shows the error
of bf16 itself; "int8 cache" rounds only keys and values.

    .venv/bin/python scripts/compare_precision.py --random-7b [--layers 32] [--tokens 1024]

runs two images of random codes through random weights with the shape of the 7B Chameleon, which Anole and
Lumina-mGPT share, and prints the error of the logits relative to bf16. It keeps one block at a time in memory.
"""

from __future__ import annotations

import argparse
import copy
import operator
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from models import ops
from models.chameleon.config import ChameleonConfig, TokenIds
from models.chameleon.target_module import block_shape
from models.chameleon.transformer import weight_shapes
from models.eagle.data import BUILD, generate_codes, read_codes, read_lines
from models.eagle.features import (
    Ids,
    TargetModel,
    load_module,
    load_target,
    prompt_ids,
    target_features,
    with_row_ends,
)
from models.export.command import run_command
from models.llamagen.target_module import TargetModule
from models.llamagen.text_encoder_module import TextEncoderLayer
from models.ops import lamplighter
from models.transformer.decoder import block_reader
from models.transformer.layer import Layer
from models.transformer.rotary import line_table

FP8 = -8  # e4m3, which takes as many bytes as int8
PRECISIONS = {"fp32": 32, "bf16": 16, "int8": 8, "fp8 (e4m3)": FP8, "int4": 4}
ROUNDED_CACHE = "bf16, int8 cache"
PRODUCTS = {*Layer.PRODUCTS, *TargetModule.PRODUCTS, *TextEncoderLayer.PRODUCTS}
IMAGES = 8  # per pass


def kind_of(bits: int) -> torch.dtype:
    return torch.float32 if bits == 32 else torch.bfloat16


def as_fp8(weight: Tensor) -> Tensor:
    """Rounds weights [out,in] to e4m3 with one scale per row, and returns them in bf16."""
    scale = weight.float().abs().amax(1, keepdim=True).clamp_min(1e-30) / 448
    return ((weight.float() / scale).to(torch.float8_e4m3fn).float() * scale).bfloat16()


def rounded(weight: Tensor, bits: int) -> Tensor:
    """Rounds weights bf16 [out,in] to fewer bits, in the form that products take."""
    return as_fp8(weight) if bits == FP8 else lamplighter.round_linear(weight, bits)


def prepare(module: Any, bits: int) -> None:
    """Prepares a module in fp32 or bf16, or in bf16 with rounded weights of products."""
    for name, weight in list(module.named_buffers()):
        part, _, leaf = name.rpartition(".")
        if bits < 16 and leaf in PRODUCTS and weight.dim() == 2:
            own = rounded(weight.bfloat16(), bits)
            own = own if bits == FP8 else lamplighter.pack_linear(own)
            setattr(operator.attrgetter(part)(module) if part else module, leaf, own)
    module.prepare(torch.zeros(1, dtype=kind_of(bits)))


def loaded(file: Path, bits: int) -> torch.jit.ScriptModule:
    module = load_module(file)
    prepare(module, bits)
    return module


def in_precision(model: TargetModel, bits: int) -> TargetModel:
    entries = model.manifest["modules"]
    target = loaded(model.bundle / entries["target"]["file"], bits)
    encoder = None
    if model.text_encoder is not None:
        encoder = loaded(model.bundle / entries["text_encoder"]["file"], bits)
    return replace(model, target=target, text_encoder=encoder)


@torch.inference_mode()
def distributions(model: TargetModel, codes: Tensor, prompts: list[list[Ids]]) -> Tensor:
    """Log-probabilities fp32 [n,M,V] of the tokens [n,M], guided, at temperature 1."""
    features, _ = target_features(model, with_row_ends(model, codes), prompts)
    rows = features[:, :, model.prompt_length - 1 :]
    kind = model.target.embed(torch.zeros(1, 1, dtype=torch.int64)).dtype
    logits = model.target.logits(rows.flatten(0, 1).to(kind).contiguous()).float()
    logits = logits.unflatten(0, rows.shape[:2])
    guided = logits[:, 0]
    if model.sequences == 2:
        guided = logits[:, 1] + model.guidance * (logits[:, 0] - logits[:, 1])
    return guided.log_softmax(-1)


def compare(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    model = load_target(options.bundle)
    captions = [line for line in read_lines(options.captions) if line.strip()][: options.images]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "codes.json"
        generate_codes(model, captions, 0, file, options.build / "lamplighter")
        codes = read_codes(file)
    prompts = prompt_ids(model, captions, options.build)
    models = {name: in_precision(model, bits) for name, bits in PRECISIONS.items()}
    models[ROUNDED_CACHE] = replace(models["bf16"], rounded_cache=True)
    sums = {name: torch.zeros(3, dtype=torch.float64) for name in models}
    tokens = 0
    for first in range(0, len(captions), IMAGES):
        part = slice(first, first + IMAGES)
        found = {n: distributions(m, codes[part], prompts[part]) for n, m in models.items()}
        exact = found["bf16"]
        tokens += exact[..., 0].numel()
        for name, other in found.items():
            divergence = (exact.exp() * (exact - other)).sum(-1)
            same = (exact.argmax(-1) == other.argmax(-1)).double()
            largest = (exact.exp() - other.exp()).abs().amax(-1)
            sums[name] += torch.stack([t.double().sum() for t in (divergence, same, largest)])
    print(f"{len(captions)} images, {tokens} tokens, against bf16\n")
    print(
        "| precision | KL, millinats | same likeliest code | largest difference of a probability |"
    )
    print("|---|---|---|---|")
    for name, (divergence, same, largest) in sums.items():
        if name != "bf16":
            shares = f"{1000 * divergence / tokens:.2f} | {100 * same / tokens:.1f} %"
            print(f"| {name} | {shares} | {largest / tokens:.4f} |")


def random_weight(name: str, shape: tuple[int, ...]) -> Tensor:
    """A random bf16 weight that preserves the norm of its input; norms scale by one."""
    if name.endswith("bias"):
        return torch.zeros(shape, dtype=torch.bfloat16)
    if len(shape) == 1 or "norm" in name:
        return torch.ones(shape, dtype=torch.bfloat16)
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return (torch.randn(shape, generator=generator) * shape[1] ** -0.5).bfloat16()


@torch.inference_mode()
def compare_random(options: argparse.Namespace) -> None:
    torch.set_num_threads(options.threads)
    ops.load()
    config = ChameleonConfig(n_layer=options.layers)
    shapes = weight_shapes(config)
    sequences, tokens = 2, options.tokens
    rotary = line_table(tokens, config.head_dim, config.rope_base)
    positions = torch.arange(tokens).expand(sequences, -1).contiguous()
    causal, lengths = torch.empty(0, dtype=torch.int64), torch.zeros(sequences, dtype=torch.int64)
    x = torch.randn(sequences, tokens, config.dim, generator=torch.Generator().manual_seed(0))
    rows = {name: x.to(kind_of(bits)) for name, bits in PRECISIONS.items()}

    def read(name: str) -> Tensor:
        return random_weight(name, shapes[name])

    states = {name: (x, F.rms_norm(x, (config.dim,))) for name, x in rows.items()}
    for number in range(config.n_layer):
        block = Layer(block_shape(config), 0, block_reader(read, number, config.n_layer, False))
        for name, (residual, h) in states.items():
            one = copy.deepcopy(block)
            prepare(one, PRECISIONS[name])
            shape = (1, 2, sequences, config.n_kv_head, tokens, config.head_dim)
            cache = torch.zeros(shape, dtype=residual.dtype)
            h = one.forward(residual, h, positions, causal, lengths, rotary, cache)
            states[name] = (residual, h)
        print(f"block {number + 1} of {config.n_layer}", file=sys.stderr)
    head = read("head")[: TokenIds().codebook_size]
    logits = {}
    for name, (_, h) in states.items():
        weight = head.to(h.dtype)
        if PRECISIONS[name] < 16:
            weight = rounded(weight, PRECISIONS[name])
        weight = lamplighter.pack_linear(weight)
        logits[name] = lamplighter.linear(h, weight, len(head)).float()
    exact = logits["bf16"]
    print(f"{config.n_layer} layers, {sequences} images of {tokens} tokens, against bf16\n")
    print("| precision | relative error of the logits | same likeliest code |\n|---|---|---|")
    for name, other in logits.items():
        if name != "bf16":
            error = (other - exact).norm() / exact.norm()
            same = (other.argmax(-1) == exact.argmax(-1)).float().mean()
            print(f"| {name} | {error:.4f} | {100 * same:.1f} % |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    demo = Path(__file__).resolve().parent.parent / "models" / "demo" / "bundle"
    parser.add_argument("--bundle", type=Path, default=demo)
    parser.add_argument("--captions", type=Path, help="text file, one caption per line")
    parser.add_argument("--random-7b", action="store_true", help="random weights, no bundle")
    parser.add_argument("--layers", type=int, default=32, help="layers of --random-7b")
    parser.add_argument("--tokens", type=int, default=1024, help="tokens per image of --random-7b")
    parser.add_argument("-n", "--images", type=int, default=64)
    parser.add_argument("-t", "--threads", type=int, default=1)
    parser.add_argument("--build", type=Path, default=BUILD, help="folder of the programs")
    options = parser.parse_args()
    if not options.random_7b and options.captions is None:
        parser.error("expected --captions or --random-7b")
    return run_command(lambda: compare_random(options) if options.random_7b else compare(options))


if __name__ == "__main__":
    sys.exit(main())
