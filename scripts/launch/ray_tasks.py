"""Runs a caption set as Ray tasks: one process per GPU, all into one shared folder.

python scripts/launch/ray_tasks.py 8 captions_val2017.json /shared/out --select longest
"""

from __future__ import annotations

import subprocess
import sys

import ray


@ray.remote(num_gpus=1, max_retries=10)
def generate(part: int, parts: int, captions: str, out: str, flags: list[str]) -> None:
    """Generates one part on the task's GPU. Ray restarts a lost task, which continues where it stopped."""
    command = ["lamplighter", "batch", captions, "-o", out, "--shard", f"{part}/{parts}", *flags]
    subprocess.run(command, check=True)


def main() -> None:
    parts, captions, out, *flags = sys.argv[1:]
    ray.init()
    ray.get([generate.remote(i, int(parts), captions, out, flags) for i in range(int(parts))])
    subprocess.run(["lamplighter", "batch", "--merge", out], check=True)


if __name__ == "__main__":
    main()
