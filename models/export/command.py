"""How commands end: with an exit code, and an error in one line on standard error."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable

from .messages import ExportError, one_line

DEBUG = "LAMPLIGHTER_TRACEBACK"  # set to 1: internal errors show where they come from


def run_command(action: Callable[[], object]) -> int:
    """Exit code of an action: 0, or the code of the error that stopped it.

    Codes are the command-line program's; 1 is an error of the program itself, which no file should cause.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # torch's, of odd tensors that are refused
            action()
    except ExportError as error:
        return failed(str(error), error.exit_code)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return failed(f"{where}{error.strerror or error}", 7)
    except KeyboardInterrupt:
        return failed("stopped", 130)
    except MemoryError:
        return failed("out of memory: the model needs more than this machine has", 6)
    except Exception as error:
        if "allocate memory" in str(error) or "not enough memory" in str(error):
            return failed(f"out of memory: {first_line(error)}", 6)
        if os.environ.get(DEBUG):
            traceback.print_exc()
        kind = type(error).__name__
        return failed(
            f"internal error: {kind}: {first_line(error)}; please report it with {DEBUG}=1", 1
        )
    return 0


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def failed(text: str, exit_code: int) -> int:
    print(f"error: {one_line(text)}", file=sys.stderr)
    return exit_code
