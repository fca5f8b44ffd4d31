"""Where the time of a captured cycle goes, from a recorded file of kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HEADER = "graph,name,grid,block,count,mean_us,least_us,gap_us"
LAYERS = 3


def cycle(graph: int, replays: int) -> list[str]:
    """Three layers of a product and a norm; a head that overlaps its norm, a filter that runs twice."""
    layer = [
        f'{graph},"product<2, 4>",80,256,{replays},4.0,3.5,1.0',
        f"{graph},norm,2,512,{replays},2.0,1.5,0.5",
    ]
    return [
        *(layer * LAYERS),
        f"{graph},head,128,256,{replays},10.0,9.0,-2.0",
        f"{graph},filter,1,1024,{replays},16.0,15.0,0.5",
        f"{graph},filter,1,1024,{replays},14.0,13.0,0.5",
    ]


def table(file: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, ROOT / "scripts/kernel_table.py", file, *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_table(tmp_path: Path) -> None:
    file = tmp_path / "times.csv"
    loading = ["0,copy,1,1,900,100.0,90.0,50.0"]
    file.write_text("\n".join([HEADER, *loading, *cycle(1, 2), *cycle(7, 40)]) + "\n")
    result = table(file, "--layers", str(LAYERS))
    assert result.returncode == 0, result.stderr
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in result.stdout.splitlines()
    ]
    # Layers: 3 x (4 + 1 + 2 + 0.5). The rest: 8 + 16.5 + 14.5.
    assert rows[2] == ["40", "9", "61.5", "22.5", "7.50", "39.0", "3"]
    assert rows[6:] == [["filter", "2", "31.0", "30.0"], ["head", "1", "8.0", "10.0"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\n0,copy,1,1,9,1.0,1.0,0.0\n", "no captured graph ran"),
        ("graph,name\n1,copy\n", "expected"),
        (f"{HEADER}\n1,copy,1,1,many,1.0,1.0,0.0\n", "many"),
    ],
)
def test_refuses(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "times.csv"
    file.write_text(text)
    result = table(file, "--layers", "3")
    assert result.returncode == 1
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_missing_file(tmp_path: Path) -> None:
    result = table(tmp_path / "none.csv", "--layers", "3")
    assert result.returncode == 1
    assert "none.csv" in result.stderr


@pytest.mark.skipif(
    not Path("/usr/local/cuda/include/cupti.h").exists(), reason="needs the CUDA toolkit's headers"
)
def test_program_runs_on_without_a_device(tmp_path: Path) -> None:
    library = tmp_path / "kernel_times.so"
    flags = [
        "-O0",
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-shared",
        "-fPIC",
        "-I/usr/local/cuda/include",
    ]
    source = ROOT / "scripts/kernel_times.cpp"
    subprocess.run(["g++", *flags, "-o", library, source, "-ldl"], check=True)
    code = f"import ctypes, os; ctypes.CDLL({str(library)!r}).InitializeInjection(); os._exit(3)"
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={
            "LD_PRELOAD": str(library),
            "CUPTI_LIBRARY": str(tmp_path / "none.so"),
            "PATH": "/usr/bin:/bin",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 3
