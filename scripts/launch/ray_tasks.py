"""A caption set as Ray tasks: one a GPU, each a process of its own that draws its part into one shared folder.

python scripts/launch/ray_tasks.py 8 captions_val2017.json /shared/out --select longest
"""

from __future__ import annotations

import subprocess
import sys

import ray


@ray.remote(num_gpus=1, max_retries=10)
def draw(part: int, parts: int, captions: str, out: str, flags: list[str]) -> None:
    """Ray shows each task its own GPU; one that is lost is begun again and goes on where it stopped."""
    command = ["lamplighter", "batch", captions, "-o", out, "--shard", f"{part}/{parts}", *flags]
    subprocess.run(command, check=True)


def main() -> None:
    parts, captions, out, *flags = sys.argv[1:]
    ray.init()
    ray.get([draw.remote(i, int(parts), captions, out, flags) for i in range(int(parts))])
    subprocess.run(["lamplighter", "batch", "--merge", out], check=True)


if __name__ == "__main__":
    main()
