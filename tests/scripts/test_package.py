"""scripts/package.sh: the archive of the build under test runs from any folder, with the system's C libraries alone."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, Runner

SCRIPT = ROOT / "scripts" / "package.sh"
PROMPT = "a red boat on the sea at dawn"
# glibc's parts, and the two libraries of the compiler that every installation has.
SYSTEM = re.compile(r"(ld-linux-x86-64|lib(c|m|dl|rt|pthread|util|stdc\+\+|gcc_s))\.so[.0-9]*")


@pytest.fixture(scope="module")
def package(build_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The unpacked archive, in a folder with a space in its name; the archive itself is gone."""
    if (build_dir / "lamplighter-engine").read_bytes().find(b"libtorch_cuda.so") >= 0:
        pytest.skip("archives are made of builds without CUDA kernels")
    folder = tmp_path_factory.mktemp("archive")
    environment = {
        **os.environ,
        "LAMPLIGHTER_BUILD": str(build_dir),
        "LAMPLIGHTER_COMPRESS": "none",
    }
    made = subprocess.run(
        [SCRIPT, "archive", folder], env=environment, capture_output=True, text=True, timeout=600
    )
    assert made.returncode == 0, made.stderr
    (archive,) = folder.iterdir()  # nothing temporary is left
    assert made.stdout == f"{archive}\n"
    target = tmp_path_factory.mktemp("un packed")
    with tarfile.open(archive) as files:
        files.extractall(target, filter="data")
    archive.unlink()
    (unpacked,) = target.iterdir()
    assert archive.name == f"{unpacked.name}.tar"
    yield unpacked
    shutil.rmtree(unpacked)


@pytest.fixture(scope="module")
def started(package: Path, run_program: Runner) -> Runner:
    """Runs the unpacked program with an environment that holds the given variables alone."""

    def run(*command: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return run_program(
            package / "bin" / "lamplighter", *command, cwd=package.parent, env=variables
        )

    return run


def test_version(started: Runner, lamplighter: Path, run_program: Runner) -> None:
    expected = run_program(lamplighter, "--version").stdout
    result = started("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, expected, "")


def test_finds_the_demo_bundle_beside_itself(started: Runner, package: Path) -> None:
    result = started("inspect")
    assert result.returncode == 0, result.stderr
    assert str(package / "share/lamplighter/models/demo/bundle") in result.stdout


def test_generates_the_image_of_the_build(
    started: Runner, package: Path, lamplighter: Path, run_program: Runner, tmp_path: Path
) -> None:
    result = started("generate", "-p", PROMPT, "-o", "boat.png", OMP_NUM_THREADS="1")
    assert result.returncode == 0, result.stderr
    run_program(lamplighter, "generate", "-p", PROMPT, "-o", tmp_path / "boat.png")
    assert (package.parent / "boat.png").read_bytes() == (tmp_path / "boat.png").read_bytes()


def test_brings_completion_and_the_manual_page(started: Runner, package: Path) -> None:
    for command, file in (
        (("completion", "bash"), "bash-completion/completions/lamplighter"),
        (("completion", "zsh"), "zsh/site-functions/_lamplighter"),
        (("man",), "man/man1/lamplighter.1"),
    ):
        assert (package / "share" / file).read_text() == started(*command).stdout


def test_loads_libraries_of_the_archive_and_of_c(started: Runner, package: Path) -> None:
    result = started("inspect", LD_DEBUG="files")
    assert result.returncode == 0
    loaded = {Path(found) for found in re.findall(r"calling init: (/.+)", result.stderr)}
    own = {file.name for file in loaded if file.resolve().is_relative_to(package)}
    assert {"libtorch_cpu.so", "libc10.so", "liblamplighter_ops.so"} <= own
    foreign = {file.name for file in loaded if file.name not in own}
    assert "libc.so.6" in foreign
    assert [name for name in sorted(foreign) if not SYSTEM.fullmatch(name)] == []


def test_needs_no_newer_system_than_it_says(package: Path) -> None:
    readme = (package / "README.md").read_text(encoding="utf-8")
    programs = [*package.glob("bin/*"), *package.glob("lib/*.so*")]
    symbols = subprocess.run(
        ["objdump", "--dynamic-syms", *programs], capture_output=True, text=True, check=True
    ).stdout
    for name, pattern in (("GLIBC", r"glibc ([\d.]+\d)"), ("GLIBCXX", r"GLIBCXX_([\d.]+\d)")):
        asked = re.findall(rf"\b{name}_([\d.]+)\b", symbols)
        newest = max(asked, key=lambda version: [int(part) for part in version.split(".")])
        assert re.findall(pattern, readme) == [newest]


def test_every_library_has_a_licence(package: Path) -> None:
    folders = package / "share" / "lamplighter" / "licenses"
    for folder in folders.iterdir():
        assert all(file.stat().st_size > 500 for file in folder.iterdir()), folder
    names = {folder.name for folder in folders.iterdir()}
    assert {"lamplighter", "sentencepiece", "torch", "nlohmann-json3-dev", "libcli11-dev"} <= names
    assert {"libstb-dev", "zlib1g", "vega"} <= names


def test_no_folder_of_the_build_is_named(package: Path, build_dir: Path) -> None:
    for file in (package / "bin" / "lamplighter-engine", package / "lib" / "liblamplighter_ops.so"):
        dynamic = subprocess.run(
            ["readelf", "-d", file], capture_output=True, text=True, check=True
        )
        paths = re.findall(r"R(?:UN)?PATH\).*\[(.*)\]", dynamic.stdout)
        assert paths and all(part.startswith("$ORIGIN") for part in paths[0].split(":"))


@pytest.mark.parametrize(
    ("arguments", "variables", "code", "line"),
    [
        ([], {}, 2, "usage: scripts/package.sh archive [DIR] | folder DIR | wheel [DIR]"),
        (["folder", "."], {}, 1, "package: error: .: it exists; name a new folder"),
        (
            ["archive", "never"],
            {"LAMPLIGHTER_COMPRESS": "xz"},
            1,
            "package: error: LAMPLIGHTER_COMPRESS: got 'xz', expected gzip, zstd or none",
        ),
        (
            ["archive", "never"],
            {"LAMPLIGHTER_BUILD": "/no/build"},
            1,
            "package: error: /no/build/lamplighter-engine does not exist; build it with scripts/setup.sh",
        ),
    ],
)
def test_errors_are_one_line(
    run_program: Runner, arguments: list[str], variables: dict[str, str], code: int, line: str
) -> None:
    result = run_program(SCRIPT, *arguments, env={**os.environ, **variables})
    assert (result.returncode, result.stderr) == (code, f"{line}\n")
    assert not (ROOT / "never").exists()
