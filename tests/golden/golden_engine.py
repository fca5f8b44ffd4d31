"""Runs the exporter and the compiled programs on a case."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from golden_cases import Case
from safetensors.torch import load_file, save_file
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("LAMPLIGHTER_BUILD", ROOT / "build")).resolve()

METHODS = (("ar",), ("sjd",))  # lossless ones, at temperature 0


def run(*command: object, stdin: str = "") -> str:
    """Output of a program; an AssertionError with its words when it fails."""
    words = [str(part) for part in command]
    done = subprocess.run(
        words, cwd=ROOT, input=stdin, capture_output=True, encoding="utf-8", timeout=600
    )
    assert done.returncode == 0, f"{command[0]}: exit {done.returncode}\n{done.stderr.strip()}"
    return done.stdout


def export(
    out: Path, family: str, config: dict[str, Any], *words: object, **parts: Path | None
) -> Path:
    """A bundle of published files, given as model=, gpt=, vq=, ...; config as the exporters' --config."""
    file = out.parent / f"{out.name}.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    paths = [word for name, path in parts.items() if path for word in (f"--{name}", path)]
    command = ("models.export", family, *paths, "--config", file, "--out", out, *words)
    run(sys.executable, "-m", *command)
    return out


def images_of(sizes: Iterable[tuple[int, int]], text_length: int) -> dict[str, Any]:
    """config of a bundle with images of sizes (width, height), in pixels."""
    return {
        "sizes": [f"{w}x{h}" for w, h in dict.fromkeys(sizes)],
        "text_length": text_length,
    }


def pieces(tokenizer: Path) -> dict[str, int]:
    """Ids by piece of a tokenizer.json, added ones too."""
    content = json.loads(tokenizer.read_text(encoding="utf-8"))
    added = {token["content"]: token["id"] for token in content["added_tokens"]}
    return {**content["model"]["vocab"], **added}


def manifest(bundle: Path) -> dict[str, Any]:
    return dict(json.loads((bundle / "manifest.json").read_text(encoding="utf-8")))


def attach_drafter(bundle: Path, name: str, drafter: Path, **options: Path) -> dict[str, Any]:
    """Adds a drafter, and with neighbours= a table, to a bundle -> its manifest entry."""
    words = [word for key, path in options.items() for word in (f"--{key}", path)]
    command = ("--bundle", bundle, "--name", name, "--drafter", drafter, *words)
    run(sys.executable, "-m", "models.export", "drafter", *command)
    return dict(manifest(bundle)["drafters"][name])


def encode(bundle: Path, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    """Prompts of requests in a bundle: ids and unconditional."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    found = [
        json.loads(line) for line in run(BUILD / "golden_prompts", bundle, stdin=lines).splitlines()
    ]
    assert len(found) == len(requests)
    return found


def generate(bundle: Path, *words: object) -> None:
    """A greedy image by the program."""
    run(
        BUILD / "lamplighter", "generate", "-m", bundle, "-q", "--overwrite", "--temperature", 0,
        "--dtype", "fp32", "--device", "cpu", "--threads", 1, *words,
    )  # fmt: skip


def check(bundle: Path) -> None:
    """The program compares the bundle with its checksums and recorded results."""
    run(BUILD / "lamplighter", "check", bundle, "--device", "cpu")


def tokenize(tokenizer: Path, requests: list[dict[str, object]]) -> list[dict[str, Any]]:
    """What the compiled byte-level BPE says of texts and ids (tests/tools/tokenize.cpp)."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    answers = [
        json.loads(line) for line in run(BUILD / "tokenize", tokenizer, stdin=lines).splitlines()
    ]
    assert len(answers) == len(requests)
    return answers


@cache
def operators() -> Any:
    """torch.ops.lamplighter."""
    from models import ops

    os.environ.setdefault("LAMPLIGHTER_OPS", str(BUILD / ops.LIBRARY_NAME))
    ops.load()
    return torch.ops.lamplighter


def load_module(bundle: Path, role: str) -> Any:
    """A module of the bundle, ready to be called in fp32."""
    operators()
    module = torch.jit.load(str(bundle / f"{role}.pt"), map_location="cpu")
    module.prepare(torch.empty(0))
    return module


def decode(
    bundle: Path, inputs: dict[str, Tensor], program: str = "golden_decode", **options: Any
) -> dict[str, Tensor]:
    """The compiled decode loop in fp32 (tests/golden/programs/golden_decode.cpp), or another program of its inputs."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        save_file({k: v.contiguous() for k, v in inputs.items()}, folder / "in.safetensors")
        (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
        result = folder / "out.safetensors"
        run(BUILD / program, bundle, folder / "in.safetensors", result, folder / "options.json")
        return load_file(result)


def probabilities(
    logits: Tensor,
    temperature: float,
    top_k: int,
    top_p: float,
    order: str = "ar",
    guidance: float | None = None,
) -> Tensor:
    """guide_and_filter with the same settings for every row of logits [..., V].

    With guidance, logits are [2, V]: the conditional and the unconditional row.
    """
    images = 1 if guidance is not None else logits.numel() // logits.shape[-1]
    rows = logits.reshape(-1, 1, logits.shape[-1])
    rows = rows.contiguous()
    statistics = operators().guide_and_filter(
        rows,
        torch.full((images,), 1.0 if guidance is None else guidance),
        torch.full((images,), temperature),
        torch.full((images,), top_k),
        torch.full((images,), top_p),
        order,
    )
    result = operators().probabilities(rows, statistics)
    return result.view(1, -1) if guidance is not None else result.view_as(logits)


def largest_difference(got: Tensor, expected: Tensor) -> float:
    assert got.shape == expected.shape, f"shape {list(got.shape)}, expected {list(expected.shape)}"
    return float((got.double() - expected.double()).abs().max()) if got.numel() else 0.0


def assert_close(what: str, got: Tensor, expected: Tensor, tolerance: float) -> None:
    difference = largest_difference(got, expected)
    assert difference <= tolerance, f"{what}: differs by {difference:.3g}, allowed {tolerance:g}"


def assert_recorded(case: Case, name: str, got: Tensor, allowed: str | float) -> None:
    """As the case has it, within a tolerance or the one of that name."""
    if isinstance(allowed, str):
        allowed = case.tolerance(allowed)
    assert_close(f"{case.name} {name}", got, case.tensors[name], allowed)


def assert_same_support(what: str, got: Tensor, expected: Tensor) -> None:
    """Equal kept sets; probabilities too small for a normal fp32 number may be 0."""
    assert not ((got > 0) & (expected == 0)).any(), f"{what}: keeps tokens that were filtered"
    assert not ((got == 0) & (expected > 1e-37)).any(), f"{what}: filters tokens that were kept"
