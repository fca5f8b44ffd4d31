"""The command line of the exporters: where it runs from."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_exporters_run_from_any_folder(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("lamplighter-export")
    for command in ([str(program)], [sys.executable, "-m", "models.export"]):
        result = subprocess.run(
            [*command, "llamagen", "--gpt", "none.pt", "--out", "out"],
            cwd=tmp_path, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin"},
        )  # fmt: skip
        assert result.returncode != 0 and "none.pt" in result.stderr
        assert list(tmp_path.iterdir()) == []
