#!python
"""Starts the program that lies in the package lamplighter, with the Torch of this environment."""

import os
import runpy
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path


def fail(text: str) -> None:
    sys.exit(f"lamplighter: error: {text}")


def folder(name: str) -> Path:
    """The folder of an installed package, which is not imported: that takes seconds for Torch."""
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        fail(f"the package {name} is not installed for {sys.executable}; install it there")
    return Path(spec.origin).parent


def main() -> None:
    package, torch = folder("lamplighter"), folder("torch")
    built = runpy.run_path(str(package / "_built.py"))["TORCH"]
    try:
        found = version("torch").split("+")[0]
    except PackageNotFoundError:
        found = "another version"
    if found != built:
        fail(f"built with Torch {built}, found {found} in {torch}; pip install torch=={built}")
    if torch.parent != package.parent:
        search = [str(torch / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        os.environ["LD_LIBRARY_PATH"] = ":".join(search)
    program = package / "program" / "bin" / "lamplighter"
    try:
        os.execv(program, ["lamplighter", *sys.argv[1:]])
    except OSError as error:
        fail(f"cannot start {program}: {error.strerror}; install the package again")


main()
