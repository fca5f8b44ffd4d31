"""Archives of modules: the same bytes from every process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
NAMES = [f"flag_{name}" for name in "abcdefgh"]
PROGRAM = """
import sys
from pathlib import Path
import torch
from torch import Tensor, nn
from torch.jit import Final
from models.archive import write_archive


class Flags(nn.Module):
{fields}

    def __init__(self) -> None:
        super().__init__()
{values}
        self.register_buffer("weight", torch.arange(3.0))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight if self.flag_a and not self.flag_b else x


write_archive(Flags(), Path(sys.argv[1]))
"""


def test_two_processes_write_equal_archives(tmp_path: Path) -> None:
    """Python's hashes of texts, by which sets are in order, differ between processes."""
    program = tmp_path / "flags.py"
    fields = "\n".join(f"    {name}: Final[bool]" for name in NAMES)
    values = "\n".join(f"        self.{name} = {name == 'flag_a'}" for name in NAMES)
    program.write_text(PROGRAM.format(fields=fields, values=values))
    archives = []
    for seed in ("1", "2", "3"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        out = tmp_path / f"{seed}.pt"
        subprocess.run([sys.executable, program, out], env=environment, check=True)
        archives.append(out.read_bytes())
        module = torch.jit.load(out)
        assert module.flag_a and not module.flag_b
        assert module(torch.ones(3)).tolist() == [1.0, 2.0, 3.0]
    assert archives[0] == archives[1] == archives[2]
