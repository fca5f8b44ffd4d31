"""Times the denoising chain of MAR targets on one thread: milliseconds of `denoise` by number of tokens.

    .venv/bin/python scripts/measure_chain.py --make B new.pt
    .venv/bin/python scripts/measure_chain.py --make B old.pt --tree OLDER_CHECKOUT
    .venv/bin/python scripts/measure_chain.py old.pt new.pt

An archive can also be the target.pt of a bundle. Calls are interleaved; ratios compare neighbouring calls with the
first archive.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parent.parent
# Width of z, depth and width of the head, steps; without the transformer, which the chain does not use.
HEADS = {"B": (768, 6, 1024, "100"), "demo": (128, 3, 160, "25@40")}
CHANNELS = 16


def make(size: str, out: Path) -> None:
    """Writes a target with a head of random weights."""
    from models.mar.config import MARConfig, square_shape
    from models.mar.diffusion import schedule
    from models.mar.network import MAR
    from models.mar.target_module import TargetModule

    hidden, depth, width, respacing = HEADS[size]
    stack = square_shape(hidden, 0, 1)
    torch.manual_seed(1)
    model = MAR(MARConfig(4, CHANNELS, 2, 1, stack, stack, depth, width)).requires_grad_(False)
    torch.jit.script(TargetModule(model, schedule(respacing)).eval()).save(str(out))


def inputs(module: nn.Module, tokens: int, guided: bool) -> list[Tensor]:
    """Inputs of `denoise` with the magnitude of trained ones."""
    buffers = dict(module.named_buffers())
    hidden, steps = buffers["head_positions"].shape[1], len(buffers["head.tables"])
    z, other = torch.randn(2, tokens, hidden)
    start, noise = torch.randn(tokens, CHANNELS), torch.randn(tokens, steps, CHANNELS)
    scale, temperature = torch.full((tokens,), 2.0), torch.full((tokens,), 0.95)
    return [z, other if guided else other[:0], scale, start, noise, temperature]


@torch.inference_mode()
def compare(archives: list[Path], tokens: list[int], seconds: float) -> None:
    modules = [torch.jit.load(str(path)) for path in archives]
    calls = {(n, guided): inputs(modules[0], n, guided) for n in tokens for guided in (False, True)}
    for module in modules:
        module.prepare(torch.empty(0))
    print("| tokens | " + " | ".join(f"{path} ms | ratio" for path in archives) + " |")
    print("|---|" + "---|---|" * len(archives))
    for (count, guided), call in calls.items():
        times: list[list[float]] = [[] for _ in modules]
        end = time.monotonic() + seconds
        while len(times[0]) < 4 or time.monotonic() < end:
            for module, found in zip(modules, times, strict=True):
                begin = time.thread_time()
                module.denoise(*call)
                found.append(1000 * (time.thread_time() - begin))
        rounds = list(zip(*times, strict=True))[1:]  # the first one compiles
        cells = []
        for which in range(len(modules)):
            ratio = statistics.median(row[0] / row[which] for row in rounds)
            cells.append(f"{min(row[which] for row in rounds):.3g} | {ratio:.2f}")
        print(f"| {count}{' guided' if guided else ''} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", nargs="+", type=Path)
    parser.add_argument("--make", choices=HEADS, help="write an archive of this size instead")
    parser.add_argument(
        "--tree", type=Path, default=ROOT, help="checkout with the network for --make"
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[1, 8, 64])
    parser.add_argument("--seconds", type=float, default=10, help="for each row")
    options = parser.parse_args()
    sys.path.insert(0, str(options.tree))
    from models import ops

    ops.load()
    torch.set_num_threads(1)
    if options.make:
        make(options.make, options.archives[0])
    else:
        compare(options.archives, options.tokens, options.seconds)


if __name__ == "__main__":
    main()
