"""How commands end: with an exit code, and an error in one line on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .checkpoint import ExportError


def run_command(action: Callable[[], object]) -> int:
    """Exit code of an action, 0 or that of the error which stopped it."""
    try:
        action()
    except ExportError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        print(f"error: {where}{error.strerror or error}", file=sys.stderr)
        return 7
    except KeyboardInterrupt:
        print("error: stopped", file=sys.stderr)
        return 130
    return 0
