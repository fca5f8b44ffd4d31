"""Shared fixtures: where the build and its programs lie, and how to run them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

os.environ["OMP_NUM_THREADS"] = (
    "1"  # idle cores are not promised; threads that wait for one another crawl
)

ROOT = Path(__file__).resolve().parent.parent
Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def build_dir() -> Path:
    """The build folder under test: LAMPLIGHTER_BUILD, default build/."""
    return Path(os.environ.get("LAMPLIGHTER_BUILD", ROOT / "build")).resolve()


@pytest.fixture(scope="session")
def lamplighter(build_dir: Path) -> Path:
    """The command-line program."""
    return build_dir / "lamplighter"


@pytest.fixture(scope="session")
def demo_bundle() -> Path:
    """The model bundle that the repository ships."""
    return ROOT / "models" / "demo" / "bundle"


@pytest.fixture(scope="session")
def bare_bundle(demo_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped bundle without its image encoder."""
    folder = tmp_path_factory.mktemp("bare") / "bundle"
    shutil.copytree(demo_bundle, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    file = manifest["modules"].pop("image_encoder")["file"]
    (folder / file).unlink()
    del manifest["files"][file]
    golden = manifest["golden"]
    golden["records"] = [r for r in golden["records"] if r["module"] != "image_encoder"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture(scope="session")
def run_program() -> Runner:
    """Runs a program and returns its exit code, output and error text; never raises on a failed exit."""

    def run(*command: object, **options: object) -> subprocess.CompletedProcess[str]:
        arguments = [str(part) for part in command]
        return subprocess.run(  # type: ignore[call-overload, no-any-return]
            arguments, **{"capture_output": True, "text": True, "timeout": 600, **options}
        )

    return run
