#!/usr/bin/env python3
"""Times the engine's matrix products with rounded weights beside ggml's, which llama.cpp uses.

    .venv/bin/pip install ggml-python
    .venv/bin/python scripts/compare_ggml.py [--layers 24] [--rounds 15]

multiplies all weights of a decoder of LlamaGen-L's width, layer by layer as in a step, by 1 to 16 rows on one
thread: bf16, int8 and int4 by lamplighter::linear, Q8_0 and Q4_0 by ggml_mul_mat. Rounds are interleaved. The
table gives the tenth percentile in milliseconds, and its share of the time of bf16 with as many rows. ggml stores
a scale for every 32 weights (8.5 and 4.5 bits per weight) and reads fp32 rows.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from models import ops
from models.ops import lamplighter

WIDTH, HIDDEN = 1024, 2816
SHAPES = ((3 * WIDTH, WIDTH), (WIDTH, WIDTH), (2 * HIDDEN, WIDTH), (WIDTH, HIDDEN))  # [out, in]
ROWS = (1, 2, 4, 8, 12, 16)
Product = Callable[[], None]


def ours(weights: list[torch.Tensor], bits: int, rows: int) -> Product:
    """All products of one pass with the engine's operator."""
    packed = [
        lamplighter.pack_linear(lamplighter.round_linear(w, bits) if bits < 16 else w)
        for w in weights
    ]
    inputs = {width: torch.randn(rows, width).bfloat16() for width in (WIDTH, HIDDEN)}
    sizes = [tuple(w.shape) for w in weights]

    def run() -> None:
        for weight, (out, width) in zip(packed, sizes):
            lamplighter.linear(inputs[width], weight, out)

    return run


def theirs(weights: list[torch.Tensor], kind: str, rows: int) -> Product:
    """All products of one pass with ggml, as one graph."""
    import ggml

    code = {"Q8_0": ggml.GGML_TYPE_Q8_0, "Q4_0": ggml.GGML_TYPE_Q4_0}[kind]
    count = sum(w.numel() for w in weights)
    outputs = sum(w.shape[0] for w in weights) * rows * 4
    memory = int(count * 1.1) + outputs + (64 << 20)
    context = ggml.ggml_init(
        ggml.ggml_init_params(mem_size=memory, mem_buffer=None, no_alloc=False)
    )
    graph = ggml.ggml_new_graph(context)
    inputs = {}
    for width in (WIDTH, HIDDEN):
        tensor = ggml.ggml_new_tensor_2d(context, ggml.GGML_TYPE_F32, width, rows)
        values = np.random.default_rng(0).standard_normal((rows, width), np.float32)
        ctypes.memmove(ggml.ggml_get_data(tensor), values.ctypes.data, values.nbytes)
        inputs[width] = tensor
    for weight in weights:
        out, width = weight.shape
        values = weight.float().contiguous().numpy()
        tensor = ggml.ggml_new_tensor_2d(context, code, width, out)
        source = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        ggml.ggml_quantize_chunk(code, source, ggml.ggml_get_data(tensor), 0, out, width, None)
        ggml.ggml_build_forward_expand(graph, ggml.ggml_mul_mat(context, tensor, inputs[width]))
    plan = ggml.ggml_graph_plan(graph, 1, None)
    work = (ctypes.c_uint8 * max(1, plan.work_size))()
    plan.work_data = ctypes.cast(work, type(plan.work_data))

    def run() -> None:
        _ = work  # keeps the memory of the plan alive
        ggml.ggml_graph_compute(graph, ctypes.byref(plan))

    return run


def measure(products: dict[str, Product], rounds: int) -> dict[str, float]:
    """Returns thread milliseconds: the tenth percentile of interleaved rounds."""
    times: dict[str, list[float]] = {name: [] for name in products}
    for turn in range(rounds + 1):
        for name, run in products.items():
            begin = time.thread_time()
            run()
            if turn > 0:
                times[name].append((time.thread_time() - begin) * 1e3)
    return {name: float(np.percentile(all_, 10)) for name, all_ in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--layers", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    ops.load()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    weights = [torch.randn(shape).bfloat16() for _ in range(options.layers) for shape in SHAPES]
    print("| rows | bf16, ms | int8 | int4 | Q8_0 | Q4_0 |\n|---|---|---|---|---|---|")
    for rows in ROWS:
        products = {f"{bits}": ours(weights, bits, rows) for bits in (16, 8, 4)}
        products.update({kind: theirs(weights, kind, rows) for kind in ("Q8_0", "Q4_0")})
        found = measure(products, options.rounds)
        cells = [f"{ms:.2f} ({ms / found['16']:.2f})" for ms in list(found.values())[1:]]
        print(f"| {rows} | {found['16']:.2f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
