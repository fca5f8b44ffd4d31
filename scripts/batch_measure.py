"""Measures images per second and memory of `lamplighter batch`, in Markdown.

python scripts/batch_measure.py speed CAPTIONS [--images 48] [--rounds 3] [-- FLAGS]
python scripts/batch_measure.py memory CAPTIONS [--at 100 2000] [-- FLAGS]

`speed` interleaves all variants and prints medians, start-up included. FLAGS go to lamplighter.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PROGRAM = Path(__file__).resolve().parent.parent / "build" / "lamplighter"
SIZES = (1, 2, 4, 8, 16)


def seconds(run: Callable[[Path], None]) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        run(Path(folder))
        return time.perf_counter() - begin


def call(*words: object) -> None:
    subprocess.run([str(PROGRAM), *(str(word) for word in words)], check=True, capture_output=True)


def speed(captions: Path, images: int, rounds: int, flags: list[str]) -> None:
    prompts = [each["caption"] for each in json.loads(captions.read_text())["annotations"]]
    few = max(1, images // 4)  # one process per image is slow

    def loop(folder: Path) -> None:
        for number, prompt in enumerate(prompts[:few]):
            call("generate", "-p", prompt, "-o", folder / f"{number}.png", *flags)

    def batch(size: int) -> Callable[[Path], None]:
        return lambda folder: call(
            "batch", captions, "--limit", images, "-o", folder, "--batch-size", size, *flags
        )

    rows: dict[str, tuple[int, Callable[[Path], None]]] = {
        "`generate` in a loop": (few, loop),
        **{f"`batch --batch-size {size}`": (images, batch(size)) for size in SIZES},
    }
    rates: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, (count, run) in rows.items():
            rates[name].append(count / seconds(run))
    print("| | images/s | ratio |\n|---|---|---|")
    first = statistics.median(next(iter(rates.values())))
    for name, values in rates.items():
        rate = statistics.median(values)
        print(f"| {name} | {rate:.2f} | {rate / first:.2f} |")


def memory(captions: Path, at: list[int], flags: list[str]) -> None:
    print("| images | resident MB |\n|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        words = ["batch", captions, "-o", folder, *flags]
        process = subprocess.Popen(
            [str(PROGRAM), *(str(word) for word in words)], stdout=subprocess.DEVNULL
        )
        for count in sorted(at):
            while sum(1 for _ in Path(folder, "images").glob("*")) < count:
                time.sleep(0.2)
            status = Path(f"/proc/{process.pid}/status").read_text()
            kilobytes = next(line.split()[1] for line in status.splitlines() if "VmRSS" in line)
            print(f"| {count} | {int(kilobytes) / 1024:.0f} |", flush=True)
        process.terminate()
        process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["speed", "memory"])
    parser.add_argument("captions", type=Path)
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at", type=int, nargs="+", default=[100, 2000])
    split = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    args, flags = parser.parse_args(sys.argv[1:split]), sys.argv[split + 1 :]
    if args.what == "speed":
        speed(args.captions, args.images, args.rounds, flags)
    else:
        memory(args.captions, args.at, flags)


if __name__ == "__main__":
    main()
