#!/usr/bin/env python3
"""Times what people would use instead of this engine on a GPU: a plain decoder with a static cache under torch.compile.

    python3 scripts/peer_compiled.py --shape llamagen-xl [--rows 1,16]

runs steps of a decoder with random weights, mode "reduce-overhead" (CUDA graphs), bf16, guidance and top-k sampling
included, as gpt-fast does, and prints milliseconds a step, compiled and eager. Rows are positions of a sequence; with
guidance two sequences run. `lamplighter bench --synthetic` measures the same shapes.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

GUIDANCE, TOP_K = 2.0, 1000
BATCHES, STEPS = 5, 30  # the median of five means over thirty steps


@dataclass(frozen=True)
class Shape:
    width: int
    layers: int
    heads: int
    head_size: int
    hidden: int
    vocabulary: int
    slots: int  # of the cache
    position: int  # where steps are measured: the middle of an image


SHAPES = {
    "llamagen-xl": Shape(1280, 36, 20, 64, 3456, 16384, 384, 248),
    "anole": Shape(4096, 32, 32, 128, 11008, 65536, 1152, 572),
    "tiny": Shape(64, 2, 2, 32, 128, 256, 64, 16),  # to try the script
}


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        inner = shape.heads * shape.head_size
        self.shape = shape
        self.attention_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.qkv = nn.Linear(shape.width, 3 * inner, bias=False)
        self.attention_out = nn.Linear(inner, shape.width, bias=False)
        self.mlp_norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.gate_up = nn.Linear(shape.width, 2 * shape.hidden, bias=False)
        self.down = nn.Linear(shape.hidden, shape.width, bias=False)
        for name in ("keys", "values"):
            cache = torch.zeros(2, shape.heads, shape.slots, shape.head_size)
            self.register_buffer(name, cache)

    def forward(
        self, x: Tensor, positions: Tensor, mask: Tensor, turn: tuple[Tensor, Tensor]
    ) -> Tensor:
        sequences, rows, _ = x.shape
        parts = self.qkv(self.attention_norm(x)).view(sequences, rows, 3, self.shape.heads, -1)
        query, key, value = parts.unbind(2)
        self.keys[:, :, positions] = rotated(key, turn).transpose(1, 2)
        self.values[:, :, positions] = value.transpose(1, 2)
        query = rotated(query, turn).transpose(1, 2)
        attended = F.scaled_dot_product_attention(query, self.keys, self.values, attn_mask=mask)
        x = x + self.attention_out(attended.transpose(1, 2).reshape(sequences, rows, -1))
        gate, up = self.gate_up(self.mlp_norm(x)).chunk(2, -1)
        return x + self.down(F.silu(gate) * up)


def rotated(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    cos, sin = turn
    first, second = x.float().chunk(2, -1)
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1).to(x.dtype)


class Decoder(nn.Module):
    """One step: the next token of every row, sampled after guidance and top-k."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = nn.RMSNorm(shape.width, eps=1e-5)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)

    def forward(
        self, tokens: Tensor, positions: Tensor, mask: Tensor, turn: tuple[Tensor, Tensor]
    ) -> Tensor:
        x = self.embedding(tokens).expand(2, -1, -1)
        for layer in self.layers:
            x = layer(x, positions, mask, turn)
        conditional, unconditional = self.head(self.norm(x)).float()
        logits = unconditional + (conditional - unconditional) * GUIDANCE
        kept = torch.topk(logits, min(TOP_K, logits.shape[-1]), dim=-1).values[..., -1:]
        probabilities = torch.softmax(torch.where(logits < kept, float("-inf"), logits), -1)
        return (probabilities / torch.empty_like(probabilities).exponential_(1)).argmax(-1)


def inputs(
    shape: Shape, rows: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, tuple[Tensor, Tensor]]:
    positions = torch.arange(shape.position, shape.position + rows, device=device)
    mask = torch.zeros(1, 1, rows, shape.slots, device=device, dtype=torch.bfloat16)
    mask[..., shape.position + rows :] = float("-inf")
    angles = torch.rand(rows, 1, shape.head_size // 2, device=device)
    tokens = torch.zeros(rows, dtype=torch.long, device=device)
    return tokens, positions, mask, (angles.cos(), angles.sin())


def milliseconds(step: Callable[[], Tensor], device: torch.device, steps: int) -> float:
    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize()

    wait()
    begin = time.perf_counter()
    for _ in range(steps):
        step()
    wait()
    return 1000 * (time.perf_counter() - begin) / steps


@torch.no_grad()
def measure(decoder: Decoder, shape: Shape, rows: int, device: torch.device) -> str:
    given = inputs(shape, rows, device)
    compiled = torch.compile(decoder, mode="reduce-overhead", fullgraph=True)
    begin = time.perf_counter()
    for _ in range(4):  # compiles, then captures
        compiled(*given)
    spent = time.perf_counter() - begin
    times = [milliseconds(lambda: compiled(*given), device, STEPS) for _ in range(BATCHES)]
    decoder(*given)
    eager = milliseconds(lambda: decoder(*given), device, BATCHES)
    return f"| {rows} | {statistics.median(times):.3f} | {min(times):.3f} | {eager:.3f} | {spent:.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shape", choices=list(SHAPES), default="llamagen-xl")
    parser.add_argument(
        "--rows", default="1,16", help="positions of a sequence, with commas between them"
    )
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    device, shape = torch.device(arguments.device), SHAPES[arguments.shape]
    torch.manual_seed(0)
    with device:
        decoder = Decoder(shape).to(torch.bfloat16).eval()
    print(f"{arguments.shape}, bf16, {device}, Torch {torch.__version__}; milliseconds a step")
    print("| rows | compiled | least | eager | seconds to compile |\n|---|---|---|---|---|")
    for rows in (int(number) for number in arguments.rows.split(",")):
        print(measure(decoder, shape, rows, device), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
