#!python
"""Runs the exporters that lie in the package lamplighter: python -m models.export."""

import os
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

spec = find_spec("lamplighter")
if spec is None or spec.origin is None:
    sys.exit(
        f"lamplighter-export: error: the package lamplighter is not installed for {sys.executable}; "
        "install it there"
    )
package = Path(spec.origin).parent
os.environ.setdefault("LAMPLIGHTER_OPS", str(package / "liblamplighter_ops.so"))
sys.path.insert(0, str(package / "program"))
try:
    runpy.run_module("models.export", run_name="__main__", alter_sys=True)
except ModuleNotFoundError as error:
    sys.exit(
        f"lamplighter-export: error: the package {error.name} is missing; pip install {error.name}"
    )
