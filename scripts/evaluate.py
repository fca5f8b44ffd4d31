#!/usr/bin/env python3
"""See models/evaluate/command.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from models.evaluate.command import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
