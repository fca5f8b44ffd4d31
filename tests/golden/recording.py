"""What scripts share that record a case of a small random model of transformers."""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import transformers
from safetensors.torch import save_file
from torch import Tensor

Runs = Iterable[tuple[dict[str, Any], dict[str, Tensor]]]


def write_case(
    out: Path,
    component: str,
    shape: Any,
    seed: int,
    runs: Runs,
    tolerance: Mapping[str, float],
    source: Mapping[str, Any] | None = None,
) -> None:
    """Writes io.safetensors and case.json. `runs` gives the facts and the tensors of each; shape: a dataclass
    or a dictionary; source: by default transformers."""
    facts, tensors = [], {}
    for about, found in runs:
        facts.append(about)
        tensors |= found
    save_file({k: v.contiguous().clone() for k, v in tensors.items()}, out / "io.safetensors")
    files = sorted(path for path in out.rglob("*") if path.is_file())
    case = {
        "case": out.name,
        "component": component,
        "source": source or {"package": "transformers", "version": transformers.__version__},
        "seed": seed,
        "shape": asdict(shape) if is_dataclass(shape) else shape,
        "runs": facts,
        "tolerance": dict(tolerance),
        "files": {
            str(path.relative_to(out)): {
                "bytes": path.stat().st_size,
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            }
            for path in files
        },
    }
    (out / "case.json").write_text(json.dumps(case, indent=1, ensure_ascii=False) + "\n")


def run_recorder(
    about: str, shapes: Mapping[str, Any], record: Callable[[Path, Any, int], None]
) -> None:
    """The command line of a script that records: OUT [--shape NAME] [--seed N]."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("out", type=Path)
    parser.add_argument("--shape", choices=shapes, default="tiny")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    record(options.out, shapes[options.shape], options.seed)
