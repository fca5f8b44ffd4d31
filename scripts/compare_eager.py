"""Times the engine against the plain PyTorch definition run eagerly on the same weights.

Both decode the same caption with guidance at batch 1, on the same device and number of threads, in interleaved
rounds, in fp32 and in bf16. The script also prints the cost of a layer. The last line is `ratio R`: time per token
of eager fp32 over the engine at its default precision.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from collections.abc import Callable
from pathlib import Path

from comparison import PROGRAM, ROOT, engine_ms, ms_per_token, plain_gpt

OPERATORS_PER_LAYER = 8  # qkv, attend, wo, norm, w1|w3, silu_mul, w2, norm


def load_plain(bundle: Path):  # noqa: ANN201
    """Returns the plain GPT with the weights of a bundle's target, and the bundle's manifest."""
    import torch

    from models.llamagen.gpt import GPT

    config, state, rotary, manifest = plain_gpt(bundle)
    model = GPT(config).eval()
    model.load_state_dict(state)
    model.rotation = torch.view_as_complex(rotary.contiguous())[:, None]
    return model, manifest


def eager_runner(bundle: Path, device: str, compiled: bool) -> Callable[[str], float]:
    """Returns a function that decodes one image eagerly and returns milliseconds per token."""
    import torch

    from models.llamagen.generate import generate

    plain, manifest = load_plain(bundle)
    models = {"fp32": plain.to(device), "bf16": load_plain(bundle)[0].bfloat16().to(device)}
    if compiled:
        models["compiled bf16"] = load_plain(bundle)[0].bfloat16().to(device)
        for layer in models["compiled bf16"].layers:
            layer.step = torch.compile(layer.step, dynamic=True)  # positions vary
    for model in models.values():
        model.rotation = model.rotation.to(device)  # not a registered buffer
    sampling = manifest["sampling"]
    length, width = manifest["prompt"]["length"], manifest["prompt"]["features"]
    valid = min(12, length)
    features = torch.randn(1, length, width, device=device)
    mask = torch.zeros(1, length, dtype=torch.long, device=device)
    mask[:, -valid:] = 1

    def run(dtype: str) -> float:
        model = models[dtype]
        cond = (features * mask[..., None]).to(model.output.weight.dtype)
        settings = {k: sampling[k] for k in ("cfg_scale", "temperature", "top_k", "top_p")}

        def generate_image(tokens: int) -> None:
            generate(model, cond, mask, tokens=tokens, **settings).cpu()  # waits for a device

        return ms_per_token(generate_image, model.config.tokens)

    if compiled:
        run("compiled bf16")  # compiles
    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, default=ROOT / "models" / "demo" / "bundle")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--compile", action="store_true", help="time torch.compile of the layers too"
    )
    parser.add_argument("--program", type=Path, default=PROGRAM, help="program of the engine")
    options = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    import torch

    torch.set_num_threads(options.threads)
    eager = eager_runner(options.model, options.device, options.compile)
    where = {"device": options.device, "program": options.program}
    times: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for dtype in ("fp32", "bf16"):
            times.setdefault(f"eager {dtype}", []).append(eager(dtype))
            engine = engine_ms(options.model, dtype, options.threads, 3, **where)
            times.setdefault(f"engine {dtype}", []).append(engine["ar"])
        if options.compile:
            times.setdefault("compiled bf16", []).append(eager("compiled bf16"))
        engine = engine_ms(options.model, "auto", options.threads, 3, **where)
        times.setdefault("engine default", []).append(engine["ar"])

    # The minimum of interleaved rounds is the cost of the program; the rest is load of other programs.
    best = {name: min(values) for name, values in times.items()}
    layers = json.loads((options.model / "manifest.json").read_text())["cache"]["layers"]
    print(f"{options.threads} thread(s), batch 1, guided, {options.rounds} interleaved rounds")
    print("program         ms/token (min)   median   eager fp32 / this")
    for name, values in times.items():
        print(
            f"{name:15s} {best[name]:14.3f} {statistics.median(values):8.3f} "
            f"{best['eager fp32'] / best[name]:19.2f}"
        )
    print(
        f"{OPERATORS_PER_LAYER} operators and {1000 * best['engine default'] / layers:.0f} us per layer "
        f"({layers} layers; head, guidance, filter and sampling included)"
    )
    print(f"ratio {best['eager fp32'] / best['engine default']:.2f}")


if __name__ == "__main__":
    main()
