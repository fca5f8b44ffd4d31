"""The wheel's scripts `lamplighter` and `lamplighter-export`, beside packages that hold the files the scripts look for."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runner

SCRIPTS = ROOT / "tools" / "python" / "scripts"
# Shows how it was started.
PROGRAM = '#!/bin/sh\necho "$0|$*|$LD_LIBRARY_PATH"\nexit 8\n'


def install_torch(site: Path, version: str) -> Path:
    (site / "torch" / "lib").mkdir(parents=True)
    (site / "torch" / "__init__.py").write_text("raise AssertionError('imported')\n")
    information = site / f"torch-{version}.dist-info"
    information.mkdir()
    (information / "METADATA").write_text(f"Name: torch\nVersion: {version}\n")
    return site


def install_lamplighter(site: Path) -> Path:
    package = site / "lamplighter"
    (package / "program" / "bin").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    (package / "_built.py").write_text('TORCH = "2.11.0"\n')
    program = package / "program" / "bin" / "lamplighter"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program


def start(
    run_program: Runner, name: str, *arguments: str, sites: list[Path]
) -> tuple[int, str, str]:
    environment = {"PYTHONPATH": ":".join(map(str, sites))}
    script = sites[0] / "bin" / name  # as installed: a script in a folder without modules
    script.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(SCRIPTS / f"{name}.py", script)
    # -S: without the packages of the interpreter itself.
    result = run_program(sys.executable, "-S", script, *arguments, env=environment)
    return result.returncode, result.stdout.strip(), result.stderr.strip()


@pytest.mark.parametrize("version", ["2.11.0", "2.11.0+cpu"])
def test_becomes_the_program(run_program: Runner, tmp_path: Path, version: str) -> None:
    program = install_lamplighter(install_torch(tmp_path, version))
    code, output, errors = start(run_program, "lamplighter", "inspect", "a b", sites=[tmp_path])
    assert (code, output, errors) == (8, f"{program}|inspect a b|", "")


def test_names_the_folder_of_torch_where_it_is_another(run_program: Runner, tmp_path: Path) -> None:
    program = install_lamplighter(tmp_path / "mine")
    theirs = install_torch(tmp_path / "theirs", "2.11.0")
    sites = [tmp_path / "mine", theirs]
    code, output, _ = start(run_program, "lamplighter", "devices", sites=sites)
    assert (code, output) == (8, f"{program}|devices|{theirs / 'torch' / 'lib'}")


def test_refuses_another_torch(run_program: Runner, tmp_path: Path) -> None:
    install_lamplighter(install_torch(tmp_path, "2.10.0"))
    line = (
        "lamplighter: error: built with Torch 2.11.0, found 2.10.0 in "
        f"{tmp_path / 'torch'}; pip install torch==2.11.0"
    )
    assert start(run_program, "lamplighter", sites=[tmp_path]) == (1, "", line)


@pytest.mark.parametrize("name", ["lamplighter", "lamplighter-export"])
def test_says_that_the_package_is_missing(run_program: Runner, tmp_path: Path, name: str) -> None:
    code, output, errors = start(run_program, name, sites=[tmp_path])
    assert (code, output) == (1, "")
    assert errors == (
        f"{name}: error: the package lamplighter is not installed for {sys.executable}; "
        "install it there"
    )


def test_runs_the_exporters_of_the_package(run_program: Runner, tmp_path: Path) -> None:
    program = install_lamplighter(install_torch(tmp_path, "2.11.0"))
    export = program.parent.parent / "models" / "export"
    export.mkdir(parents=True)
    (export / "__main__.py").write_text(
        "import os, sys\nprint(*sys.argv[1:], os.environ['LAMPLIGHTER_OPS'], __name__)\n"
    )
    library = tmp_path / "lamplighter" / "liblamplighter_ops.so"
    expected = (0, f"mar --out x {library} __main__", "")
    arguments = ("mar", "--out", "x")
    assert start(run_program, "lamplighter-export", *arguments, sites=[tmp_path]) == expected


def test_an_exporter_names_a_package_that_it_lacks(run_program: Runner, tmp_path: Path) -> None:
    program = install_lamplighter(install_torch(tmp_path, "2.11.0"))
    export = program.parent.parent / "models" / "export"
    export.mkdir(parents=True)
    (export / "__main__.py").write_text("import safetensors\n")
    line = "lamplighter-export: error: the package safetensors is missing; pip install safetensors"
    assert start(run_program, "lamplighter-export", sites=[tmp_path]) == (1, "", line)
