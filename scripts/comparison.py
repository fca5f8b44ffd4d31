"""Shared by scripts that compare the engine with another program: reads weights and measures times."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
PROGRAM = ROOT / "build" / "lamplighter"


def engine_ms(
    bundle: Path, dtype: str, threads: int, repeats: int, methods: str = "ar",
    prompts: tuple[str, ...] = (), device: str = "cpu", program: Path = PROGRAM,
) -> dict[str, float]:  # fmt: skip
    """Median milliseconds per token of the engine, by method; `bench` always adds `ar`."""
    command = [
        str(program), "bench", "--model", str(bundle), "--methods", methods,
        "--dtype", dtype, "--threads", str(threads), "--repeats", str(repeats),
        "--device", device, "--json",
    ]  # fmt: skip
    for prompt in prompts:
        command += ["--prompt", prompt]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    times: dict[str, list[float]] = {}
    for sample in json.loads(result.stdout)["samples"]:
        each = sample["decode_ms"] / (sample["tokens"] - 1)
        times.setdefault(sample["method"], []).append(each)
    return {name: statistics.median(values) for name, values in times.items()}


def ms_per_token(generate: Callable[[int], object], tokens: int, least: int = 1) -> float:
    """Times `generate(count)` at `least` and at `tokens` tokens; the difference excludes the prefill."""
    times = []
    for count in (least, tokens):
        start = time.perf_counter()
        generate(count)
        times.append(time.perf_counter() - start)
    return 1000 * (times[1] - times[0]) / (tokens - least)


def plain_gpt(bundle: Path) -> tuple[Any, dict[str, Any], Any, dict[str, Any]]:
    """Reads a bundle: the target's configuration, its weights by official names, its rotary table; the manifest."""
    from models import ops
    from models.demo.enlarger import read_weights
    from models.llamagen.config import GPTConfig

    ops.load()
    manifest = json.loads((bundle / "manifest.json").read_text())
    module, stored = read_weights(bundle / manifest["modules"]["target"]["file"])
    weights = {name: tensor.float() for name, tensor in stored.items()}
    layers = manifest["cache"]["layers"]
    config = GPTConfig(
        dim=manifest["target"]["hidden"],
        n_layer=layers,
        n_head=manifest["target"]["hidden"] // manifest["cache"]["head_dim"],
        n_kv_head=manifest["cache"]["kv_heads"],
        ffn_dim=weights["layers.0.w2"].shape[1],
        vocab_size=manifest["tokens"]["vocabulary"],
        grid=manifest["grids"][0]["rows"],
        cls_token_num=manifest["prompt"]["length"],
        caption_dim=manifest["prompt"]["features"],
        norm_eps=module.eps,
    )
    state = {
        "tok_embeddings.weight": weights["embedding"],
        "output.weight": weights["head"],
        "norm.weight": weights[f"layers.{layers - 1}.feed_norm"],
        "cls_embedding.cap_proj.fc1.weight": weights["fc1"],
        "cls_embedding.cap_proj.fc2.weight": weights["fc2"],
        "cls_embedding.uncond_embedding": weights["null_features"],
    }
    for index in range(layers):
        name = f"layers.{index}."
        w1, w3 = weights[name + "w13"].chunk(2)
        norm = weights[f"layers.{index - 1}.feed_norm"] if index else weights["first_norm"]
        state |= {
            name + "attention.wqkv.weight": weights[name + "wqkv"],
            name + "attention.wo.weight": weights[name + "wo"],
            name + "feed_forward.w1.weight": w1,
            name + "feed_forward.w3.weight": w3,
            name + "feed_forward.w2.weight": weights[name + "w2"],
            name + "attention_norm.weight": norm,
            name + "ffn_norm.weight": weights[name + "attention_norm"],
        }
    return config, state, weights["rotary"], manifest


def print_table(times: dict[str, list[float]], baseline: str) -> None:
    """Prints minima and medians; the minimum is the cost of a program, the rest is load of other programs."""
    width = max(map(len, times))
    print(f"{'program':{width}s} ms/token (min)   median   {baseline} / this (medians)")
    middle = statistics.median(times[baseline])
    for name, values in times.items():
        median = statistics.median(values)
        print(f"{name:{width}s} {min(values):14.3f} {median:8.3f} {middle / median:12.2f}")
