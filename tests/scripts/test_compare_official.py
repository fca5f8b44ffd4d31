"""scripts/compare_official.py: its errors, and a run against LlamaGen when a checkout is given."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runner

SCRIPT = ROOT / "scripts" / "compare_official.py"


def checkout(path: Path, file: str, text: str = "") -> Path:
    (path / file).parent.mkdir(parents=True)
    (path / file).write_text(text)
    return path


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (("--llamagen", "{tmp}/none"), "no autoregressive/models/generate.py there, expected a checkout"),
        (("--llamagen", "{ours}", "--lantern", "{ours}"), "no entrypoints/generate_images.py there"),
        (("--llamagen", "{ours}", "--model", "{tmp}"), "--model: {tmp}: no bundle there"),
        (("--llamagen", "{ours}", "--checkpoint", "{tmp}/a.pt"), "--checkpoint: {tmp}/a.pt: no such file"),
        (("--llamagen", "{ours}", "--tokens", "2"), "--tokens 3 or more"),
    ],
)  # fmt: skip
def test_bad_flags(run_program: Runner, tmp_path: Path, flags: tuple[str, ...], line: str) -> None:
    ours = checkout(tmp_path / "ours", "autoregressive/models/generate.py")
    paths = {"tmp": tmp_path, "ours": ours}
    result = run_program(sys.executable, SCRIPT, *(flag.format(**paths) for flag in flags))
    assert result.returncode == 2 and line.format(**paths) in result.stderr


@pytest.mark.parametrize(
    ("program", "line"),
    [
        ("import no_such_module", "entrypoints.generate_images exits with 1 (ModuleNotFoundError: No module named"),
        ("\nmodel.to(device='cuda')", "puts its models on 'cuda' in lines 2"),
    ],
)  # fmt: skip
def test_why_lantern_is_not_measured(
    run_program: Runner, tmp_path: Path, program: str, line: str
) -> None:
    guarded = "model = type('', (), {'to': lambda *_, **__: 0})()" + program
    program_path = checkout(tmp_path, "entrypoints/generate_images.py", guarded if "cuda" in program else program)  # fmt: skip
    code = f"import compare_official as c, pathlib; print(c.lantern_line(pathlib.Path({str(program_path)!r})))"
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parent), "CUDA_VISIBLE_DEVICES": ""}
    result = run_program(sys.executable, "-c", code, env=environment)
    assert result.returncode == 0, result.stderr
    assert line in result.stdout and result.stdout.count("\n") == 1


def test_the_official_program_generates_the_same_tokens(
    run_program: Runner, tmp_path: Path, demo_bundle: Path
) -> None:
    official = os.environ.get("LAMPLIGHTER_LLAMAGEN")
    if not official:
        pytest.skip("LAMPLIGHTER_LLAMAGEN names no checkout of FoundationVision/LlamaGen")
    flags = ("--model", demo_bundle, "--rounds", 1, "--tokens", 24)
    result = run_program(
        sys.executable, SCRIPT, "--llamagen", official, *flags, "--export-json", tmp_path / "t.json"
    )
    assert result.returncode == 0, result.stderr
    assert "equal greedy tokens: the first 24 of 24" in result.stdout
    times = json.loads((tmp_path / "t.json").read_text())
    assert set(times) == {
        "official fp32", "official bf16", "engine fp32 ar", "engine fp32 eagle", "engine bf16 ar",
        "engine bf16 eagle",
    }  # fmt: skip
    assert all(len(values) == 1 and values[0] > 0 for values in times.values())
